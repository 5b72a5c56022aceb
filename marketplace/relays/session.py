"""One connection's worth of reading: subscriptions, pages, checks, and batches handed on."""

import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from marketplace.protocol.checks import FUTURE_SECONDS, Refused
from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter
from marketplace.relays import frames
from marketplace.relays.arrivals import Incoming
from marketplace.relays.paging import Paging
from marketplace.relays.wire import Gone, Wire

BATCH = 200
PER_REQUEST = 10  # filters; more are refused by common relays
EOSE_SECONDS = 20.0  # of silence before a page counts as never ended
QUIET = 0.05  # seconds without a frame while catching up, then what is there is handed on
LIVE_QUIET = 0.001  # the same once live: what came together goes together, and nothing waits for more
CLOSED_NAMES = 500  # events of a subscription just closed are still on their way
PAGE = "page"

Sink = Callable[[list[Incoming]], Awaitable[None]]


class Session:
    """Sends requests for `filters`, reads until the connection breaks, counts what it refuses."""

    def __init__(self, wire: Wire, sink: Sink, verified: frames.Verified, passed: OrderedDict[str, None]) -> None:
        self.wire = wire
        self.sink = sink
        self.verified = verified
        self.passed = passed  # ids this relay gave before: each is handed on once
        self.asked: dict[str, list[Filter]] = {}
        self.stored: dict[str, list[Filter]] = {}  # of live requests: what counts before their EOSE
        self.closed: OrderedDict[str, None] = OrderedDict()
        self.live: list[Filter] = []
        self.since: Callable[[Filter], int] = lambda wanted: wanted.since or 0
        self.waiting: list[Paging] = []
        self.paging: Paging | None = None
        self.page_name = ""
        self.heard = time.monotonic()
        self.batch: list[Incoming] = []
        self.received = 0
        self.refusals: Counter[str] = Counter()
        self.words: list[str] = []  # what went wrong so far, in words
        self.notice = ""
        self.count = 0

    @property
    def catching_up(self) -> bool:
        return self.paging is not None or bool(self.waiting)

    async def subscribe(self, filters: Sequence[Filter], since: Callable[[Filter], int], now: int) -> None:
        """Follow these from now on; filters that are new are caught up with from `since`."""
        self.since = since
        new = [item for item in filters if item.timeless() not in {known.timeless() for known in self.live}]
        old = [name for name in self.asked if name != self.page_name]
        for start in range(0, len(filters), PER_REQUEST):
            name = self._name("live")
            # limit 1 and no since: a relay sends new events whatever their date, and next to nothing stored.
            part = [item.timeless() for item in filters[start : start + PER_REQUEST]]
            self.asked[name] = part
            self.stored[name] = [
                replace(item, since=since(full)) for item, full in zip(part, filters[start:], strict=False)
            ]
            await self.wire.send("REQ", name, *({**item.to_dict(), "limit": 1} for item in part))
        for name in old:
            await self._close(name)
        self.live = list(filters)
        self.waiting = [page for page in self.waiting if page.wanted in {item.timeless() for item in filters}]
        for item in new:
            until = now + FUTURE_SECONDS if item.until is None else item.until
            self.waiting.append(Paging(item.timeless(), since(item), until))
        if self.paging is None:
            await self._next_page()

    async def step(self, seconds: float) -> None:
        """Deal with one frame, or with none having come in time. Raises Gone when the connection is over."""
        quiet = QUIET if self.catching_up else LIVE_QUIET
        frame = await self.wire.receive(quiet if self.batch else seconds)
        if frame is None:
            await self.flush()
            await self._give_up_page()
            return
        if frame.verb == "EVENT":
            await self._event(frame)
        elif frame.verb == "EOSE":
            self.stored.pop(frame.name, None)
            if frame.name == self.page_name:
                await self._end_page()
        elif frame.verb == "CLOSED":
            await self._closed(frame)
        elif frame.verb == "NOTICE":
            self.notice = frame.text
        elif frame.verb == "OK" and frame.name == self.wire.auth_id:
            await self._ask_again()
        elif not frame.verb:
            self.refusals[frame.text] += 1
        if frame.verb != "EVENT":
            await self._give_up_page()

    async def flush(self) -> None:
        """Hand on what has been read; the relay waits meanwhile."""
        batch, self.batch = self.batch, []
        if batch:
            await self.sink(batch)
            self.heard = time.monotonic()  # the wait was ours

    async def _event(self, frame: frames.Frame) -> None:
        if frame.name in self.closed:
            return
        asked = self.asked
        if self.paging and frame.name == self.page_name:
            asked = {self.page_name: [self.paging.request]}
        try:
            event = frames.admit(frame, asked, self.verified)
        except Refused as refused:
            self.refusals[refused.reason] += 1
            return
        if self.paging and frame.name == self.page_name:
            self.heard = time.monotonic()
            self.paging.take(event)
        if self._counts(frame.name, event):
            await self._pass_on(event)
        if self.paging and self.paging.flooded:
            self.refusals["flood"] += 1
            await self._end_page()

    def _counts(self, name: str, event: Event) -> bool:
        """A stored event from before its filter's time is none of ours: a trigger starts when it is armed."""
        return name not in self.stored or any(wanted.matches(event) for wanted in self.stored[name])

    async def _pass_on(self, event: Event) -> None:
        if event.id in self.passed:
            return
        self.passed[event.id] = None
        if len(self.passed) > frames.REMEMBERED:
            self.passed.popitem(last=False)
        self.received += 1
        self.batch.append(Incoming(event, self.wire.url, checked=True))
        if len(self.batch) >= BATCH:
            await self.flush()

    async def _next_page(self) -> None:
        if self.paging is None and self.waiting:
            self.paging = self.waiting.pop(0)
        if self.paging is None:
            return
        self.page_name = self._name(PAGE)
        self.asked[self.page_name] = [self.paging.request]
        self.heard = time.monotonic()
        await self.wire.send("REQ", self.page_name, self.paging.request.to_dict())

    async def _end_page(self) -> None:
        await self._close(self.page_name)
        self.page_name = ""
        if self.paging and not self.paging.end():
            if self.paging.full_seconds:
                shown = ", ".join(map(str, self.paging.full_seconds[:3]))
                self._say(f"it may hold more than it showed of the second {shown}")
            self.paging = None
        await self._next_page()

    async def _give_up_page(self) -> None:
        if self.paging and time.monotonic() - self.heard > EOSE_SECONDS:
            self.refusals["no-eose"] += 1
            await self._drop_page("it never ends a list of stored events")

    async def _drop_page(self, words: str) -> None:
        self._say(words)
        self.paging = None
        await self._close(self.page_name)
        self.page_name = ""
        await self._next_page()

    async def _closed(self, frame: frames.Frame) -> None:
        if frame.name not in self.asked:
            return
        if frame.text.startswith("auth-required:") and await self.wire.authenticate():
            return
        words = f"it closed our request: {frame.text or 'without a reason'}"
        if frame.name == self.page_name:
            self.asked.pop(frame.name)
            await self._drop_page(words)
            return
        raise Gone(words)

    async def _ask_again(self) -> None:
        """It knows us now: everything it closed for want of that is asked for anew."""
        filters, self.asked = self.live, {}
        pages = ([self.paging] if self.paging else []) + self.waiting
        self.paging, self.page_name = None, ""
        await self.subscribe(filters, self.since, int(time.time()))
        self.waiting = pages
        await self._next_page()

    async def _close(self, name: str) -> None:
        self.stored.pop(name, None)
        if self.asked.pop(name, None) is None:
            return
        self.closed[name] = None
        if len(self.closed) > CLOSED_NAMES:
            self.closed.popitem(last=False)
        await self.wire.send("CLOSE", name)

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}-{self.count}"

    def _say(self, words: str) -> None:
        if words not in self.words and len(self.words) < 5:
            self.words.append(words)
