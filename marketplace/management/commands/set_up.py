"""What a start needs before any process: the database's tables and the static files."""

import hashlib
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Bring the database up to date; collect static files when they changed."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        stamp, found = settings.VAR_DIR / "static.stamp", fingerprint()
        if not stamp.exists() or stamp.read_text() != found or not settings.STATIC_ROOT.exists():
            call_command("collectstatic", interactive=False, verbosity=0)
            stamp.write_text(found)


def fingerprint() -> str:
    """Of every source of static files: its path, size and time."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list([]):
            found = Path(storage.path(path)).stat()
            digest.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()
