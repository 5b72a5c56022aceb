"""A relay on loopback that answers as it is told, for what a real one does only rarely."""

import json
import threading
from types import TracebackType
from typing import Any

from websockets.sync.server import Server, ServerConnection, serve


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
