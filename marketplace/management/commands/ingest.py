"""Take events from a file or standard input through the same door as the listener."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace import ingest
from marketplace.ingest import Incoming, Outcome
from marketplace.protocol.checks import MAX_BYTES

BATCH = 1_000  # lines handed over at once, fewer where they are long
TOGETHER = 8_000_000  # bytes of them
LONGEST = MAX_BYTES * 6  # bytes of a line; an event whose every byte is escaped is no longer
PROGRESS = 2.0  # seconds


class Command(BaseCommand):
    help = (
        "One JSON event per line in, one JSON line with its outcome out; progress on standard error. "
        "Ends with 1 where every line was refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="a file of JSON lines, or - for standard input")
        parser.add_argument("--relay", default="", help="the relay these events were seen on")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["file"] == "-":
            self._take(sys.stdin.buffer, options["relay"])
            return
        try:
            with Path(options["file"]).open("rb") as source:
                self._take(source, options["relay"])
        except OSError as error:
            raise CommandError(f"{options['file']}: {error.strerror}") from None

    def _take(self, source: IO[bytes], relay: str) -> None:
        counts: Counter[str] = Counter()
        started = told = time.monotonic()
        for batch in _batches(source):
            now = int(time.time())
            outcomes = ingest.store([Incoming(line, relay) for line in batch], now)
            counts.update(outcome.outcome for outcome in outcomes)
            self.stdout.write("\n".join(map(_line, outcomes)))
            if time.monotonic() - told > PROGRESS:
                told = time.monotonic()
                self.stderr.write(_words(counts, told - started))
                self.stderr.flush()
        self.stdout.flush()
        self.stderr.write(_words(counts, time.monotonic() - started) or "no events")
        if counts and counts["refused"] == counts.total():
            raise CommandError("every line was refused; the reasons stand on standard output")


def _batches(source: IO[bytes]) -> Iterator[list[bytes]]:
    """Lines without the empty ones; of a line that is far too long only the start is kept."""
    batch: list[bytes] = []
    size = 0
    while line := source.readline(LONGEST + 1):
        if len(line) > LONGEST:
            _skip_rest(source, line)
        elif not (line := line.strip()):
            continue
        batch.append(line)
        size += len(line)
        if len(batch) == BATCH or size > TOGETHER:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _skip_rest(source: IO[bytes], line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = source.readline(LONGEST)


def _line(outcome: Outcome) -> str:
    return json.dumps({"id": outcome.id, "outcome": outcome.outcome, "reason": outcome.reason}, ensure_ascii=False)


def _words(counts: Counter[str], seconds: float) -> str:
    named = ", ".join(f"{counts[name]} {name}" for name in ingest.OUTCOMES if counts[name])
    return f"{counts.total()} events: {named}; {counts.total() / max(seconds, 0.001):,.0f} a second" if counts else ""
