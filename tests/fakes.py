"""An OpenAI-compatible server on loopback with scripted answers: real HTTP, and a history of what it was asked."""

import json
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass
class Scripted:
    """One answer of the server: a body, a status, headers; `delay` before it."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


def text(content: Any, finish: str = "stop", model: str = "gpt-4o-mini-2024-07-18", **usage: Any) -> Scripted:
    return message({"role": "assistant", "content": content}, finish, model, **usage)


def calls(*wanted: tuple[str, str, Any], finish: str = "tool_calls", **usage: Any) -> Scripted:
    """Tool calls as (id, name, arguments); arguments that are not text are encoded."""
    rows = [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str | None) else json.dumps(given)},
        }
        for call_id, name, given in wanted
    ]
    return message({"role": "assistant", "content": None, "tool_calls": rows}, finish, **usage)


def message(said: Any, finish: str = "stop", model: str = "gpt-4o-mini-2024-07-18", **usage: Any) -> Scripted:
    counted = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, **usage}
    choice = {"index": 0, "message": said, "finish_reason": finish}
    return Scripted(
        {"id": "x", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": counted}
    )


def error(status: int, words: str, **headers: str) -> Scripted:
    return Scripted(
        {"error": {"message": words}}, status, {name.replace("_", "-"): value for name, value in headers.items()}
    )


class ModelServer:
    """Answers in order, or by model name where `by_model` holds some; a plain text when nothing is scripted."""

    def __init__(self) -> None:
        self.answers: deque[Scripted] = deque()
        self.by_model: dict[str, deque[Scripted]] = {}
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.arrived: list[float] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server._take(body, self.headers.get("authorization", ""))
                answer = server._next(body.get("model", ""))
                time.sleep(answer.delay)
                raw = answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                """The history is the log."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """A caller that went away is no error of ours."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._lock = threading.Lock()

    def script(self, *answers: Scripted, model: str = "") -> None:
        (self.by_model.setdefault(model, deque()) if model else self.answers).extend(answers)

    def __enter__(self) -> "ModelServer":
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _take(self, body: dict[str, Any], key: str) -> None:
        with self._lock:
            self.arrived.append(time.time())
            self.asked.append(body)
            self.keys.append(key)

    def _next(self, model: str) -> Scripted:
        with self._lock:
            queue = self.by_model.get(model, self.answers)
            return queue.popleft() if queue else text("It is done.")
