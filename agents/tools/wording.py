"""From a tool's arguments to a skill: through the same rules as the editor's form, and never to more rights."""

import json
from collections.abc import Mapping
from typing import Any

from agents.tools.calls import ToolContext, ToolRefused
from marketplace.forms import spec_of
from marketplace.protocol.problems import Problem
from marketplace.protocol.skills import SkillSpec, problems_of
from marketplace.protocol.templates import read_action

# Arguments of the tools that the editor's form calls otherwise.
FIELDS = {"name": "d"}


def spec_from(ctx: ToolContext, typed: Mapping[str, Any], base: SkillSpec) -> SkillSpec:
    """The skill that these fields of the editor's form make of the base. Raises ToolRefused with every problem."""
    found: list[Problem] = []
    spec = spec_of(typed, base, found)
    errors = [one for one in dict.fromkeys([*found, *problems_of(spec)]) if one.level == "error"]
    if errors:
        said = "; ".join(f"{one.field}: {one.message}" if one.field else one.message for one in errors)
        raise ToolRefused(f"The skill is not right yet. {said}")
    beyond = sorted(wanted_tools(spec) - ctx.granted)
    if beyond:
        raise ToolRefused(f"A skill made here may use only what this run may; not: {', '.join(beyond)}.")
    return spec


def wanted_tools(spec: SkillSpec) -> frozenset[str]:
    """Names of the tools it would use; all that are granted where it does not say."""
    if spec.action == "template":
        try:
            kind = read_action(spec.template).kind
        except ValueError as error:
            raise ToolRefused(f"The recipient of this template is not a key: {error}") from None
        return frozenset({"post": {"nostr_post"}, "log": set()}.get(kind, {"nostr_dm_send"}))
    return frozenset() if isinstance(spec.tools, bool) else frozenset(spec.tools)


def typed_from(given: Mapping[str, Any]) -> dict[str, Any]:
    """The editor's fields for those arguments that were given (None was not)."""
    typed: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name == "filter":
            typed["filter"] = json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
        elif name == "tools":
            typed |= {"tools_choice": "list" if value else "none", "tools": ", ".join(value)}
        elif name == "enabled":
            typed["enabled"] = "on" if value else ""
        elif name == "trigger":
            typed["trigger"] = "" if value == "none" else value
        elif name == "max_tokens":
            typed["max_tokens"] = str(value)
        else:
            typed[FIELDS.get(name, name)] = value
    return typed


def in_words(spec: SkillSpec, autonomy: str) -> str:
    """What the skill will do, for the owner who decides on it."""
    seen = "public: everyone sees it" if spec.public else "private: only this agent reads it"
    lines = [f"The skill “{spec.d}” is {seen}."]
    if spec.description:
        lines.append(f"It says of itself: {spec.description[:500]}")
    if spec.trigger is None:
        lines.append("It starts when it is asked for, not by itself.")
    else:
        lines.append(f"It starts by itself: {spec.trigger.words}{'' if spec.trigger.enabled else ' (switched off)'}.")
        tools = sorted(wanted_tools(spec))
        how = "Its template is filled in and sent" if spec.action == "template" else "A model carries it out"
        lines.append(f"{how}, with {', '.join(tools) if tools else 'no tools'}.")
        acts = "It acts without asking you again." if autonomy == "auto" else "Whatever it writes waits for you."
        lines.append(acts)
    return "\n".join(lines) + f"\n\n{spec.template[:2_000]}"
