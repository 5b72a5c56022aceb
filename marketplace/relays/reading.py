"""Reading one relay for as long as it runs: catch-up by paging, then live, and again after every break."""

import asyncio
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from marketplace.models import Relay
from marketplace.protocol.filters import Filter
from marketplace.relays import frames
from marketplace.relays.connecting import Unreachable
from marketplace.relays.session import Session, Sink
from marketplace.relays.standing import Status, is_faulty
from marketplace.relays.wire import Gone, Wire

OVERLAP = 600  # seconds asked for again after a break: clocks differ, and events are late
REPORT = 5.0  # seconds between reports while nothing but counts changes
LONGEST_PAUSE = 30.0  # so that a relay that returns is read within a minute
STEADY = 60.0  # a connection that lasted this long starts the pauses anew

State = Relay.State


class Reader:
    """Follows one relay.

        reader = Reader(url, lambda: filters, sink, report, since=relay.synced_until)
        task = asyncio.create_task(reader.run())      # until cancelled
        reader.refresh()                              # the filters changed; followed within 2 s

    `filters` gives the filters to follow now (Filter, or NIP-01 objects). A filter's own `since` says from where to
    catch up with it; without one it is `since` less an overlap. `sink` is awaited with at most 200 checked events,
    each once per relay: while it works, the relay waits. `report` is awaited with a Status, see standing.record.
    A set of `verified` ids shared between readers checks each signature once.
    """

    def __init__(
        self,
        url: str,
        filters: Callable[[], Sequence[Filter | dict[str, Any]]],
        sink: Sink,
        report: Callable[[Status], Awaitable[None]],
        *,
        since: int = 0,
        verified: frames.Verified | None = None,
    ) -> None:
        self.url = url
        self.filters = filters
        self.sink = sink
        self.report = report
        self.synced_until = since
        self.verified = verified or frames.Verified()
        self.passed: OrderedDict[str, None] = OrderedDict()
        self.changed = False
        self.stopping = False
        self.received = self.refused = 0

    def refresh(self) -> None:
        """Ask `filters` again; from the loop's thread (else `loop.call_soon_threadsafe(reader.refresh)`)."""
        self.changed = True

    async def run(self) -> None:
        """Until cancelled; never raises for anything that a relay does."""
        failures = 0
        while True:
            started = time.monotonic()
            words = await self._connected(once=False)
            failures = 0 if time.monotonic() - started > STEADY else failures + 1
            pause = min(2.0**failures / 2, LONGEST_PAUSE) * random.uniform(0.7, 1.0)  # noqa: S311
            await self._say(State.AWAY, f"{words}; trying again in {pause:.0f} s")
            await asyncio.sleep(pause)

    async def catch_up(self) -> str:
        """Read what is stored, once; what went wrong in words, "" when all of it was read."""
        return await self._connected(once=True)

    async def _connected(self, once: bool) -> str:
        await self._say(State.CONNECTING)
        session: Session | None = None
        try:
            async with await Wire.to(self.url) as wire:
                session = Session(wire, self.sink, self.verified, self.passed)
                await self._follow(session, once)
                return "; ".join(session.words)
        except (Unreachable, Gone) as error:
            words = [*(session.words if session else ()), str(error)]
            if session:
                await session.flush()
                await self._tell(session, State.AWAY)
                words += [f"it said: {session.notice}"] if session.notice else []
            return "; ".join(words)

    async def _follow(self, session: Session, once: bool) -> None:
        began, reported = int(time.time()), time.monotonic()
        await self._subscribe(session, began)
        await self._tell(session, State.CATCHING_UP)
        was = True
        while session.catching_up or not once:
            await session.step(0.5)
            if self.changed and not once:
                await self._subscribe(session, int(time.time()))
            if was and not session.catching_up:
                await session.flush()
                self._advance(session, began)
            elif time.monotonic() - reported < REPORT:
                was = session.catching_up
                continue
            was = session.catching_up
            if not was:
                self._advance(session, int(time.time()))
            await self._tell(session, State.CATCHING_UP if was else State.LIVE)
            reported = time.monotonic()
        await session.flush()

    async def _subscribe(self, session: Session, now: int) -> None:
        self.changed = False
        floor = max(0, self.synced_until - OVERLAP)
        filters = frames.as_filters(self.filters())
        await session.subscribe(filters, lambda item: floor if item.since is None else item.since, now)

    def _advance(self, session: Session, until: int) -> None:
        """Everything before `until` was asked for and answered; not so when a list had no end."""
        if not session.words:
            self.synced_until = max(self.synced_until, until)

    async def _tell(self, session: Session, state: str) -> None:
        received, session.received = session.received, 0
        refusals, session.refusals = session.refusals, Counter()
        self.received += received
        self.refused += refusals.total()
        words = list(session.words)
        if is_faulty(self.received, self.refused) or (state == State.LIVE and session.words):
            state = State.FAULTY
            if self.refused:
                words.append(f"{self.refused} of {self.received + self.refused} events refused")
        if session.notice:
            words.append(f"it said: {session.notice}")
        status = Status(self.url, state, "; ".join(words), received, refusals, self.synced_until)
        await self.report(status)

    async def _say(self, state: str, detail: str = "") -> None:
        await self.report(Status(self.url, state, detail))
