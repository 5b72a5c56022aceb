"""An OpenAI-compatible server on loopback with scripted answers: real HTTP, and a history of what it was asked."""

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

MODEL = "gpt-4o-mini-2024-07-18"


@dataclass
class Scripted:
    """One answer of the server; asked to stream, a completion is sent in pieces."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0  # seconds before the first byte
    pause: float = 0.0  # seconds between two pieces
    pieces: int = 3  # of a streamed text
    cut_after: int | None = None  # pieces; then the connection just ends
    fails_with: Any = None  # an error inside the stream, after its pieces
    counted: bool = True  # whether a stream says what was used


def text(content: Any, finish: str = "stop", model: str = MODEL, **usage: Any) -> Scripted:
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


def message(said: Any, finish: str = "stop", model: str = MODEL, **usage: Any) -> Scripted:
    counted = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, **usage}
    choice = {"index": 0, "message": said, "finish_reason": finish}
    return Scripted(
        {"id": "x", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": counted}
    )


def error(status: int, words: str, **headers: str) -> Scripted:
    return Scripted(
        {"error": {"message": words}}, status, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def broken_off(after: int = 2) -> Scripted:
    """A streamed text whose connection ends in the middle; without streaming, half a body."""
    return replace(text("a text that never ends"), pieces=6, cut_after=after)


class ModelServer:
    """Answers in order, or by model name where `by_model` holds some; a plain text when nothing is scripted."""

    def __init__(self) -> None:
        self.answers: deque[Scripted] = deque()
        self.by_model: dict[str, deque[Scripted]] = {}
        self.asked: list[dict[str, Any]] = []  # bodies as they came
        self.keys: list[str] = []  # their Authorization headers
        self.arrived: list[float] = []  # unix seconds
        self._server = _Server(self)
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

    def next(self, body: dict[str, Any], key: str) -> Scripted:
        """Notes what was asked, and says what to answer."""
        with self._lock:
            self.arrived.append(time.time())
            self.asked.append(body)
            self.keys.append(key)
            queue = self.by_model.get(body.get("model", ""), self.answers)
            return queue.popleft() if queue else text("It is done.")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: ModelServer) -> None:
        self.script = script
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, *_: Any) -> None:
        """A caller that went away is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = self.server.script.next(body, self.headers.get("authorization", ""))
        time.sleep(answer.delay)
        if body.get("stream") and answer.status == 200 and isinstance(answer.body, dict):
            self._stream(answer, bool((body.get("stream_options") or {}).get("include_usage")))
        else:
            self._whole(answer)

    def _whole(self, answer: Scripted) -> None:
        raw = answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        if answer.cut_after is None:
            self.wfile.write(raw)
        else:
            self.wfile.write(raw[: len(raw) // 2])
            self._hang_up()

    def _stream(self, answer: Scripted, with_usage: bool) -> None:
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", "connection": "close", **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for at, chunk in enumerate(chunks(answer, with_usage)):
            if at == answer.cut_after:
                return self._hang_up()
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()
            time.sleep(answer.pause)
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True
        return None

    def _hang_up(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        """The history is the log."""


def chunks(answer: Scripted, with_usage: bool) -> Iterator[dict[str, Any]]:
    """A completion as the pieces in which OpenAI streams it."""
    whole = answer.body
    head = {"id": whole.get("id"), "object": "chat.completion.chunk", "created": 1, "model": whole.get("model")}
    for choice in whole.get("choices") or ():
        for delta in _deltas(choice.get("message") or {}, answer.pieces):
            yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        if answer.fails_with is not None:
            yield answer.fails_with
            return
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}]}
    if with_usage and answer.counted and whole.get("usage"):
        yield {**head, "choices": [], "usage": whole["usage"]}


def _deltas(said: dict[str, Any], pieces: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None}
    content = said.get("content")
    if isinstance(content, str):
        for piece in _parts(content, pieces):
            yield {"content": piece}
    for at, row in enumerate(said.get("tool_calls") or ()):
        function = row["function"]
        first = {"index": at, "id": row["id"], "type": "function"}
        yield {"tool_calls": [{**first, "function": {"name": function["name"], "arguments": ""}}]}
        for piece in _parts(function["arguments"] or "", 2):
            yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}


def _parts(content: str, pieces: int) -> Iterator[str]:
    size = max(1, -(-len(content) // pieces))
    for start in range(0, len(content), size):
        yield content[start : start + size]
