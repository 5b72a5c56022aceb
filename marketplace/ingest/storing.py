"""`store`: batches of events become rows, each batch in one transaction of few statements."""

import gc
import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby

from django.db import DatabaseError, DataError, IntegrityError, transaction

from marketplace import signals
from marketplace.ingest import archive, checking, pace, skills, tombstones, waiting
from marketplace.ingest.keys import Key, key_of, newer
from marketplace.ingest.outcomes import Outcome
from marketplace.ingest.projecting import Changes, project, reproject
from marketplace.ingest.tombstones import FINAL, Tombstones
from marketplace.models import CatalogueVersion
from marketplace.protocol import kinds
from marketplace.protocol.events import Event
from marketplace.relays.arrivals import Incoming

BATCH = 1_000  # events per transaction, fewer where they are large
CHARACTERS = 8_000_000  # of their texts
STEP = 160  # events between two looks at who else waits to write
WEIGHT = 3_200  # tags between two looks: one list may name 2,000 skills
SHORT = 8  # steps are this much shorter while others have shown themselves lately
log = logging.getLogger(__name__)

Checked = tuple[Incoming, Event | Outcome]


def store(batch: Sequence[Incoming], now: int) -> list[Outcome]:
    """What became of each, in the order given; `now` in unix seconds. A bad event never takes others with it."""
    outcomes: list[Outcome] = []
    for part in _parts(batch):
        with _without_collector():
            outcomes += _store_all(part, now)
    return outcomes


def _store_all(batch: Sequence[Incoming], now: int) -> list[Outcome]:
    """Where something raises, in halves until it stands alone and is refused: no event stops what comes after it."""
    try:
        return _store(batch, now)
    except Exception as error:
        if isinstance(error, DatabaseError) and not isinstance(error, DataError | IntegrityError):
            raise  # the database is away or not ready, which no event has done
        if len(batch) > 1:
            middle = len(batch) // 2
            return _store_all(batch[:middle], now) + _store_all(batch[middle:], now)
        raw, relay = batch[0].raw, batch[0].relay
        event_id = raw.id if isinstance(raw, Event) else checking.claimed_id(raw)
        log.exception("event %s from %s cannot be stored", event_id, relay or "a file")
        return [Outcome(event_id, "refused", "unstorable", relay=relay)]


@contextmanager
def _without_collector() -> Iterator[None]:
    """A batch makes tens of thousands of small objects, none of them in a circle: while they pile up, Python would
    walk over everything the process holds, again and again, and find nothing."""
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()


def _store(batch: Sequence[Incoming], now: int) -> list[Outcome]:
    """In one transaction, or in several where somebody else waits to write."""
    # Before the lock is taken: nothing here depends on other rows.
    checked = checking.check(batch, now)
    prepared = {
        found.id: skills.prepare(found) for found in checked if isinstance(found, Event) and found.kind in kinds.SKILLS
    }
    outcomes: list[Outcome] = []
    left = deque(zip(batch, checked, strict=True))
    while left:
        if not any(isinstance(found, Event) for _, found in left):
            return outcomes + [found for _, found in left if isinstance(found, Outcome)]
        work = _Transaction(now, prepared)
        with pace.write():
            work.take(_step(left))
            while left and not waiting.others_wait():
                work.take(_step(left))
            work.finish()
        outcomes += work.outcomes
    return outcomes


def announce(changes: Changes, stored: list[Outcome]) -> None:
    """Inside the transaction: counts follow at once, everything else hears of it after commit."""
    if changes.touched:
        signals.touched.send(sender=None, addresses=changes.touched)
    if changes.catalogue or changes.touched:
        CatalogueVersion.bump()
    if stored:
        transaction.on_commit(lambda: _tell(stored))


def _tell(stored: list[Outcome]) -> None:
    for receiver, answer in signals.stored.send_robust(sender=None, outcomes=stored):
        if isinstance(answer, Exception):
            log.error("%s failed on stored events", receiver, exc_info=answer)


def _parts(batch: Sequence[Incoming]) -> Iterator[Sequence[Incoming]]:
    start, size = 0, 0
    for at, incoming in enumerate(batch):
        raw = incoming.raw
        own = len(raw) if isinstance(raw, str | bytes) else len(raw.content if isinstance(raw, Event) else str(raw))
        if at - start >= BATCH or (size + own > CHARACTERS and at > start):
            yield batch[start:at]
            start, size = at, 0
        size += own
    if start < len(batch):
        yield batch[start:]


def _step(left: "deque[Checked]") -> list[Checked]:
    share = SHORT if waiting.lately() else 1
    step: list[Checked] = []
    weight = 0
    while left and len(step) < STEP // share:
        found = left[0][1]
        weight += len(found.tags) if isinstance(found, Event) else 0
        if step and weight > WEIGHT // share:
            break
        step.append(left.popleft())
    return step


