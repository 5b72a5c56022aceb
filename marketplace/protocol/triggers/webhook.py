"""`webhook` (ours): a request to an address of this site, which itself never stands on a relay."""

from collections.abc import Sequence
from dataclasses import dataclass

from marketplace.protocol.events import Tag
from marketplace.protocol.problems import Problem

LABEL = "A web request"
TAGS = ("param",)
TYPES = ("string", "number", "boolean")


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    type: str = "string"
    required: bool = False


@dataclass(frozen=True, slots=True)
class Webhook:
    params: tuple[Param, ...] = ()


def from_tags(tags: Sequence[Tag], *, own_input: bool = False) -> tuple[Webhook | None, list[Problem]]:
    params: dict[str, Param] = {}
    found = []
    for tag in tags:
        if tag[0] != "param":
            continue
        name, kind, need = (*tag[1:4], "", "", "")[:3]
        kind, need = kind or "string", need or "optional"
        if not name.isidentifier() or len(name) > 60:
            found.append(Problem("param", f"“{name[:40]}” is not a parameter's name."))
        elif kind not in TYPES:
            found.append(Problem("param", f"{name} is neither string, number nor boolean."))
        elif need not in {"required", "optional"}:
            found.append(Problem("param", f"{name} is neither required nor optional."))
        else:
            params.setdefault(name, Param(name, kind, need == "required"))
    return (None, found) if found else (Webhook(tuple(params.values())), [])


def to_tags(data: Webhook) -> list[list[str]]:
    return [["param", p.name, p.type, "required" if p.required else "optional"] for p in data.params]


def problems(data: Webhook) -> list[Problem]:
    return from_tags([tuple(tag) for tag in to_tags(data)])[1]


def in_words(data: Webhook) -> str:
    if not data.params:
        return "When its secret address is called"
    return "When its secret address is called with " + ", ".join(param.name for param in data.params)
