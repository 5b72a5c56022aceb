"""Deleting what the agent wrote, and how its relays are doing: against real relays."""

from typing import Any

import pytest

from agents.models import Agent
from agents.tools import TOOLS, ToolContext, ToolFailed, ToolRefused, call
from marketplace import relays
from marketplace.protocol import nip19
from marketplace.protocol.filters import Filter
from tests.agents.world import NOW, adoption_list, make_agent, signed, stranger
from tests.real_relay import LocalRelay

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make_agent()


def context(agent: Agent, **more: Any) -> ToolContext:
    return ToolContext(agent, NOW, frozenset(TOOLS), **more)


def notes(relay: LocalRelay, agent: Agent, kind: int = 1) -> list[Any]:
    wanted = Filter(authors=frozenset({agent.identity.pubkey}), kinds=frozenset({kind}))
    return relays.fetch(relay.url, [wanted], 4).events


def test_an_own_note_is_taken_back_once(agent: Agent, relay: LocalRelay) -> None:
    call(context(agent), "nostr_post", {"content": "hasty"})
    (note,) = notes(relay, agent)
    kept: list[dict[str, Any]] = []
    given = {"event_id": nip19.encode_note(note.id), "reason": "too hasty"}
    call(context(agent, remember=kept.append), "nostr_delete", given)
    assert notes(relay, agent) == []
    (deletion,) = notes(relay, agent, 5)
    assert (deletion.tags, deletion.content) == ((("e", note.id), ("k", "1")), "too hasty")
    call(context(agent, recalled=kept[0]), "nostr_delete", given)  # the note is gone; the intent is not
    assert [event.id for event in notes(relay, agent, 5)] == [deletion.id]


def test_what_others_wrote_is_not_touched(agent: Agent, relay: LocalRelay) -> None:
    theirs = signed(stranger(), 1, "theirs")
    relays.publish(theirs, [relay.url])
    with pytest.raises(ToolRefused, match="of this agent's own"):
        call(context(agent), "nostr_delete", {"event_id": theirs.id})
    assert notes(relay, agent, 5) == []


def test_the_list_of_adoptions_is_not_deleted(agent: Agent, relay: LocalRelay) -> None:
    own = adoption_list(agent, f"31123:{'a' * 64}:x")
    relays.publish(own, [relay.url])
    with pytest.raises(ToolRefused, match="not deleted with this tool"):
        call(context(agent), "nostr_delete", {"event_id": own.id})


@pytest.mark.parametrize("event_id", ["", "x", "a" * 63, "é" * 200_000])
def test_what_is_no_id_is_refused(agent: Agent, relay: LocalRelay, event_id: str) -> None:
    with pytest.raises(ToolRefused):
        call(context(agent), "nostr_delete", {"event_id": event_id})


def test_an_event_nobody_has_is_said(agent: Agent, relay: LocalRelay) -> None:
    with pytest.raises(ToolFailed, match="No relay has this event"):
        call(context(agent), "nostr_delete", {"event_id": "a" * 64})


def test_each_relay_is_asked(agent: Agent, relay: LocalRelay, settings: Any) -> None:
    settings.WRITE_RELAYS = [relay.url, "ws://127.0.0.1:9"]
    settings.RELAYS = [relay.url]
    first, second = call(context(agent), "nostr_relay_status", {}).splitlines()
    assert first.startswith(f"{relay.url} (reads and writes): answers, in ")
    assert second.startswith("ws://127.0.0.1:9 (writes): does not answer: ")


def test_no_relay_is_said(agent: Agent, settings: Any) -> None:
    settings.WRITE_RELAYS = settings.RELAYS = []
    assert call(context(agent), "nostr_relay_status", {}) == "There are no relays."
