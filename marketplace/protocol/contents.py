"""The content of a skill: a JSON object whose unknown fields keep their bytes through an edit."""

import json
from collections.abc import Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from marketplace.protocol.checks import Refused, strict_json
from marketplace.protocol.problems import Problem
from marketplace.protocol.storable import is_storable, storable
from marketplace.protocol.triggers import TriggerSpec
from marketplace.protocol.vocabulary import CONTEXT_MODES

GENERATION_A = frozenset({"context_mode", "llm", "tools", "soul", "max_tokens", "temperature"})
KNOWN = {"B": frozenset({"description", "template", "base"})}
KNOWN["A"] = KNOWN["B"] | GENERATION_A | {"seed"}


def read_content(
    text: str, trigger: TriggerSpec | None, problems: list[Problem]
) -> tuple[Mapping[str, Any], list[tuple[str, str]], bool]:
    """The content's object, its top level as raw JSON, and whether it can be read."""
    try:
        row = strict_json(text)
    except Refused as error:
        if trigger and trigger.action == "template" and error.reason == "json" and not _is_json(text):
            return _storable({"template": text}, problems), [], True
        problems.append(Problem("content", f"The content is not a JSON object. {error}"))
        return {}, [], False
    if not isinstance(row, dict):
        problems.append(Problem("content", "The content is JSON, but not an object."))
        return {}, [], False
    raw = raw_fields(text) if row.keys() - KNOWN["B"] else []
    if "\\u" not in text and is_storable(text):
        return row, raw, True
    return _storable(row, problems), _storable_fields(raw), True


def _storable(row: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """An escape may spell what no text may hold, and nobody who reads the skill later expects it."""
    clean: dict[str, Any] = storable(row)
    if clean != row:
        problems.append(Problem("content", "Holds NUL or half a character; “\ufffd” stands in its place.", "warning"))
    return clean


def _storable_fields(raw: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The bytes stay where they can; two names that become one leave one field."""
    fields: dict[str, str] = {}
    for key, text in raw:
        value = json.loads(text)
        clean = storable(value)
        fields[storable(key)] = text if clean == value and is_storable(text) else json.dumps(clean, ensure_ascii=False)
    return list(fields.items())


def _is_json(text: str) -> bool:
    """Whether a lenient reader takes it: then it is broken JSON rather than a template."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def raw_fields(text: str) -> list[tuple[str, str]]:
    """Each top-level key with the exact text of its value; the text is known to be an object."""
    decoder, at = json.JSONDecoder(), text.index("{") + 1
    found: list[tuple[str, str]] = []
    while True:
        at = _skip(text, at, " \t\r\n,")
        if text[at] == "}":
            return found
        key, at = scanstring(text, at + 1)
        start = _skip(text, _skip(text, at, " \t\r\n") + 1, " \t\r\n")
        _, at = decoder.raw_decode(text, start)
        found.append((key, text[start:at]))


def _skip(text: str, at: int, characters: str) -> int:
    while text[at] in characters:
        at += 1
    return at


def text(content: Mapping[str, Any], name: str, problems: list[Problem]) -> str:
    """A field's text; "" and a problem where it is something else."""
    value = content.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    problems.append(Problem(name, f"{name} is not a text."))
    return ""


def mode(content: Mapping[str, Any], problems: list[Problem]) -> str | None:
    """The context mode, None where it is absent or not one of the three."""
    found = content.get("context_mode")
    if found is None or (isinstance(found, str) and found in CONTEXT_MODES):
        return found
    problems.append(Problem("context_mode", "context_mode is neither inject, full nor override; inject applies."))
    return None


def soul(content: Mapping[str, Any], problems: list[Problem]) -> bool | None:
    """What it says of the agent's soul; `inject` ignores it."""
    found = content.get("soul")
    if found is None or isinstance(found, bool):
        return found
    problems.append(Problem("soul", "soul is neither true nor false."))
    return None
