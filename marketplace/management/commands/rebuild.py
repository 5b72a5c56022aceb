"""Recreate everything that is derived from the archive."""

import time
from typing import Any

from django.core.management.base import BaseCommand

from marketplace import ingest, recount

PROGRESS = 2.0  # seconds


class Command(BaseCommand):
    help = "Recreate skills, adoptions, authors, deletions and counts from the archived events."

    def handle(self, *args: Any, **options: Any) -> None:
        self.told = started = time.monotonic()
        done = ingest.rebuild(int(time.time()), self._progress)
        changed = recount.recount_all()
        self.stdout.write(f"{done} addresses rebuilt in {time.monotonic() - started:.1f} s, {changed} counts corrected")

    def _progress(self, done: int) -> None:
        if time.monotonic() - self.told > PROGRESS:
            self.told = time.monotonic()
            self.stderr.write(f"{done} addresses")
