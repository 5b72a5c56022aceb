"""Keeps time: schedules, what messages missed, what has run out; a second copy does no harm."""

import signal
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand

from agents import tasks

EVERY = 1.0  # seconds


class Command(BaseCommand):
    help = "Do once a second what time alone brings about, until SIGTERM."
    requires_system_checks = []  # they load every page

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        due = time.monotonic()
        while not stopping.wait(max(0.0, due - time.monotonic())):
            tasks.tick()
            # From now, and not from when it was due: after a long one there is nothing to catch up with.
            due = max(due, time.monotonic() - EVERY) + EVERY
