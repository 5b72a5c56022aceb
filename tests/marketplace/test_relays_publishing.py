"""Publishing: success is a relay's own OK for this very event, and each refusal is shown in its words."""

import time
from typing import Any

import pytest

from marketplace import relays
from marketplace.models import Relay
from marketplace.protocol.filters import Filter
from tests.keys import T0, Keys
from tests.marketplace.test_relays_reading import SKILLS, Told, say
from tests.real_relay import LocalRelay


def test_a_real_relay_takes_an_event_once_and_says_why_not(relay: LocalRelay, keys: Keys) -> None:
    event = keys.A.skill("s")
    answer = relays.publish(event, [relay.url])[0]
    assert (answer.ok, answer.url) == (True, relay.url)
    expired = keys.A.skill("x", tags=[["expiration", "1"]])
    refused = relays.publish(expired, [relay.url])[0]
    assert not refused.ok
    assert "expired" in refused.message


def test_each_relay_answers_for_itself_and_none_holds_up_the_others(settings: Any, keys: Keys) -> None:
    event = keys.A.skill("s")

    async def other_id(socket: Any) -> None:
        await socket.recv()
        await say(socket, "OK", "0" * 64, True, "")
        await socket.wait_closed()

    async def refuses(socket: Any) -> None:
        await socket.recv()
        await say(socket, "OK", event.id, False, "blocked: pay first")
        await socket.wait_closed()

    with LocalRelay() as real, Told(other_id, settings) as other, Told(refuses, settings) as refusing:
        nobody = "ws://127.0.0.1:9"
        urls = [real.url, other.url, refusing.url, nobody]
        settings.RELAYS = urls
        started = time.monotonic()
        answers = relays.publish(event, urls, timeout=1)
        assert time.monotonic() - started < 3
    assert [answer.url for answer in answers] == urls
    assert [answer.ok for answer in answers] == [True, False, False, False]
    assert "answered about another event" in answers[1].message
    assert answers[2].message == "blocked: pay first"
    assert answers[3].message


def test_fetch_gives_each_event_once_newest_first_and_who_answered_to_the_end(settings: Any, keys: Keys) -> None:
    events = [keys.A.skill(f"s{n}", at=T0 + n) for n in range(3)]

    async def silent(socket: Any) -> None:
        await socket.wait_closed()

    with LocalRelay() as one, LocalRelay() as two, Told(silent, settings) as mute:
        settings.RELAYS = [one.url, two.url, mute.url]
        for event in events:
            relays.publish(event, [one.url, two.url])
        fetched = relays.fetch([one.url, two.url, mute.url], [SKILLS.to_dict()], timeout=1)
    assert [event.id for event in fetched.events] == [event.id for event in reversed(events)]
    assert fetched.finished == {one.url: True, two.url: True, mute.url: False}
    assert list(fetched.problems) == [mute.url]
    assert fetched.seen_on[events[0].id] == [one.url, two.url]


def test_fetch_keeps_what_was_asked_and_counts_the_rest(settings: Any, keys: Keys) -> None:
    async def liar(socket: Any) -> None:
        await socket.recv()
        await say(socket, "EVENT", "fetch", keys.B.sign(1, "x").to_dict())
        await say(socket, "EVENT", "fetch", keys.A.skill("s").to_dict())
        await say(socket, "EOSE", "fetch")
        await socket.wait_closed()

    with Told(liar, settings) as told:
        fetched = relays.fetch(told.url, [Filter(kinds=frozenset({31123}))])
    assert len(fetched.events) == 1
    assert fetched.refusals[told.url] == {"filter": 1}


def test_a_filter_that_would_match_everything_is_not_sent() -> None:
    with pytest.raises(ValueError, match="narrows"):
        relays.fetch("ws://127.0.0.1:9", [{}])


@pytest.mark.django_db
def test_a_relay_has_one_row_with_its_state_and_growing_counts() -> None:
    from collections import Counter

    status = relays.Status("wss://r.example.com", "live", "", 3, Counter({"filter": 2}), 100)
    relays.record(status)
    relays.record(relays.Status("wss://r.example.com", "away", "gone", 1, Counter({"filter": 1, "bad-id": 1}), 50))
    row = Relay.objects.get()
    assert (row.state, row.detail, row.received, row.refused, row.synced_until) == ("away", "gone", 4, 4, 100)
    assert row.refusals == {"filter": 3, "bad-id": 1}