class _Transaction:
    """Events decided in the order given, step by step, and what is to follow from all of them."""

    def __init__(self, now: int, prepared: Mapping[str, skills.Projected]) -> None:
        self.now = now
        self.prepared = prepared
        self.outcomes: list[Outcome] = []
        self.changes = Changes()
        self.seen: list[tuple[str, str]] = []
        self.held: list[tuple[Event, str]] = []
        self.deleted = Tombstones()

    def take(self, step: list[Checked]) -> None:
        self.deleted = Tombstones.concerning([found for _, found in step if isinstance(found, Event)])
        for alone, run in groupby(step, key=lambda item: isinstance(item[1], Event) and _stands_alone(item[1])):
            if alone:
                self._bury(list(run))
            else:
                self._store_run(list(run))

    def finish(self) -> None:
        archive.sight(self.seen)
        if self.held:
            archive.hold(self.held)
        announce(self.changes, [outcome for outcome in self.outcomes if outcome.outcome == "stored"])

    def _store_run(self, run: list[Checked]) -> None:
        standing = [isinstance(found, Event) and self._countable(found) for _, found in run]
        fresh = {
            found.id: found
            for (_, found), stands in zip(run, standing, strict=True)
            if stands and isinstance(found, Event)
        }
        deletions = [event for event in fresh.values() if event.kind in FINAL]
        own = {event_id: self.prepared[event_id] for event_id in fresh if event_id in self.prepared}
        keys = {event_id: own[event_id].key if event_id in own else key_of(event) for event_id, event in fresh.items()}
        heads = archive.heads([key for key in keys.values() if key])
        problems = {event_id: skill.problem for event_id, skill in own.items() if skill.problem}
        new = archive.write(list(fresh.values()), problems, self.now, keys)
        winners: dict[Key, Event] = {}
        oldest: dict[Key, int] = {}
        buried = [event for event in deletions if event.id in new]
        for (incoming, found), stands in zip(run, standing, strict=True):
            key = keys.get(found.id)
            outcome = self._decide(found, incoming.relay, stands, new, key, heads, winners)
            self.outcomes.append(outcome)
            if key and outcome.event and outcome.outcome in {"stored", "older"}:
                oldest[key] = min(outcome.event.created_at, oldest.get(key, outcome.event.created_at))
        self.changes.merge(project(winners.values(), self.prepared, oldest))
        skills.backdate({key: at for key, at in oldest.items() if key not in winners and key.kind in kinds.SKILLS})
        touched = [key for event in buried for key in tombstones.bury(event, tombstones.rows_of(event))]
        if touched:
            self.changes.merge(reproject(list(dict.fromkeys(touched))))

    def _countable(self, event: Event) -> bool:
        """In the order given: a deletion of the same run covers what follows it."""
        if checking.is_held(event, self.now) or self.deleted.cover(event):
            return False
        if event.kind in FINAL:
            self.deleted.add(tombstones.rows_of(event))
        return True

    def _decide(
        self,
        found: Event | Outcome,
        relay: str,
        stands: bool,
        new: set[str],
        key: Key | None,
        heads: dict[Key, archive.Head],
        winners: dict[Key, Event],
    ) -> Outcome:
        """One outcome as if the events had come one by one; `new`, `heads` and `winners` follow.

        `stands`: no deletion covers it at its place.
        """
        if isinstance(found, Outcome):
            return found
        if checking.is_held(found, self.now):
            self.held.append((found, relay))
            return checking.held(found, relay)
        if not stands:
            return Outcome(found.id, "deleted", "its author deleted it", found, relay)
        self.seen.append((found.id, relay))
        if found.id not in new:
            return Outcome(found.id, "duplicate", "already in the archive", found, relay)
        new.remove(found.id)
        if key is None:  # a deletion
            return Outcome(found.id, "stored", "", found, relay)
        head = heads.get(key)
        if not newer(found, head):
            return Outcome(found.id, "older", f"{head[1] if head else ''} stands at {key.text}"[:300], found, relay)
        heads[key] = (found.created_at, found.id)
        winners[key] = found
        return Outcome(found.id, "stored", "", found, relay)

    def _bury(self, run: list[Checked]) -> None:
        for incoming, found in run:
            if isinstance(found, Event):  # it is: the run was chosen so
                self.outcomes.append(self._bury_one(found, incoming.relay))

    def _bury_one(self, event: Event, relay: str) -> Outcome:
        if checking.is_held(event, self.now):
            self.held.append((event, relay))
            return checking.held(event, relay)
        if self.deleted.cover(event):
            return Outcome(event.id, "deleted", "its author asked to vanish", event, relay)
        self.seen.append((event.id, relay))
        if not archive.write([event], {}, self.now):
            return Outcome(event.id, "duplicate", "already in the archive", event, relay)
        rows = tombstones.rows_of(event)
        self.changes.merge(reproject(tombstones.bury(event, rows)))
        self.deleted.add(rows)
        return Outcome(event.id, "stored", "", event, relay)


def _stands_alone(event: Event) -> bool:
    """What may bring back an older version or purges rows: it must see what came before it.

    A deletion by address needs no such care, since it covers every version up to its time alike.
    """
    return event.kind == kinds.VANISH or (event.kind == kinds.DELETION and bool(event.all("e")))
