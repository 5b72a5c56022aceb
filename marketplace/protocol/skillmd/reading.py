"""Reads SKILL.md: never raises, never wider than written, each problem with its line."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml
from yaml.error import MarkedYAMLError

from marketplace.protocol.problems import Problem

MAX_NAME = 64
MAX_DESCRIPTION = 1_024
MAX_FILE = 400_000  # bytes that callers read of a file
_SHORT = 4_000  # characters of a front matter that is remembered
_MAX_FRONT = 400_000  # an event's 64 kB, each character escaped
_NAME = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*\Z")
_BREAK = re.compile(r"\r\n|\r|\n")
_FIELD = re.compile(r"([A-Za-z][\w.-]*)[ \t]*:[ \t]+(.*\S)[ \t]*\Z")
_NESTED = re.compile(r"([ \t]*(?:- )?)([A-Za-z][\w.-]*)[ \t]*:[ \t]+(.*\S)[ \t]*\Z")
MOST_REPAIRS = 20  # lines of one file
_OWN = frozenset({"name", "description", "allowed-tools"})
_YES = frozenset({"true", "yes", "on", "1"})
_BLOCK = frozenset({"|", ">", "|-", ">-", "|+", ">+"})


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A SKILL.md: `tools` is None when it asks for nothing in particular, and never wider than written."""

    name: str
    description: str
    body: str
    tools: tuple[str, ...] | None = None
    extra: tuple[tuple[str, str], ...] = ()  # other keys of the front matter, flattened to one line
    problems: tuple[Problem, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)  # the front matter: texts, lists and maps of texts

    @property
    def by_model(self) -> bool:
        """False: only a person may invoke it."""
        return flat(self.fields.get("disable-model-invocation")).lower() not in _YES

    @property
    def by_user(self) -> bool:
        """False: only a model may invoke it."""
        return flat(self.fields.get("user-invocable", "true")).lower() in _YES

    @property
    def usable(self) -> bool:
        return not any(problem.level == "error" for problem in self.problems)


def read_skillmd(data: bytes | str, folder: str = "") -> SkillFile:
    """Never raises; `folder` gives the name where the file has none. Problems name line and reason."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    lines = _BREAK.split(text.removeprefix("\ufeff"))
    if lines[0].rstrip() != "---":
        return _broken(folder, "line 1: the file does not start with a line ---.")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        return _broken(folder, "line 1: the front matter is never closed by a line ---.")
    problems: list[Problem] = []
    fields = _front(lines[1:end], problems)
    body = "\n".join(lines[end + 1 :]).strip("\n")
    front = lines[:end]
    name = _name(fields, folder, _place(front, "name"), problems)
    description = flat(fields.get("description"))
    if not description:
        problems.append(Problem("description", f"{_place(front, 'description')}: the description is missing."))
    elif len(description) > MAX_DESCRIPTION:
        reason = f"{_place(front, 'description')}: the description is longer than {MAX_DESCRIPTION} characters."
        problems.append(Problem("description", reason))
    tools = _tools(fields, _place(front, "allowed-tools"), problems)
    return SkillFile(name, description, body, tools, tuple(_extra(fields)), tuple(problems), fields)


def body_of(text: str) -> str:
    """The text as it reads back when it stands after the front matter."""
    return "\n".join(_BREAK.split(text)).strip("\n")


def _broken(folder: str, reason: str) -> SkillFile:
    return SkillFile(folder, "", "", problems=(Problem("", reason),))


class _Texts(yaml.BaseLoader):
    """Without anchors and aliases, which can make a small text huge."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None):
            raise MarkedYAMLError(problem="anchors are not followed", problem_mark=event.start_mark)
        return super().compose_node(parent, index)


def _front(lines: list[str], problems: list[Problem]) -> Mapping[str, Any]:
    """The front matter: all values as text (`no` and `1.10` stay what they are), lists and maps of texts."""
    text = "\n".join(lines)
    if len(text) > _MAX_FRONT:
        problems.append(Problem("", "line 2: the front matter is too long."))
        return {}
    fields, found = _known(text) if len(text) <= _SHORT else _understood(text)
    problems += found
    return fields


def _understood(text: str) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
    lines, problems = text.split("\n"), list[Problem]()
    try:
        fields = _loaded(lines, problems)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        at = f"line {mark.line + 2}" if mark else "the front matter"
        reason = f"{at}: not YAML ({getattr(error, 'problem', None) or 'unreadable'}); each value read as plain text."
        problems[:] = [Problem("", reason, "warning")]
        fields = _line_by_line(lines, problems)
    if fields is None:
        return {}, tuple(problems)
    if not isinstance(fields, dict):
        return {}, (*problems, Problem("", "line 2: the front matter is not a list of fields."))
    return {flat(key): value for key, value in fields.items()}, tuple(problems)


