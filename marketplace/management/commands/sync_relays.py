"""Read what relays hold, once: fills gaps that the listener may have left, or a new catalogue."""

import asyncio
import time
from collections import Counter
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace import ingest, relays
from marketplace.models import Relay
from marketplace.protocol.filters import Filter
from marketplace.protocol.kinds import CRAWLED
from marketplace.relays import Incoming, Reader, Status


class Command(BaseCommand):
    help = "Read all stored events of the kinds we keep from each relay, then end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("relays", nargs="*", help="addresses; without any those of the settings")
        parser.add_argument("--since", type=int, default=0, help="unix seconds to start from; 0 reads everything")

    def handle(self, *args: Any, **options: Any) -> None:
        urls = options["relays"] or settings.RELAYS
        try:
            urls = [relays.normal_url(url) for url in urls]
        except ValueError as error:
            raise CommandError(str(error)) from None
        unread = asyncio.run(self._read_all(urls, options["since"]))
        if unread:
            raise CommandError(f"Not read to the end: {', '.join(unread)}")

    async def _read_all(self, urls: list[str], since: int) -> list[str]:
        verified = relays.Verified()
        words = await asyncio.gather(*(self._read(url, since, verified) for url in urls))
        return [url for url, said in zip(urls, words, strict=True) if said]

    async def _read(self, url: str, since: int, verified: relays.Verified) -> str:
        counts: Counter[str] = Counter()
        wanted = Filter(kinds=frozenset(CRAWLED), since=since)

        async def sink(batch: list[Incoming]) -> None:
            outcomes = await sync_to_async(ingest.store)(batch, int(time.time()))
            counts.update(outcome.outcome for outcome in outcomes)

        async def report(status: Status) -> None:
            await sync_to_async(relays.record)(status)

        words = await Reader(url, lambda: [wanted], sink, report, since=since, verified=verified).catch_up()
        named = ", ".join(f"{counts[name]} {name}" for name in ingest.OUTCOMES if counts[name]) or "no events"
        self.stdout.write(f"{url}: {named}{'; ' + words if words else ''}")
        await report(Status(url, Relay.State.AWAY, words or "read to its end by sync_relays"))
        return words
