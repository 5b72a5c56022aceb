"""Leaving room for other writers: on SQLite a bulk of batches back to back would starve them for seconds."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from marketplace.ingest import sql

# Seconds between two of our transactions while others write, or as long as our last one took: SQLite's waiters
# ask again after 1, 2, 5, 10, 15, 20 ms, so half of the time must be theirs.
GAP = 0.010
BUSY = 0.002  # waiting longer than this for the lock means that somebody else had it
CHECKPOINT = 8_000  # pages of the write-ahead log: batches touch the same pages again and again
CACHE = 32_000  # KiB of pages kept in memory, so that those a transaction changes are written once, at its end
REMEMBER = 1.0  # seconds that a sign of another writer counts

_own = threading.local()


@contextmanager
def write() -> Iterator[None]:
    """One ingest transaction; pauses before it only while another writer shows itself."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        with transaction.atomic():
            sql.take_ingest_lock()
            yield
        return
    _give_way()
    asked = time.monotonic()
    with transaction.atomic():
        began = time.monotonic()
        if began - asked > BUSY:
            _own.others_until = began + REMEMBER
        yield
    _own.ended = time.monotonic()
    _own.held = _own.ended - began


def others_write() -> bool:
    """Whether another writer has shown itself lately: then transactions are kept short, too."""
    return time.monotonic() < getattr(_own, "others_until", 0.0)


def _give_way() -> None:
    """SQLite tells in `data_version` that another connection has committed since we last asked."""
    with connection.cursor() as cursor:
        if getattr(_own, "connection", None) is not connection.connection:
            _own.connection = connection.connection
            cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT}")
            cursor.execute(f"PRAGMA cache_size=-{CACHE}")
        cursor.execute("PRAGMA data_version")
        version = cursor.fetchone()[0]
    now = time.monotonic()
    if version != getattr(_own, "version", version):
        _own.others_until = now + REMEMBER
    _own.version = version
    if others_write():
        left = getattr(_own, "ended", 0.0) + max(GAP, getattr(_own, "held", 0.0)) - now
        if left > 0:
            time.sleep(left)
