"""How one answer of a model is written down for the tests: as a whole body, and as the pieces of a stream."""

import json
from dataclasses import dataclass
from typing import Any

from tests.fakes import MODEL, Scripted, message

LIMIT = 50  # tokens that the request allows


@dataclass(frozen=True)
class Shape:
    """One answer: as a whole body, and in the pieces of a stream; None where it has no such form."""

    name: str
    whole: Scripted | None
    becomes: str
    streamed: Scripted | None = None
    streams_to: str = ""  # the same as whole unless said


def said(name: str, becomes: str, answer: Scripted, streams_to: str = "") -> Shape:
    """The scripted server streams it in OpenAI's pieces."""
    return Shape(name, answer, becomes, answer, streams_to or becomes)


def whole(name: str, becomes: str, answer: Scripted) -> Shape:
    return Shape(name, answer, becomes)


def stream(name: str, becomes: str, *chunks: Any, done: bool = True) -> Shape:
    return Shape(name, None, "", sse(*chunks, done=done), becomes)


def both(name: str, becomes: str, answer: Scripted, *chunks: Any, streams_to: str = "") -> Shape:
    return Shape(name, answer, becomes, sse(*chunks), streams_to or becomes)


def sse(*chunks: Any, done: bool = True) -> Scripted:
    lines = [f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n" for chunk in chunks]
    return Scripted(
        "".join([*lines, "data: [DONE]\n\n" if done else ""]), headers={"content-type": "text/event-stream"}
    )


def piece(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def end(finish: str = "stop") -> dict[str, Any]:
    return piece({}, finish)


def body(**fields: Any) -> Scripted:
    head = {"id": "x", "object": "chat.completion", "created": 1, "model": MODEL}
    return Scripted({**head, "usage": {"prompt_tokens": 3, "completion_tokens": 2}, **fields})


def call(raw: Any, finish: str = "tool_calls", name: Any = "f", call_id: Any = "c1", **usage: Any) -> Scripted:
    """One tool call exactly as given."""
    row = {"id": call_id, "type": "function", "function": {"name": name, "arguments": raw}}
    return message({"role": "assistant", "content": None, "tool_calls": [row]}, finish, **usage)
