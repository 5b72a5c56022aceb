"""A real relay in this process, on a free loopback port, in a thread of its own."""

import asyncio
import threading
from typing import Any

import nostr_sdk


class LocalRelay:
    """`with LocalRelay() as relay:` then `relay.url`; `stop` and `start` keep port and events."""

    def __init__(self, limit: int = 500) -> None:
        self.limit = limit
        self.port = 0
        self.database: Any = None
        self.url = ""

    def __enter__(self) -> "LocalRelay":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10), "the relay did not start"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        nostr_sdk.uniffi_set_event_loop(self._loop)
        limits = nostr_sdk.RateLimit(max_reqs=500, notes_per_minute=1_000_000)
        builder = nostr_sdk.LocalRelayBuilder().addr("127.0.0.1").rate_limit(limits)
        builder = builder.max_filter_limit(self.limit).default_filter_limit(self.limit)
        relay = (builder.port(self.port) if self.port else builder).build()
        await relay.run()
        self.url = str(await relay.url()).rstrip("/")
        self.port = int(self.url.rpartition(":")[2])
        self._ready.set()
        await self._stop.wait()
        relay.shutdown()
        await asyncio.sleep(0.05)
