"""Holding a claimed run: its lease is renewed by a thread while the worker works."""

import threading
import time
from types import TracebackType

from django.db import DatabaseError, connection
from django.utils import timezone

from agents.models import Run
from agents.runner.errors import Stopped

RENEW_SECONDS = 15.0


class Lease:
    """Renews until left; `check()` raises Stopped once the run is no longer ours."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._done = threading.Event()
        self._looked = time.monotonic()  # it was claimed just now
        self._thread = threading.Thread(target=self._renew, name=f"lease-{run.pk}", daemon=True)

    def __enter__(self) -> "Lease":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._done.set()

    def check(self, within: float = 0.0) -> None:
        """Before every step. One query, unless the last look was less than `within` seconds ago."""
        if time.monotonic() - self._looked < within:
            return
        self._looked = time.monotonic()
        if not Run.objects.filter(pk=self.run.pk, status=Run.Status.RUNNING, lease_token=self.run.lease_token).exists():
            raise Stopped("The run was stopped.")

    def _renew(self) -> None:
        while not self._done.wait(RENEW_SECONDS):
            try:
                if not self.run.renew(timezone.now()):
                    return
            except DatabaseError:
                continue  # the database may be back before the lease runs out
            finally:
                connection.close()
