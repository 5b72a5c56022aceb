"""SKILL.md (Agent Skills) and skills: read with what was lost said, written so that it reads back."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from marketplace.protocol.parameters import RunParams
from marketplace.protocol.problems import Problem
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.vocabulary import CONTEXT_MODES

MAX_NAME = 64
MAX_DESCRIPTION = 1_024
_MAX_FRONT = 20_000
_NAME = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*\Z")
_BREAK = re.compile(r"\r\n|\r|\n")
_FIELD = re.compile(r"([A-Za-z][\w.-]*)[ \t]*:[ \t]+(.*\S)[ \t]*\Z")
# Aliases can make a small text huge; `*bold*` inside a value is no alias.
_ANCHOR = re.compile(r"(?m)(?:^[ \t]*|:[ \t]+|-[ \t]+|[\[,{][ \t]*)[&*]\w")
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
    name = _name(fields, folder, problems)
    description = _flat(fields.get("description")) if fields.get("description") is not None else ""
    if not description:
        problems.append(Problem("description", "The description is missing."))
    elif len(description) > MAX_DESCRIPTION:
        problems.append(Problem("description", f"The description is longer than {MAX_DESCRIPTION} characters."))
    tools = _tools(fields, problems)
    return SkillFile(name, description, body, tools, tuple(_extra(fields)), tuple(problems))


_OWN = frozenset({"name", "description", "allowed-tools"})


def to_spec(file: SkillFile) -> SkillSpec:
    """The skill it describes: its body are the instructions. Raises ValueError for an unusable file."""
    if not file.usable:
        raise ValueError("; ".join(problem.message for problem in file.problems))
    extra = dict(file.extra)
    mode = extra.get("metadata.context-mode")
    mode = mode if mode in CONTEXT_MODES else None
    narrowed = file.tools is not None
    return SkillSpec(
        d=file.name,
        description=file.description,
        template=file.body,
        context_mode=mode or ("inject" if narrowed else None),
        params=RunParams(tools=file.tools),
        generation="A" if mode or narrowed else "B",
        license=extra.get("license", ""),
        version=extra.get("metadata.version") or extra.get("version", ""),
        problems=file.problems,
    )


def from_spec(spec: SkillSpec) -> str:
    """The skill as SKILL.md; triggers and model stay behind, since the format has no place for them."""
    fields: dict[str, Any] = {"name": spec.d, "description": spec.description}
    if spec.license:
        fields["license"] = spec.license
    if spec.tools is not True:
        fields["allowed-tools"] = " ".join(spec.tools or ())  # present and empty: none
    metadata = {"version": spec.version, "context-mode": spec.context_mode}
    if any(metadata.values()):
        fields["metadata"] = {key: value for key, value in metadata.items() if value}
    front = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=10_000)
    return f"---\n{front}---\n\n{spec.template.strip(chr(10))}\n"


def _broken(folder: str, reason: str) -> SkillFile:
    return SkillFile(folder, "", "", problems=(Problem("", reason),))


def _front(lines: list[str], problems: list[Problem]) -> Mapping[str, Any]:
    """The front matter: all values as text (`no` and `1.10` stay what they are), lists and maps of texts."""
    text = "\n".join(lines)
    if len(text) > _MAX_FRONT or _ANCHOR.search(text):
        reason = "line 2: the front matter is too long or uses YAML anchors; each value read as plain text."
        problems.append(Problem("", reason, "warning"))
        return _line_by_line(lines, problems)
    try:
        fields = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - builds texts, lists and maps only
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        at = f"line {mark.line + 2}" if mark else "the front matter"
        reason = f"{at}: not YAML ({getattr(error, 'problem', None) or 'unreadable'}); each value read as plain text."
        problems.append(Problem("", reason, "warning"))
        return _line_by_line(lines, problems)
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        problems.append(Problem("", "line 2: the front matter is not a list of fields."))
        return {}
    return {_flat(key): value for key, value in fields.items()}


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


def _name(fields: Mapping[str, Any], folder: str, problems: list[Problem]) -> str:
    name = _flat(fields.get("name") or folder)
    if len(name) > MAX_NAME or not _NAME.match(name):
        problems.append(
            Problem("name", f"“{name[:80]}” is not a name: letters and digits joined by - or _, at most {MAX_NAME}.")
        )
    elif folder and name != folder:
        problems.append(Problem("name", f"The name “{name}” differs from its folder “{folder}”.", "warning"))
    return name


def _tools(fields: Mapping[str, Any], problems: list[Problem]) -> tuple[str, ...] | None:
    """`allowed-tools`: names with spaces or commas between them, or a list; unreadable means none."""
    if "allowed-tools" not in fields:
        return None
    value = fields["allowed-tools"]
    if isinstance(value, str):
        text = value.strip().removeprefix("[").removesuffix("]")
        return tuple(dict.fromkeys(_unquoted(name) for name in re.split(r"[,\s]+", text) if name))
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(dict.fromkeys(name for name in value if name))
    problems.append(Problem("allowed-tools", "allowed-tools is not a list of names; no tool is allowed.", "warning"))
    return ()


def _extra(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        if key == "metadata" and isinstance(value, dict):
            yield from ((f"metadata.{_flat(name)}", _flat(text)[:MAX_DESCRIPTION]) for name, text in value.items())
        elif key not in _OWN:
            yield key, _flat(value)[:MAX_DESCRIPTION]


def _flat(value: object) -> str:
    """Any value on one line, so that it cannot add lines to an index."""
    if isinstance(value, list):
        return ", ".join(_flat(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{_flat(key)}: {_flat(item)}" for key, item in value.items())
    return " ".join(str(value or "").split())
