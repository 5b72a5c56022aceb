"""Turns at SQLite's one write lock: it keeps no queue and wakes nobody, so two lock files beside the database do.

Whoever asks for the write lock holds a shared lock on the first file meanwhile, so that a bulk of transactions can
see it and let it pass. The bulk locks the second file while it writes: waiting for that takes a millisecond longer
than it must, where SQLite's own waiting asks again after up to a tenth of a second.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection as default
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

WAITING, WRITING = "-waiting", "-writing"  # after the database's own name
# Pages of the write-ahead log at which a commit copies it back into the database. Ingest does so earlier and by
# itself (see `pace`), or a request that writes one row would pay for thousands that ingest wrote.
CHECKPOINT = 20_000
REMEMBER = 5.0  # seconds
LOOK = 0.001
LONGEST = 20.0  # seconds, as SQLite's own timeout: then SQLite says what is wrong
_READS = ("SELECT", "PRAGMA", "EXPLAIN")

_own = threading.local()


@receiver(connection_created, dispatch_uid="marketplace.ingest.waiting")
def watch(connection: BaseDatabaseWrapper, **_: object) -> None:
    """From now on this connection shows itself while it waits."""
    if not _has_file(connection):
        return
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT}")
    if _show not in connection.execute_wrappers:
        connection.execute_wrappers.append(_show)


def others_wait() -> bool:
    """Whether another writer, of this process or of any other, is asking for the write lock now."""
    if not _has_file(default):
        return False
    file = _file(default, WAITING)
    if not file.try_lock(fcntl.LOCK_EX):
        _own.seen = time.monotonic()
        return True
    file.unlock()
    return False


def lately() -> bool:
    """Whether this thread has seen others wait lately: they will be back."""
    return time.monotonic() - getattr(_own, "seen", -REMEMBER) < REMEMBER


@contextmanager
def turn() -> Iterator[None]:
    """A bulk's transaction: others wait for its end, and are woken then."""
    if not _has_file(default):
        yield
        return
    file = _file(default, WRITING)
    with _waiting(default):
        file.lock(fcntl.LOCK_EX)
    _own.writing = True
    try:
        yield
    finally:
        _own.writing = False
        file.unlock()


def _show(execute: Callable[..., Any], sql: str, params: object, many: bool, context: dict[str, Any]) -> Any:
    connection = context["connection"]
    if connection.in_atomic_block or sql.startswith(_READS) or getattr(_own, "writing", False):
        return execute(sql, params, many, context)
    with _waiting(connection):
        file = _file(connection, WRITING)
        file.lock(fcntl.LOCK_SH)
        try:
            return execute(sql, params, many, context)  # BEGIN, or a statement that is a transaction of its own
        finally:
            file.unlock()


@contextmanager
def _waiting(connection: Any) -> Iterator[None]:
    file = _file(connection, WAITING)
    file.lock(fcntl.LOCK_SH)
    try:
        yield
    finally:
        file.unlock()


class _File:
    """Opened once by each thread of each process, since a lock belongs to the opened file."""

    def __init__(self, path: str) -> None:
        self._number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def try_lock(self, kind: int) -> bool:
        try:
            fcntl.flock(self._number, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock(self, kind: int) -> None:
        """Goes on without it in the end: who is stopped while holding it must not stop everybody."""
        until = time.monotonic() + LONGEST
        while not self.try_lock(kind) and time.monotonic() < until:
            time.sleep(LOOK)

    def unlock(self) -> None:
        fcntl.flock(self._number, fcntl.LOCK_UN)

    def __del__(self) -> None:
        os.close(self._number)


def _has_file(connection: Any) -> bool:
    return connection.vendor == "sqlite" and not connection.is_in_memory_db()


def _file(connection: Any, suffix: str) -> _File:
    key = (os.getpid(), f"{connection.settings_dict['NAME']}{suffix}")
    files: dict[tuple[int, str], _File] = _own.__dict__.setdefault("files", {})
    if key not in files:
        files[key] = _File(key[1])
    return files[key]
