"""Reading stored events page by page: pure, since relays differ in limits and all of them cut silently."""

from dataclasses import replace

from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter

LIMIT = 500  # what every relay grants
FULL = 20  # events of one second that may be a page cut short; below, no relay's limit is so low


class Paging:
    """Newest first with an inclusive `until`: the second at a page's edge is asked for again and deduplicated."""

    def __init__(self, wanted: Filter, since: int, until: int, limit: int = LIMIT) -> None:
        self.since = since
        self.until = until
        self.wanted = wanted
        self.limit = limit
        self.pages = 0
        self.full_seconds: list[int] = []  # there the relay may hold more than it showed
        self._largest = 0
        self._count = self._new = 0
        self._oldest: int | None = None
        self._at_edge: set[str] = set()  # ids seen at the second `until`
        self._at_oldest: set[str] = set()

    @property
    def request(self) -> Filter:
        """The filter of the current page."""
        return replace(self.wanted, since=self.since, until=self.until, limit=self.limit)

    @property
    def flooded(self) -> bool:
        """Whether the relay ignores the limit; the page may be ended where it is."""
        return self._count > 10 * self.limit

    def take(self, event: Event) -> bool:
        """Whether the event is new; each one of the page is shown here."""
        self._count += 1
        if event.id in self._at_edge or event.id in self._at_oldest:
            return False
        self._new += 1
        if self._oldest is None or event.created_at < self._oldest:
            self._oldest, self._at_oldest = event.created_at, set()
        if event.created_at == self._oldest:
            self._at_oldest.add(event.id)
        return True

    def end(self) -> bool:
        """The page is complete: whether another one has to be asked for."""
        self.pages += 1
        count, new, oldest = self._count, self._new, self._oldest
        self._largest = max(self._largest, count)
        self._count = self._new = 0
        if count == 0 or (new == 0 and count < self._largest):
            return False
        if new == 0 or oldest is None:
            # All of it was known: the second is full, or was all there is.
            if count >= FULL:
                self.full_seconds.append(self.until)
            self._step(self.until - 1, set())
        else:
            edge = self._at_oldest | (self._at_edge if oldest == self.until else set())
            self._step(oldest, edge)
        return self.until >= self.since

    def _step(self, until: int, edge: set[str]) -> None:
        self.until = until
        self._at_edge = edge
        self._oldest, self._at_oldest = None, set()
