"""“Warn me when … posts about lightning”: from the admin's message to the warning in their mailbox, on real pieces."""

import json
import time
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents import runner
from agents.dispatch import hearing
from agents.management.commands.listen import Listener
from agents.management.watching import look
from agents.models import Agent, Change, Run, Trigger
from marketplace import relays, signing
from marketplace.models import Identity
from marketplace.protocol import kinds, nip19, nostr
from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter
from tests import fakes
from tests.agents import rows
from tests.agents.world import signed
from tests.real_relay import LocalRelay

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

SECRET = "31" * 32  # of whom the admin wants to hear
PUBKEY = nostr.public_key(SECRET)
NPUB = nip19.encode_npub(PUBKEY)


@pytest.fixture
def owner() -> Any:
    return rows.owner()


@pytest.fixture
def admin(owner: Any) -> Identity:
    """The owner's own key, in another client."""
    return signing.create_identity(owner, "admin")


@pytest.fixture
def agent(owner: Any, admin: Identity, relay: LocalRelay) -> Agent:
    granted = ["nostr_profile", "skill_create", "nostr_dm_send"]
    return rows.agent(owner, admin_pubkey=admin.pubkey, grants=granted)


def skill(**more: Any) -> dict[str, Any]:
    """What a model makes of the wish."""
    return {
        "name": "warn-lightning",
        "description": "Warns the admin when Lyn posts about lightning",
        "trigger": "nostr-subscription",
        "filter": {"kinds": [1], "authors": [NPUB], "search": "lightning"},
        "tools": ["nostr_dm_send"],
        "autonomy": "auto",
        **more,
    }


LLM = {"template": "Tell the admin by private message what was posted.\n\n{{triggering_event}}"}
TEMPLATE = {"template": "DM admin: {content}", "action": "template", "tools": None}


def by_hand(run: Run) -> Run:
    """As the worker would."""
    runner.execute(run.pk)
    run.refresh_from_db()
    return run


def note(text: str) -> Event:
    return signed(SECRET, kinds.NOTE, text, at=int(time.time()))


def heard(relay: LocalRelay, *events: Event) -> None:
    """The events come to the relay, and the listener reads there what its triggers ask for."""
    for event in events:
        assert all(answer.ok for answer in relays.publish(event, [relay.url]))
    listener = Listener()
    listener.watch = look()
    told = relays.fetch(relay.url, listener.watch.filters(relay.url, 0), 4)
    assert told.finished == {relay.url: True}
    listener._take([relays.Incoming(event, relay.url, checked=True) for event in told.events])


def warnings(relay: LocalRelay, admin: Identity, agent: Agent) -> list[str]:
    """What the admin's client shows of the agent."""
    wanted = Filter(kinds=frozenset({kinds.GIFT_WRAP}), tags={"p": frozenset({admin.pubkey})})
    opened = [signing.unwrap(admin, event) for event in relays.fetch(relay.url, [wanted], 4).events]
    return [text for sender, text in opened if sender == agent.identity.pubkey]


def asked_for(client: Client, agent: Agent, message: str, way: str = "form") -> Run:
    """The wish as the admin can say it; the run as it stands after a worker had it."""
    client.force_login(agent.owner)
    if way == "form":
        client.post("/runs/start/", {"agent": agent.slug, "message": message, "token": "t1"})
    elif way == "talk":
        client.post(f"/agents/{agent.slug}/talk/", {"message": message, "token": "t1"})
    else:
        admin = Identity.objects.get(pubkey=agent.admin_pubkey)
        hearing.hear(agent, signing.gift_wrap(admin, agent.identity.pubkey, message), timezone.now())
    return by_hand(Run.objects.get(agent=agent))


