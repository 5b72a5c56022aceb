"""A model's answer becomes one of a few defined outcomes; nothing about its shape is taken for granted."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 32
MAX_ARGUMENTS = 200_000  # characters
LONGEST_NUMBER = 400  # characters: more than any float has
# How providers say that a filter ended the answer, in small letters; more may follow.
_FILTERED = (
    "content_filter",
    "safety",
    "prohibited",
    "blocklist",
    "recitation",
    "spii",
    "guardrail",
    "sensitive",
    "moderation",
    "refusal",
)
_CUT = "cut off: the answer reached its length limit; nothing was done. Say it in fewer words or in several calls"


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call as asked; `problem` says why it must not be executed, `cut` that its end is missing."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    raw: str = ""
    problem: str = ""
    cut: bool = False


class _Cut(ValueError):
    """The arguments end in the middle."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """kind: text, calls, empty, filtered, truncated."""

    kind: str
    text: str = ""
    calls: tuple[Call, ...] = ()


def read(response: Any, max_tokens: int | None = None) -> Outcome:
    """The outcome of a chat completion, given as plain JSON values; `max_tokens` is what was sent."""
    choices = response.get("choices") if isinstance(response, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return Outcome("empty")
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    finish = str(choice.get("finish_reason") or "").lower()
    # A refusal in a field of its own is what the model said.
    text = _text(message.get("content")) or _text(message.get("refusal"))
    raw_calls = message.get("tool_calls")
    if any(word.startswith(_FILTERED) for word in (finish, _native(choice))):
        return Outcome("filtered", text)
    cut = finish in {"length", "max_tokens"} or _used_up(response, max_tokens)
    calls = _calls(raw_calls if isinstance(raw_calls, list) else [], cut and finish != "stop")
    if calls:
        return Outcome("truncated" if any(call.cut for call in calls) else "calls", text, calls)
    if finish in {"length", "max_tokens"}:
        return Outcome("truncated", text)
    return Outcome("text", text) if text.strip() else Outcome("empty")


def _text(content: Any) -> str:
    """A text, or the text of a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") if isinstance(part, dict) else part for part in content]
    return "".join(part for part in parts if isinstance(part, str))


def _native(choice: dict[str, Any]) -> str:
    """How the provider itself said it ended, where a library in between calls every unknown word "stop"."""
    fields = choice.get("provider_specific_fields")
    return str(fields.get("native_finish_reason") or "").lower() if isinstance(fields, dict) else ""


def _used_up(response: Any, max_tokens: int | None) -> bool:
    """Whether the answer ended at its limit, whatever a router in between says of it."""
    usage = response.get("usage")
    used = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return isinstance(used, int) and max_tokens is not None and used >= max_tokens


def _calls(raw: list[Any], cut: bool) -> tuple[Call, ...]:
    calls: list[Call] = []
    seen: set[str] = set()
    for at, row in enumerate(raw):
        function = row.get("function") if isinstance(row, dict) else None
        function = function if isinstance(function, dict) else {}
        name = function.get("name") if isinstance(function.get("name"), str) else ""
        call_id = row.get("id") if isinstance(row, dict) and isinstance(row.get("id"), str) else ""
        call = _call(call_id or f"call_{at}", str(name), function.get("arguments"), cut)
        if call.id in seen:
            call = Call(f"{call.id}_{at}", call.name, {}, call.raw, "This id was already used by another call.")
        seen.add(call.id)
        calls.append(call)
    return tuple(calls)


def _call(call_id: str, name: str, raw: Any, cut: bool) -> Call:
    text = raw if isinstance(raw, str) else "" if raw is None else json.dumps(raw)
    if cut:
        return Call(call_id, name, {}, text, _CUT, cut=True)
    if not name:
        return Call(call_id, "", {}, text, "The call names no tool.")
    try:
        return Call(call_id, name, _arguments(raw), text)
    except ValueError as error:
        return Call(call_id, name, {}, text, str(error), cut=isinstance(error, _Cut))


def _arguments(raw: Any) -> dict[str, Any]:
    """Raises ValueError with words for the model. Nothing, "" and null are no arguments."""
    if raw is None or raw == "" or (isinstance(raw, str) and raw.strip() in {"", "null"}):
        return {}
    if isinstance(raw, dict):
        raw = json.dumps(raw)  # held to the same rules
    if not isinstance(raw, str):
        raise ValueError("The arguments are not a JSON object.")
    if len(raw) > MAX_ARGUMENTS:
        raise ValueError(f"The arguments are longer than {MAX_ARGUMENTS:,} characters.")
    try:
        value = json.loads(
            raw,
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constant,
            parse_float=_fraction,
            parse_int=_whole,
        )
    except RecursionError:
        raise ValueError("The arguments are nested too deeply.") from None
    except json.JSONDecodeError as error:
        if error.pos >= len(raw.rstrip()) - 1 or "Unterminated" in error.msg:
            raise _Cut("cut off: the arguments end in the middle; nothing was done") from None
        raise ValueError(f"The arguments are not JSON: {error.msg} at character {error.pos}.") from None
    if not isinstance(value, dict):
        raise ValueError("The arguments are not a JSON object.")
    if _depth(value) > MAX_DEPTH:
        raise ValueError("The arguments are nested too deeply.")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise ValueError("The arguments name one key twice.")
    return row


def _no_constant(name: str) -> None:
    raise ValueError(f"The arguments hold {name}, which is not JSON.")


def _fraction(text: str) -> float:
    """Beyond the range of floats Python reads infinity, which no JSON can hold again."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"The arguments hold {text[:40]}, a number too large to be kept.")
    return number


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"The arguments hold a number of more than {LONGEST_NUMBER} digits.")
    return int(text)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
