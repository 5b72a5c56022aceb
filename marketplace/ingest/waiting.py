"""Who waits for SQLite's one write lock: it keeps no queue that shows, so writers stand in one beside the database.

A writer holds a shared lock on a file while it asks for the write lock; whoever has the write lock can see that,
and need pause for nobody else.
"""

import fcntl
import os
import threading
from collections.abc import Callable
from typing import Any

from django.db import connection as default
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

SUFFIX = "-waiting"  # after the database's own name
# Pages of the write-ahead log at which a writer copies it back into the database. Ingest does so earlier (see
# `pace`), or a request that writes one row would pay for thousands that ingest wrote.
CHECKPOINT = 20_000
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
    file = _file(default)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def _show(execute: Callable[..., Any], sql: str, params: object, many: bool, context: dict[str, Any]) -> Any:
    connection = context["connection"]
    if connection.in_atomic_block or sql.startswith(_READS):
        return execute(sql, params, many, context)
    file = _file(connection)
    fcntl.flock(file, fcntl.LOCK_SH)
    try:
        return execute(sql, params, many, context)  # BEGIN, or a statement that is a transaction of its own
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


class _File:
    """Opened once by each thread of each process, since a lock belongs to the opened file."""

    def __init__(self, path: str) -> None:
        self.path, self.process = path, os.getpid()
        self._number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def fileno(self) -> int:
        return self._number

    def __del__(self) -> None:
        os.close(self._number)


def _has_file(connection: Any) -> bool:
    return connection.vendor == "sqlite" and not connection.is_in_memory_db()


def _file(connection: Any) -> _File:
    path = f"{connection.settings_dict['NAME']}{SUFFIX}"
    file: _File | None = getattr(_own, "file", None)
    if file is None or (file.path, file.process) != (path, os.getpid()):
        file = _own.file = _File(path)
    return file
