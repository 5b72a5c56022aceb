"""Pieces of a streamed answer, put together again as if it had come whole."""

import json
from collections.abc import Iterable, Iterator
from typing import Any


class Heard:
    """Passes a provider's own pieces on, and keeps what litellm replaces or drops.

    Who answered, how it ended, what was used, text in lists of parts, and a refusal in a field of its own.
    """

    def __init__(self, pieces: Iterable[Any]) -> None:
        self.pieces = iter(pieces)
        self.model = self.finish = ""
        self.usage: Any = None
        self.any = False  # whether there was a piece at all
        self.parts: list[Any] = []
        self.refusal = ""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        piece = next(self.pieces)
        self.any = True
        self.model = str(_of(piece, "model") or self.model)
        self.usage = _of(piece, "usage") or self.usage
        choices = _of(piece, "choices")
        for choice in choices if isinstance(choices, list) else ():
            self.finish = str(_of(choice, "finish_reason") or self.finish)
            delta = _of(choice, "delta")
            content, refusal = _of(delta, "content"), _of(delta, "refusal")
            self.parts += content if isinstance(content, list) else []
            self.refusal += refusal if isinstance(refusal, str) else ""
        return piece


class Assembly:
    """A chat completion in the making."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: list[dict[str, Any]] = []
        self.at: dict[int, dict[str, Any]] = {}  # the call that an index means now
        self.finish: str | None = None
        self.usage: Any = None

    @property
    def began(self) -> bool:
        return bool(self.text or self.calls)

    def add(self, piece: dict[str, Any]) -> bool:
        """Whether the piece brought text. What has not the shape of a piece is passed over."""
        self.usage = piece.get("usage") or self.usage
        brought = False
        for choice in _rows(piece.get("choices")):
            self.finish = choice.get("finish_reason") or self.finish
            delta = _row(choice.get("delta"))
            if isinstance(delta.get("content"), str) and delta["content"]:
                self.text.append(delta["content"])
                brought = True
            for row in _rows(delta.get("tool_calls")):
                self._call(row)
        return brought

    def _call(self, row: dict[str, Any]) -> None:
        at = row.get("index")
        at = at if isinstance(at, int) else len(self.calls)
        function = _row(row.get("function"))
        call = self.at.get(at)
        # Some servers send every whole call with index 0.
        another = call is not None and function.get("name") and row.get("id") and row["id"] != call["id"] != ""
        if call is None or another:
            call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self.at[at] = call
            self.calls.append(call)
        given = function.get("arguments")
        call["id"] = call["id"] or row.get("id") or ""
        call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
        call["function"]["arguments"] += given if isinstance(given, str) else json.dumps(given) if given else ""

    def response(self, heard: Heard) -> dict[str, Any]:
        """Usage only as the provider itself gave it: litellm would fill in an estimate of its own."""
        message = {
            "role": "assistant",
            "content": "".join(self.text) or heard.parts or None,
            "refusal": heard.refusal or None,
            "tool_calls": self.calls or None,
        }
        choice = {"index": 0, "message": message, "finish_reason": heard.finish or self.finish}
        usage = self.usage if heard.usage is not None else None
        return {"model": heard.model, "choices": [choice], "usage": usage, "streamed": True}


def _row(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _rows(value: Any) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _of(thing: Any, name: str) -> Any:
    """Pieces are objects from some providers and dicts from others."""
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)
