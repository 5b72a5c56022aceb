"""Leaving room for other writers: on SQLite a bulk of transactions back to back would starve them for seconds."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from marketplace.ingest import sql, waiting

# SQLite's waiters ask again after 1, 2, 5, 10, 15, 20, 25, 50, 100 ms: who waits asks within this.
LONGEST_PAUSE = 0.25  # seconds
LOOK = 0.001
CHECKPOINT = 10_000  # pages of the write-ahead log: transactions touch the same pages again and again
CACHE = 32_000  # KiB of pages kept in memory, so that those a transaction changes are written once, at its end

_own = threading.local()


@contextmanager
def write() -> Iterator[None]:
    """One ingest transaction; pauses before it only while another writer waits."""
    if not connection.in_atomic_block:
        _make_ready()
        _give_way()
    with transaction.atomic():
        sql.take_ingest_lock()
        yield


def _make_ready() -> None:
    """Once for each connection that does bulk work."""
    connection.ensure_connection()
    if connection.vendor == "sqlite" and getattr(_own, "connection", None) is not connection.connection:
        _own.connection = connection.connection
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT}")
            cursor.execute(f"PRAGMA cache_size=-{CACHE}")


def _give_way() -> None:
    """Until whoever waits has the lock: asking for it again at once would mostly win against them."""
    until = time.monotonic() + LONGEST_PAUSE
    while waiting.others_wait() and time.monotonic() < until:
        time.sleep(LOOK)