@pytest.mark.parametrize(
    ("way", "how"),
    [("form", LLM), ("form", TEMPLATE), ("talk", LLM), ("dm", LLM)],
    ids=["form-llm", "form-template", "talk-llm", "dm-llm"],
)
def test_the_admin_is_warned(
    models: Any, agent: Agent, admin: Identity, relay: LocalRelay, client: Client, way: str, how: dict[str, Any]
) -> None:
    relays.publish(signed(SECRET, kinds.PROFILE, json.dumps({"name": "Lyn"}), at=int(time.time())), [relay.url])
    models.script(
        fakes.calls(("a", "nostr_profile", {"pubkey": NPUB})),
        fakes.calls(("b", "skill_create", skill(**how))),
    )

    # The wish: the key is looked up, the skill is proposed, and nothing happens before the owner says yes.
    run = asked_for(client, agent, f"Warn me when {NPUB} posts about lightning", way)
    assert (run.status, run.reason) == ("waiting", "approval"), run.reason_words
    looked_up = next(m["content"] for m in models.asked[-1]["messages"] if m["role"] == "tool")
    assert "Lyn" in looked_up
    assert not Trigger.objects.exists()
    page = client.get(f"/runs/{run.pk}/").content.decode()
    for words in ("waits for you", "warn-lightning", "private", "without asking you again"):
        assert words in page

    # The yes.
    step = run.steps.get(state="waiting")
    models.script(fakes.text("I will warn you."))
    client.post(f"/runs/{run.pk}/steps/{step.position}/", {"decision": "approve"})
    assert (by_hand(run).status, run.output) == ("succeeded", "I will warn you.")
    trigger = Trigger.objects.get(agent=agent)
    assert (trigger.live, trigger.autonomy, trigger.address) == (
        True,
        "auto",
        f"31124:{agent.identity.pubkey}:warn-lightning",
    )
    entry = Change.objects.get(what="skill")
    assert (entry.actor, entry.run) == ("agent", run)
    assert f"/runs/{run.pk}/" in client.get(f"/agents/{agent.slug}/changes/").content.decode()

    # What she posts.
    fits = note("Lightning is fast today")
    others = note("Nice weather"), signed("32" * 32, kinds.NOTE, "lightning by another", at=int(time.time()))
    heard(relay, *others, fits)
    (warning,) = Run.objects.filter(trigger=trigger)
    assert warning.input["event"]["id"] == fits.id

    # The warning.
    models.script(fakes.calls(("c", "nostr_dm_send", {"message": "Lyn: Lightning is fast today"})), fakes.text("Told."))
    assert by_hand(warning).status == "succeeded", warning.reason_words
    told = warnings(relay, admin, agent)
    assert sum("Lightning is fast today" in text for text in told) == 1
    # By direct message the wish was answered too, after a word that the owner must decide first.
    assert len(told) == (3 if way == "dm" else 1)


def test_a_no_makes_nothing(models: Any, agent: Agent, relay: LocalRelay, client: Client) -> None:
    models.script(fakes.calls(("b", "skill_create", skill(**LLM))))
    run = asked_for(client, agent, f"Warn me when {NPUB} posts about lightning")
    step = run.steps.get(state="waiting")
    client.post(f"/runs/{run.pk}/steps/{step.position}/", {"decision": "decline", "reason": "Only once a day"})
    assert by_hand(run).status == "succeeded"
    reply = next(m["content"] for m in models.asked[-1]["messages"] if m["role"] == "tool")
    assert reply == "Error: The owner declined this call: Only once a day"
    own = Filter(authors=frozenset({agent.identity.pubkey}))
    assert relays.fetch(relay.url, [own], 4).events == []
    assert not Trigger.objects.exists()


def test_words_are_looked_for_here_where_a_relay_need_not(agent: Agent) -> None:
    for number, more in enumerate(({"authors": [PUBKEY]}, {"#t": ["x"]}, {})):
        wanted = {"kinds": [1], "search": "lightning", **more}
        Trigger.objects.create(
            agent=agent,
            address=f"31124:{PUBKEY}:{number}",
            kind="nostr-subscription",
            tags=[["trigger", "nostr-subscription"], ["filter", json.dumps(wanted)]],
            armed_at=0,
        )
    from django.conf import settings

    asked = look().filters(settings.RELAYS[0], 0)
    assert sorted((bool(item.authors or item.tags), item.search) for item in asked) == [
        (False, "lightning"),
        (True, None),
        (True, None),
    ]
