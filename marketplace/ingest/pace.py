"""Leaving room for other writers: on SQLite a bulk of transactions back to back would starve them for seconds."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from marketplace.ingest import sql, waiting

LONGEST_PAUSE = 0.25  # seconds
LOOK = 0.001
CHECKPOINT = 40_000  # changed rows: then the write-ahead log is copied back, after the turn, since nobody need wait
CACHE = 32_000  # KiB of pages kept in memory, so that those a transaction changes are written once, at its end

_own = threading.local()


@contextmanager
def write() -> Iterator[None]:
    """One ingest transaction; pauses before it only while another writer waits."""
    if connection.in_atomic_block:
        with transaction.atomic():
            sql.take_ingest_lock()
            yield
        return
    _make_ready()
    _give_way()
    with waiting.turn(), transaction.atomic():
        sql.take_ingest_lock()
        yield
    _copy_back()


def _make_ready() -> None:
    """Once for each connection that does bulk work."""
    connection.ensure_connection()
    if connection.vendor == "sqlite" and getattr(_own, "connection", None) is not connection.connection:
        _own.connection, _own.copied = connection.connection, connection.connection.total_changes
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA cache_size=-{CACHE}")


def _give_way() -> None:
    """Until whoever waits has the lock: asking for it again at once would mostly win against them."""
    until = time.monotonic() + LONGEST_PAUSE
    while waiting.others_wait() and time.monotonic() < until:
        time.sleep(LOOK)


def _copy_back() -> None:
    """SQLite would do it at the end of a commit, while others wait for the turn to end."""
    if connection.vendor != "sqlite" or connection.connection.total_changes - _own.copied < CHECKPOINT:
        return
    _own.copied = connection.connection.total_changes
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
        cursor.fetchall()
