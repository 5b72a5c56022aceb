"""The relay that comes with the product: nostr_sdk's LocalRelay on loopback, its events kept in a folder."""

import asyncio
import os
import signal
import sys
import time
from datetime import UTC, datetime
from typing import Any

import nostr_sdk
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import close_old_connections

from marketplace.models import Heartbeat

BEAT = 5.0  # seconds
# Its default of 60 a minute would refuse an author who publishes a dozen skills with their lists.
NOTES_PER_MINUTE = 6_000


class Command(BaseCommand):
    help = "Serve a Nostr relay on 127.0.0.1 until SIGTERM; events are kept in the data folder."
    requires_system_checks = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=settings.RELAY_PORT)

    trouble = ""  # said once

    def handle(self, *args: Any, **options: Any) -> None:
        code = asyncio.run(self._serve(options["port"]))
        # At once: threads of the relay's library may still call into an interpreter that is being taken down.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    async def _serve(self, port: int) -> int:
        loop = asyncio.get_running_loop()
        # Without it every publish times out: the database is a Python object to the relay.
        nostr_sdk.uniffi_set_event_loop(loop)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        folder = settings.VAR_DIR / "relay"
        folder.mkdir(parents=True, exist_ok=True)
        database = await nostr_sdk.NostrLmdb.open(str(folder))
        limits = nostr_sdk.RateLimit(max_reqs=200, notes_per_minute=NOTES_PER_MINUTE)
        builder = nostr_sdk.LocalRelayBuilder().addr("127.0.0.1").port(port).database(database).rate_limit(limits)
        relay = builder.max_connections(500).build()
        try:
            await relay.run()
        except nostr_sdk.NostrSdkError as error:
            self.stderr.write(_why(error, port))
            return 1
        self.stdout.write(f"relay at ws://127.0.0.1:{port}, events in {folder}")
        self.stdout.flush()
        await self._live(stop, port)
        relay.shutdown()
        return 0

    async def _live(self, stop: asyncio.Event, port: int) -> None:
        while not stop.is_set():
            await asyncio.to_thread(self._beat, port)
            try:
                await asyncio.wait_for(stop.wait(), BEAT)
            except TimeoutError:
                continue

    def _beat(self, port: int) -> None:
        try:
            Heartbeat.beat("relay", f"127.0.0.1:{port}", datetime.fromtimestamp(time.time(), UTC))
        except Exception as error:
            # The relay serves on; the next beat tries again.
            if str(error) != self.trouble:
                self.stderr.write(f"no heartbeat: {error}")
            self.trouble = str(error)
        finally:
            close_old_connections()


def _why(error: Exception, port: int) -> str:
    words = str(error)
    if "in use" in words.lower():
        return f"Port {port} is taken by another program. Choose another with RELAY_PORT."
    return f"The relay cannot start: {words}"
