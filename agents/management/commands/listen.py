"""Listens to relays: skills and lists go to the archive, events that fit a trigger start runs."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, DataError, IntegrityError, connection
from django.utils import timezone

from agents import arming, dispatch
from agents.dispatch import hearing
from agents.management import inboxes
from agents.management.watching import Watch, look, revision
from agents.models import Trigger
from marketplace import celery, ingest, relays
from marketplace.models import Relay
from marketplace.protocol import checks, kinds
from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter
from marketplace.protocol.triggers import Occasion

log = logging.getLogger(__name__)

LOOK_EVERY = 0.5  # seconds between two looks for changed triggers
INBOXES_EVERY = 2.0  # seconds between two looks at whom messages may be for
FORGET_EVERY = 3_600.0
BEAT_EVERY = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before a reader that failed starts again
STEADY = 60.0  # one that ran this long starts the pauses anew
ENDS_WITHIN = 1.8  # seconds from a signal to the end, whatever hangs
REMEMBERED = 20_000  # events already dispatched; the rest is told by the occasion's key
CATALOGUE = Filter(kinds=frozenset(kinds.CRAWLED))

T = TypeVar("T")


class Command(BaseCommand):
    help = "Read the relays for as long as it runs: keep the catalogue, fire triggers."
    requires_system_checks = []  # they load every page

    def handle(self, *args: Any, **options: Any) -> None:
        asyncio.run(Listener().run())


class Listener:
    """One reader per relay in the event loop; everything that touches the database in one thread of its own."""

    def __init__(self) -> None:
        self.watch = Watch()
        self.inboxes = inboxes.Inboxes()
        self.inboxes_at = self.forget_at = 0.0
        self.readers: dict[str, relays.Reader] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.seen: OrderedDict[str, None] = OrderedDict()
        self.database = ThreadPoolExecutor(1, thread_name_prefix="database")
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        await self.in_database(arming.arm_all, timezone.now(), True)
        beat_at = 0.0
        while not self.stopping.is_set():
            await self.follow_changes()
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + BEAT_EVERY
                await self.in_database(self._beat)
            try:
                await asyncio.wait_for(self.stopping.wait(), LOOK_EVERY)
            except TimeoutError:
                continue
        await self._end()

    def stop(self) -> None:
        self.stopping.set()
        # A name server or a database that hangs must not hold the process back: rows are whole or not there.
        ending = threading.Timer(ENDS_WITHIN, os._exit, [0])
        ending.daemon = True
        ending.start()

    async def in_database(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.database, _patiently, self, work, arguments)

    async def follow_changes(self) -> None:
        """Readers and filters as the live triggers want them; one query while nothing changed."""
        moved = await self._look_at_inboxes()
        if self.readers and not moved and await self.in_database(revision) == self.watch.revision:
            return
        self.watch = await self.in_database(look)
        wanted = {*settings.RELAYS, *self.watch.own_relays, *self.inboxes.relays}
        known: dict[str, tuple[bool, int]] = await self.in_database(_known_relays, wanted)
        for url in wanted - self.readers.keys():
            reads, synced_until = known.get(url, (True, 0))
            if reads:
                self._follow(url, synced_until)
        for url in self.readers.keys() - wanted:
            self.readers.pop(url)
            self.tasks.pop(url).cancel()
        for reader in self.readers.values():
            reader.refresh()

    async def _look_at_inboxes(self) -> bool:
        """Whether other messages are to be asked for."""
        if time.monotonic() < self.inboxes_at:
            return False
        self.inboxes_at = time.monotonic() + INBOXES_EVERY
        return await self.in_database(self.inboxes.look)

    def _follow(self, url: str, synced_until: int) -> None:
        reader = relays.Reader(url, lambda: self.filters(url), self.take, self._report, since=synced_until)
        self.readers[url] = reader
        self.tasks[url] = asyncio.create_task(self._keep_reading(reader), name=url)

    async def _keep_reading(self, reader: relays.Reader) -> None:
        """Until cancelled: what ends a reader is our own fault, said beside its relay, and it starts again."""
        failures = 0
        while True:
            started = time.monotonic()
            try:
                await reader.run()
            except Exception as error:
                failures = 1 if time.monotonic() - started > STEADY else failures + 1
                pause = min(FIRST_PAUSE * 2.0 ** (failures - 1), LONGEST_PAUSE)
                log.exception("reading %s ended; starting again in %.0f s", reader.url, pause)
                await self._tell_of(error, reader.url, pause)
                reader.passed.clear()  # some of it was handed on and not dealt with
                await asyncio.sleep(pause)

    async def _tell_of(self, error: Exception, url: str, pause: float) -> None:
        words = f"reading it failed here: {type(error).__name__}: {error}"[:240]
        try:
            await self._report(relays.Status(url, Relay.State.FAULTY, f"{words}; starting again in {pause:.0f} s"))
        except Exception:
            log.exception("the state of %s could not be written", url)

    def filters(self, url: str) -> list[Filter]:
        synced = self.readers[url].synced_until
        own = [*self.watch.filters(url, synced), *self.inboxes.filters(url, synced)]
        return [CATALOGUE, *own] if url in settings.RELAYS else own

    async def take(self, batch: list[relays.Incoming]) -> None:
        """A reader's sink: its relay waits until these are dealt with."""
        await self.in_database(self._take, batch)

    async def _report(self, status: relays.Status) -> None:
        await self.in_database(relays.record, status)

    def _take(self, batch: list[relays.Incoming]) -> None:
        now = timezone.now()
        for incoming in batch:
            if isinstance(incoming.raw, Event):
                _alone(self._fire, incoming.raw, incoming.relay)
        for incoming in batch:  # after the triggers: opening messages takes its time
            if isinstance(incoming.raw, Event) and incoming.raw.kind in inboxes.KINDS:
                _alone(self.inboxes.take, incoming.raw, incoming.relay, now)
        catalogue = [one for one in batch if isinstance(one.raw, Event) and one.raw.kind in CATALOGUE_KINDS]
        if catalogue:
            ingest.store(catalogue, int(now.timestamp()))

    def _fire(self, event: Event, relay: str) -> None:
        """Runs for the triggers it fits, each event once however many relays deliver it."""
        now = timezone.now()
        if event.id in self.seen or checks.too_far_ahead(event, int(now.timestamp())):
            return
        fired = self.watch.fired(event)
        if fired:
            at = int(now.timestamp())
            dispatch.runs_for(Occasion("nostr-subscription", event.id, at, event=event, relay=relay), now, fired)
            # After the runs are there: what was not considered is asked for again.
            Trigger.objects.filter(pk__in=fired, last_seen__lt=event.created_at).update(
                last_seen=min(event.created_at, at)
            )
        self.seen[event.id] = None
        if len(self.seen) > REMEMBERED:
            self.seen.popitem(last=False)

    def _beat(self) -> None:
        if time.monotonic() >= self.forget_at:
            self.forget_at = time.monotonic() + FORGET_EVERY
            hearing.forget(timezone.now())
        celery.beat("listener", "listener", f"{len(self.readers)} relays, {len(self.watch.triggers)} triggers")

    async def _end(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        self.database.shutdown(wait=True, cancel_futures=True)


CATALOGUE_KINDS = frozenset(kinds.CRAWLED)


def _alone(work: Callable[..., None], event: Event, *arguments: Any) -> None:
    """One event that cannot be dealt with takes no other with it, and is not tried for ever."""
    try:
        work(event, *arguments)
    except Exception as error:
        if isinstance(error, DatabaseError) and not isinstance(error, DataError | IntegrityError):
            raise  # the database is away: see `_patiently`
        log.exception("event %s could not be dealt with", event.id)


def _patiently(listener: Listener, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Again until the database is back: an event was handed over once and would else be lost."""
    pause = 0.2
    while True:
        try:
            return work(*arguments)
        except DatabaseError as error:
            if listener.stopping.is_set():
                raise
            log.warning("the database is away (%s); trying again in %.1f s", type(error).__name__, pause)
            connection.close()
            time.sleep(pause)
            pause = min(pause * 2, 5.0)


def _known_relays(urls: set[str]) -> dict[str, tuple[bool, int]]:
    rows = Relay.objects.filter(url__in=urls)
    # Events may have been seen on a relay, by publishing to it, before anybody wanted to read it.
    rows.filter(state=Relay.State.NEW).update(reads=True)
    return {relay.url: (relay.reads, relay.synced_until) for relay in rows.all()}
