"""Publishing one event to several relays, each answer in words."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from marketplace.protocol.events import Event
from marketplace.relays.connecting import Clock, Unreachable
from marketplace.relays.wire import Gone, Wire

AUTH_NEEDED = ("auth-required:", "restricted:")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one relay said to an event; only its own OK true counts as published."""

    url: str
    ok: bool
    message: str = ""


def publish(event: Event, urls: Sequence[str], timeout: float = 8.0) -> list[Answer]:
    """Send to every relay at once; one answer per address, in order, after `timeout` seconds at the latest.

    Never raises for a relay. Not for use inside a running event loop: there await `publish_async`.
    """
    return asyncio.run(publish_async(event, urls, timeout))


async def publish_async(event: Event, urls: Sequence[str], timeout: float = 8.0) -> list[Answer]:
    return list(await asyncio.gather(*(_publish_to(url, event, timeout) for url in urls)))


async def _publish_to(url: str, event: Event, timeout: float) -> Answer:
    clock = Clock(timeout)
    try:
        async with asyncio.timeout(timeout + 1), await Wire.to(url, timeout) as wire:
            await wire.send("EVENT", event.to_dict())
            return await _answer(wire, event, clock, timeout)
    except (Unreachable, Gone) as error:
        return Answer(url, False, str(error))
    except TimeoutError:
        return Answer(url, False, f"no answer within {timeout:.0f} s")


async def _answer(wire: Wire, event: Event, clock: Clock, timeout: float) -> Answer:
    """The relay's OK for this event; anything else it says is passed over."""
    about_others, notice = 0, ""
    while clock.left > 0:
        frame = await wire.receive(clock.left)
        if frame is None:
            break
        if frame.verb == "NOTICE":
            notice = frame.text
        if frame.verb != "OK":
            continue
        if frame.name == wire.auth_id:
            await wire.send("EVENT", event.to_dict())  # the identical event, now that it knows us
        elif frame.name != event.id:
            about_others += 1
        elif not frame.ok and frame.text.startswith(AUTH_NEEDED) and await wire.authenticate():
            continue
        else:
            return Answer(wire.url, frame.ok, frame.text or ("" if frame.ok else "refused without a reason"))
    words = f"no answer within {timeout:.0f} s"
    if about_others:
        words += "; it answered about another event"
    return Answer(wire.url, False, f"{words}; it said: {notice}" if notice else words)
