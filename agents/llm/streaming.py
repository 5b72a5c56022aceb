"""Pieces of a streamed answer, put together again as if it had come whole."""

from collections.abc import Iterable, Iterator
from typing import Any


class Heard:
    """Passes a provider's own pieces on, and keeps what litellm replaces: who answered, how it ended, what was used."""

    def __init__(self, pieces: Iterable[Any]) -> None:
        self.pieces = iter(pieces)
        self.model = self.finish = ""
        self.usage: Any = None
        self.any = False  # whether there was a piece at all

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        piece = next(self.pieces)
        self.any = True
        self.model = str(_of(piece, "model") or self.model)
        self.usage = _of(piece, "usage") or self.usage
        for choice in _of(piece, "choices") or ():
            self.finish = str(_of(choice, "finish_reason") or self.finish)
        return piece


class Assembly:
    """A chat completion in the making."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: dict[int, dict[str, Any]] = {}
        self.finish: str | None = None
        self.usage: Any = None

    @property
    def began(self) -> bool:
        return bool(self.text or self.calls)

    def add(self, piece: dict[str, Any]) -> bool:
        """Whether the piece brought text."""
        self.usage = piece.get("usage") or self.usage
        brought = False
        for choice in piece.get("choices") or ():
            self.finish = choice.get("finish_reason") or self.finish
            delta = choice.get("delta") or {}
            if isinstance(delta.get("content"), str) and delta["content"]:
                self.text.append(delta["content"])
                brought = True
            for row in delta.get("tool_calls") or ():
                self._call(row)
        return brought

    def _call(self, row: dict[str, Any]) -> None:
        at = row.get("index")
        at = at if isinstance(at, int) else len(self.calls)
        call = self.calls.setdefault(at, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        function = row.get("function") or {}
        call["id"] = call["id"] or row.get("id") or ""
        call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""

    def response(self, heard: Heard) -> dict[str, Any]:
        """Usage only as the provider itself gave it: litellm would fill in an estimate of its own."""
        message = {
            "role": "assistant",
            "content": "".join(self.text) or None,
            "tool_calls": [self.calls[at] for at in sorted(self.calls)] or None,
        }
        choice = {"index": 0, "message": message, "finish_reason": heard.finish or self.finish}
        usage = self.usage if heard.usage is not None else None
        return {"model": heard.model, "choices": [choice], "usage": usage, "streamed": True}


def _of(thing: Any, name: str) -> Any:
    """Pieces are objects from some providers and dicts from others."""
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)
