"""What a relay may say: read without raising, checked by our own code, and paged to the end or with word of a gap."""

import json
from collections.abc import Callable

import pytest

from marketplace.protocol.checks import Refused
from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter
from marketplace.relays import frames, normal_url
from marketplace.relays.paging import Paging
from marketplace.relays.standing import is_faulty
from tests.keys import T0, Keys


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x00", "binary"),
        ("", "json"),
        ("null", "frame"),
        ("[]", "frame"),
        ("[1]", "frame"),
        ('["EVENT"]', "frame"),
        ('["HELLO","x"]', "frame"),
        ('["NOTICE",NaN]', "json"),
        ("[" * 5_000, "depth"),
        ('["NOTICE","' + "x" * 500_000 + '"]', "size"),
    ],
)
def test_garbage_is_a_frame_without_a_verb(raw: str | bytes, reason: str) -> None:
    assert (frames.read(raw).verb, frames.read(raw).text) == ("", reason)


@pytest.mark.parametrize("row", [["EOSE", 3], ["CLOSED", None, {}], ["OK", [], "true", 4], ["NOTICE", {}]])
def test_wrong_types_in_known_frames_do_not_raise(row: list[object]) -> None:
    frame = frames.read(json.dumps(row))
    assert frame.verb == row[0]
    assert not frame.ok


def test_nothing_unrequested_or_forged_is_admitted(keys: Keys) -> None:
    wanted = Filter(kinds=frozenset({31123}), authors=frozenset({keys.A.pubkey}))
    good = keys.A.skill("s")

    def reason(body: object, name: str = "sub") -> str:
        frame = frames.read(json.dumps(["EVENT", name, body]))
        with pytest.raises(Refused) as caught:
            frames.admit(frame, {"sub": [wanted]}, frames.Verified())
        return caught.value.reason

    assert reason({**good.to_dict(), "content": "{}"}) == "bad-id"
    assert reason({**good.to_dict(), "sig": ""}) == "shape"
    assert reason({**good.to_dict(), "sig": "0" * 128}) in {"bad-signature", "bad-key"}
    assert reason(keys.A.sign(1, "hello").to_dict()) == "filter"
    assert reason(keys.B.skill("s").to_dict()) == "filter"
    assert reason(good.to_dict(), "other") == "unknown-subscription"
    assert reason(None) == "shape"
    assert frames.admit(frames.read(json.dumps(["EVENT", "sub", good.to_dict()])), {"sub": [wanted]}, frames.Verified())


def test_a_verified_id_does_not_vouch_for_other_content(keys: Keys) -> None:
    verified = frames.Verified(most=1)
    good = keys.A.skill("s")
    verified.check(good)
    verified.check(good)
    forged = Event(good.id, good.pubkey, good.created_at, good.kind, good.tags, "{}", good.sig)
    with pytest.raises(Refused):
        verified.check(forged)


def _stored(seconds: list[int]) -> list[Event]:
    return [Event(f"{n:064x}", "a" * 64, at, 31123, (), "", "") for n, at in enumerate(seconds)]


def _read(stored: list[Event], limit: int) -> tuple[set[str], Paging]:
    """Page through a relay that answers newest first and cuts at its own limit."""
    paging = Paging(Filter(kinds=frozenset({31123})), 0, T0 * 2)
    found: set[str] = set()
    while True:
        request = paging.request
        matching = [event for event in stored if request.matches(event)]
        matching.sort(key=lambda event: (-event.created_at, event.id))
        for event in matching[: min(limit, request.limit or limit)]:
            paging.take(event)
            found.add(event.id)
        if not paging.end():
            return found, paging


@pytest.mark.parametrize("limit", [7, 100, 500, 1_000])
@pytest.mark.parametrize("spread", [lambda n: n, lambda n: n // 3, lambda n: n % 5 * 1_000 + n // 5])
def test_every_stored_event_is_paged_once_whatever_the_relays_limit(limit: int, spread: Callable[[int], int]) -> None:
    stored = _stored([T0 + spread(n) for n in range(1_234)])
    found, paging = _read(stored, limit)
    assert len(found) == 1_234
    assert not paging.full_seconds


def test_a_second_with_more_events_than_the_limit_is_noticed() -> None:
    stored = _stored([T0] * 600 + [T0 - 5] * 10 + [T0 + 5] * 10)
    found, paging = _read(stored, 500)
    assert len(found) == 520
    assert paging.full_seconds == [T0]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_small_relay_is_not_suspected_of_a_gap(count: int) -> None:
    found, paging = _read(_stored([T0] * count), 500)
    assert len(found) == count
    assert not paging.full_seconds
    assert paging.pages <= 3


def test_five_refusals_and_a_tenth_of_all_make_a_relay_faulty() -> None:
    assert not is_faulty(0, 4)
    assert is_faulty(0, 5)
    assert not is_faulty(10_000, 50)
    assert is_faulty(40, 5)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("WSS://Relay.Example.COM/", "wss://relay.example.com"),
        ("ws://127.0.0.1:7777", "ws://127.0.0.1:7777"),
        ("wss://[::1]:8/x/", "wss://[::1]:8/x"),
    ],
)
def test_one_relay_has_one_address(text: str, url: str) -> None:
    assert normal_url(text) == url


@pytest.mark.parametrize("text", ["", "https://x.example", "wss://", "wss://u:p@x.example", "wss://x\u202e.example/\n"])
def test_what_is_no_relay_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="relay"):
        normal_url(text)
