"""Run parameters: llm, max_tokens, temperature, seed, tools; from content (A) or from tags (B)."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from marketplace.protocol.problems import Problem
from marketplace.protocol.storable import is_storable

MAX_TOKENS = 10_000_000
MAX_SEED = 2**63 - 1
MAX_LLM = 2_000
NAMES = ("llm", "max_tokens", "temperature", "seed", "tools")


@dataclass(frozen=True, slots=True)
class RunParams:
    """None = not set here. `tools`: True all granted, False none, a tuple those named."""

    llm: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    tools: bool | tuple[str, ...] | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    def set(self) -> dict[str, Any]:
        """Only what is set."""
        return {name: getattr(self, name) for name in NAMES if getattr(self, name) is not None}


NOTHING_SET = RunParams()


def from_content(content: Mapping[str, Any], problems: list[Problem]) -> RunParams:
    """The fields of generation A; a wrong type is a problem and counts as not set."""
    return RunParams(
        _llm(content.get("llm"), problems),
        _whole("max_tokens", content.get("max_tokens"), 1, MAX_TOKENS, problems),
        _temperature(content.get("temperature"), problems),
        _whole("seed", content.get("seed"), -MAX_SEED, MAX_SEED, problems),
        _tools(content.get("tools"), problems),
    )


def from_tags(tags: Sequence[tuple[str, ...]], problems: list[Problem]) -> RunParams:
    """The trigger tags of generation B: numbers as decimal text, tools as values, array or comma list."""
    first: dict[str, tuple[str, ...]] = {}
    for tag in tags:
        first.setdefault(tag[0], tag[1:])
    return RunParams(
        _llm(_one(first, "llm"), problems),
        _whole("max_tokens", _parsed(_one(first, "max_tokens")), 1, MAX_TOKENS, problems),
        _temperature(_parsed(_one(first, "temperature")), problems),
        _whole("seed", _parsed(_one(first, "seed")), -MAX_SEED, MAX_SEED, problems),
        _tools(_tool_values(first.get("tools")), problems),
    )


def to_tags(params: RunParams) -> list[list[str]]:
    """One tag per parameter that is set, as both generations' readers take it."""
    tags = []
    for name, value in params.set().items():
        if name == "tools":
            tags.append(["tools", str(value).lower()] if isinstance(value, bool) else ["tools", *value])
        else:
            tags.append([name, str(value)])
    return tags


def to_content(params: RunParams) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in params.set().items()}


def tidy(params: RunParams) -> RunParams:
    """Without what says nothing: an empty model chain, a tool named twice."""
    tools = tuple(dict.fromkeys(params.tools)) if isinstance(params.tools, tuple) else params.tools
    return replace(params, llm=(params.llm or "").strip() or None, tools=tools)


def problems_of(params: RunParams) -> list[Problem]:
    """What would not read back as it was written, from the tags or from the content."""
    found: list[Problem] = []
    tags = from_tags([tuple(tag) for tag in to_tags(params)], found)
    for name in NAMES:
        if getattr(tags, name) != getattr(params, name) and name not in {problem.field for problem in found}:
            found.append(Problem(name, f"{name} holds something that would not read back as written."))
    return [replace(problem, level="error") for problem in found]


def _one(first: Mapping[str, tuple[str, ...]], name: str) -> str | None:
    values = first.get(name)
    return values[0] if values else None


def _parsed(text: str | None) -> Any:
    """A number as JSON reads it; anything else stays text and is then a problem."""
    if text is None:
        return None
    try:
        return json.loads(text) if len(text) < 40 else text
    except ValueError:
        return text


def _llm(value: object, problems: list[Problem]) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and len(value) <= MAX_LLM:
        return value.strip() or None
    problems.append(Problem("llm", "The model chain is not a text."))
    return None


def _whole(name: str, value: object, low: int, high: int, problems: list[Problem]) -> int | None:
    if value is None:
        return None
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and low <= value <= high:
        return value
    problems.append(Problem(name, f"{name} is not a whole number from {low} to {high}."))
    return None


def _temperature(value: object, problems: list[Problem]) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2 and math.isfinite(value):
        return float(value)
    problems.append(Problem("temperature", "temperature is not a number from 0 to 2."))
    return None


def _tools(value: object, problems: list[Problem]) -> bool | tuple[str, ...] | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list | tuple):
        names = tuple(dict.fromkeys(filter(_is_name, value)))
        if len(names) == len(value):
            return names
        problems.append(
            Problem("tools", "tools holds something that is not a tool's name; the rest counts.", "warning")
        )
        return names
    # Narrow when in doubt: what cannot be read asks for nothing.
    problems.append(Problem("tools", "tools is neither true, false nor a list of names."))
    return False


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 100 and is_storable(value)


def _tool_values(values: tuple[str, ...] | None) -> object:
    if values is None:
        return None
    if len(values) == 1:
        text = values[0].strip()
        if text in {"true", "false"}:
            return text == "true"
        if text.startswith("["):
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                return text
        return [name.strip() for name in text.split(",") if name.strip()]
    return list(values)
