"""Relays for tests: the real embedded one in a thread, and one on loopback that answers as it is told."""

import asyncio
import json
import threading
from types import TracebackType
from typing import Any

import nostr_sdk
from websockets.sync.server import Server, ServerConnection, serve


class RealRelay:
    """nostr_sdk's LocalRelay on a free port of loopback, in memory."""

    def __init__(self) -> None:
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "RealRelay":
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)
        return self

    async def _start(self) -> str:
        nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
        limit = nostr_sdk.RateLimit(max_reqs=500, notes_per_minute=60_000)
        self._relay = nostr_sdk.LocalRelayBuilder().addr("127.0.0.1").rate_limit(limit).build()
        await self._relay.run()
        return str(await self._relay.url()).rstrip("/")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._relay.shutdown()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class ToldRelay:
    """Keeps events, and answers as `answer` says: ok, refuse, silent, other (an OK for another id), no-end."""

    def __init__(self, answer: str = "ok") -> None:
        self.answer = answer
        self.events: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self._server: Server | None = None

    def __enter__(self) -> "ToldRelay":
        self._server = serve(self._serve, "127.0.0.1", 0, compression=None)
        self.url = f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        assert self._server
        self._server.shutdown()
        self._thread.join(10)

    def _serve(self, connection: ServerConnection) -> None:
        for text in connection:
            verb, *rest = json.loads(text)
            if verb == "EVENT":
                self._event(connection, rest[0])
            elif verb == "REQ" and self.answer != "silent":
                self._request(connection, rest[0], rest[1:])

    def _event(self, connection: ServerConnection, event: dict[str, Any]) -> None:
        self.received.append(event)
        if self.answer in {"ok", "no-end"}:
            self.events.append(event)
            connection.send(json.dumps(["OK", event["id"], True, ""]))
        elif self.answer == "refuse":
            connection.send(json.dumps(["OK", event["id"], False, "blocked: pay first"]))
        elif self.answer == "other":
            connection.send(json.dumps(["OK", "0" * 64, True, ""]))

    def _request(self, connection: ServerConnection, name: str, filters: list[dict[str, Any]]) -> None:
        for event in self.events:
            if any(event["kind"] in wanted.get("kinds", []) for wanted in filters):
                connection.send(json.dumps(["EVENT", name, event]))
        if self.answer != "no-end":
            connection.send(json.dumps(["EOSE", name]))


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
