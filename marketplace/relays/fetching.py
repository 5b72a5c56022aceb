"""Asking relays for stored events once: bounded in time and number, with word of who answered to the end."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from marketplace.protocol.checks import Refused
from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter
from marketplace.relays import frames
from marketplace.relays.connecting import Clock, Unreachable
from marketplace.relays.paging import LIMIT
from marketplace.relays.wire import Gone, Wire

MOST_EVENTS = 2_000  # per relay


@dataclass
class Fetched:
    """Events of all relays, each once, newest first; and per relay whether it told everything it had to say."""

    events: list[Event] = field(default_factory=list)
    finished: dict[str, bool] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)  # in words, where not finished
    refusals: dict[str, Counter[str]] = field(default_factory=dict)  # url -> reason -> how often
    seen_on: dict[str, list[str]] = field(default_factory=dict)  # event id -> urls


def fetch(urls: str | Sequence[str], filters: Sequence[Filter | dict[str, Any]], timeout: float = 8.0) -> Fetched:
    """The stored events that fit any filter; one request per relay, so at most 500 per filter.

    Never raises for a relay; ValueError for a filter that is none. Inside an event loop await `fetch_async`.
    """
    return asyncio.run(fetch_async(urls, filters, timeout))


async def fetch_async(
    urls: str | Sequence[str], filters: Sequence[Filter | dict[str, Any]], timeout: float = 8.0
) -> Fetched:
    wanted = frames.as_filters(filters)
    addresses = list(dict.fromkeys([urls] if isinstance(urls, str) else urls))
    verified, result = frames.Verified(), Fetched()
    answers = await asyncio.gather(*(_fetch_from(url, wanted, timeout, verified, result) for url in addresses))
    events = {event.id: event for events in answers for event in events}
    for url, found in zip(addresses, answers, strict=True):
        for event_id in dict.fromkeys(event.id for event in found):
            result.seen_on.setdefault(event_id, []).append(url)
    result.events = sorted(events.values(), key=lambda event: (-event.created_at, event.id))
    return result


async def _fetch_from(
    url: str, wanted: list[Filter], timeout: float, verified: frames.Verified, result: Fetched
) -> list[Event]:
    found: list[Event] = []
    result.finished[url] = False
    try:
        async with asyncio.timeout(timeout + 1), await Wire.to(url, timeout) as wire:
            result.problems[url] = await _read(wire, wanted, Clock(timeout), verified, result, found)
    except (Unreachable, Gone) as error:
        result.problems[url] = str(error)
    except TimeoutError:
        result.problems[url] = f"no end within {timeout:.0f} s"
    if not result.problems[url]:
        del result.problems[url]
        result.finished[url] = True
    return found


async def _read(
    wire: Wire, wanted: list[Filter], clock: Clock, verified: frames.Verified, result: Fetched, found: list[Event]
) -> str:
    """Fills `found`; why it did not come to the end, "" when it did."""
    request = [{"limit": LIMIT, **item.to_dict()} for item in wanted]
    await wire.send("REQ", "fetch", *request)
    while clock.left > 0:
        frame = await wire.receive(clock.left)
        if frame is None:
            break
        if frame.verb == "EVENT":
            try:
                found.append(frames.admit(frame, {"fetch": wanted}, verified))
            except Refused as refused:
                result.refusals.setdefault(wire.url, Counter())[refused.reason] += 1
            if len(found) >= MOST_EVENTS:
                return f"more than {MOST_EVENTS} events; the rest was not read"
        elif frame.verb == "EOSE" and frame.name == "fetch":
            return ""
        elif frame.verb == "CLOSED" and frame.name == "fetch":
            if not frame.text.startswith("auth-required:") or not await wire.authenticate():
                return f"it closed the request: {frame.text or 'without a reason'}"
        elif frame.verb == "OK" and frame.name == wire.auth_id:
            await wire.send("REQ", "fetch", *request)
    return "no end within the time given"