# Folders are listed for every run, and YAML is what takes the time.
_known = lru_cache(maxsize=2_048)(_understood)


def _loaded(lines: list[str], problems: list[Problem]) -> Any:
    """The YAML, with quotes put around the value of a line that it fails on. Raises as the loader does."""
    lines = list(lines)
    for _ in range(MOST_REPAIRS):
        try:
            return yaml.load("\n".join(lines), Loader=_Texts)  # noqa: S506 - builds texts, lists and maps only
        except MarkedYAMLError as error:
            at = error.problem_mark.line if error.problem_mark else len(lines)
            found = _NESTED.match(lines[at]) if at < len(lines) else None
            if found is None or found[3] in _BLOCK:
                raise
            lines[at] = f"{found[1]}{found[2]}: '{found[3].replace(chr(39), chr(39) * 2)}'"
            reason = f"line {at + 2}: not YAML ({error.problem}); its value is read as plain text."
            problems.append(Problem("", reason, "warning"))
    return yaml.load("\n".join(lines), Loader=_Texts)  # noqa: S506


def _line_by_line(lines: list[str], problems: list[Problem]) -> Mapping[str, Any]:
    """`key: value` with the value taken as it stands: what a person meant who forgot the quotes."""
    fields: dict[str, Any] = {}
    key = ""
    for at, line in enumerate(lines, 2):
        found = _FIELD.match(line)
        if found:
            key = found[1]
            fields[key] = "" if found[2] in _BLOCK else _unquoted(found[2])
        elif line.strip().endswith(":") and not line[:1].isspace():
            key = line.strip()[:-1]
            fields[key] = []
        elif key and isinstance(fields.get(key), list) and line.strip().startswith("- "):
            fields[key].append(_unquoted(line.strip()[2:].strip()))
        elif key and isinstance(fields.get(key), str) and line[:1].isspace():
            fields[key] = f"{fields[key]} {line.strip()}".strip()
        elif line.strip() and not line.strip().startswith("#"):
            problems.append(Problem("", f"line {at}: not understood, left out.", "warning"))
    return fields


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _place(front: list[str], key: str) -> str:
    """The line that a field stands on, the first of the front matter where it is missing."""
    found = (at for at, line in enumerate(front[1:], 2) if line.lstrip("\"' ").startswith(key))
    return f"line {next(found, 1)}"


def _name(fields: Mapping[str, Any], folder: str, place: str, problems: list[Problem]) -> str:
    name = flat(fields.get("name") or folder)
    if len(name) > MAX_NAME or not _NAME.match(name):
        rule = f"letters and digits joined by - or _, at most {MAX_NAME}"
        problems.append(Problem("name", f"{place}: “{name[:80]}” is not a name: {rule}."))
    elif folder and name != folder:
        reason = f"{place}: the name “{name}” differs from its folder “{folder}”."
        problems.append(Problem("name", reason, "warning"))
    return name


def _tools(fields: Mapping[str, Any], place: str, problems: list[Problem]) -> tuple[str, ...] | None:
    """`allowed-tools`: names with spaces or commas between them, or a list; unreadable means none."""
    if "allowed-tools" not in fields:
        return None
    value = fields["allowed-tools"]
    if isinstance(value, str):
        text = value.strip().removeprefix("[").removesuffix("]")
        return tuple(dict.fromkeys(_unquoted(name) for name in re.split(r"[,\s]+", text) if name))
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(dict.fromkeys(name for name in value if name))
    reason = f"{place}: allowed-tools is not a list of names; no tool is allowed."
    problems.append(Problem("allowed-tools", reason, "warning"))
    return ()


def _extra(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        if key == "metadata" and isinstance(value, dict):
            yield from ((f"metadata.{flat(name)}", flat(text)[:MAX_DESCRIPTION]) for name, text in value.items())
        elif key not in _OWN:
            yield key, flat(value)[:MAX_DESCRIPTION]


def flat(value: object) -> str:
    """Any value on one line, so that it cannot add lines to an index."""
    if isinstance(value, list):
        return ", ".join(flat(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{flat(key)}: {flat(item)}" for key, item in value.items())
    return " ".join(str("" if value is None else value).split())
