"""The same as `make up`, for those who look for a management command."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Set up and run web, relay, listener, worker and tick; Ctrl-C ends them all."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        os.execv(sys.executable, [sys.executable, "-m", "marketplace.management.up"])  # noqa: S606
