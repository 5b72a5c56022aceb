"""Template variables and the tool that resolves each: bounded in time and size, empty with a warning on failure."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from agents.tools import TOOLS, ToolContext, ToolError, call

# Variable -> the tool that knows it; soul, message and triggering_event come from the run itself.
VARIABLES: dict[str, str] = {
    "admin_profile": "nostr_admin_profile",
    "admin_notes": "nostr_admin_notes",
    "admin_relays": "nostr_admin_relays",
    "adopted_skills": "skill_list",
    "dm_history": "nostr_dm_history",
    "tools": "tool_list",
}
# What an agent may always know of itself needs no grant.
OWN = frozenset({"skill_list", "tool_list"})
SECONDS = 5.0  # for each
SECONDS_TOGETHER = 12.0
LONGEST = 16_000  # characters, about 4,000 tokens


@dataclass(frozen=True, slots=True)
class Values:
    """What the variables stand for, and what went wrong on the way."""

    values: dict[str, str]
    warnings: tuple[str, ...]


def resolve(names: Iterable[str], ctx: ToolContext) -> Values:
    """The values of those names that a tool resolves; others are left to the caller."""
    until = time.monotonic() + SECONDS_TOGETHER
    values: dict[str, str] = {}
    warnings: list[str] = []
    for name in dict.fromkeys(names):
        if name not in VARIABLES:
            continue
        values[name], warning = _resolved(name, ctx, min(SECONDS, until - time.monotonic()))
        if warning:
            warnings.append(warning)
    return Values(values, tuple(warnings))


def _resolved(name: str, ctx: ToolContext, seconds: float) -> tuple[str, str]:
    """The text and a warning; one of them is empty unless the text was cut."""
    if seconds <= 0:
        return "", f"“{name}” stayed empty: there was no time left to ask."
    tool = VARIABLES[name]
    limited = replace(ctx, seconds=seconds)
    try:
        text = TOOLS[tool].function(limited) if tool in OWN else call(limited, tool, {})
    except ToolError as error:
        return "", f"“{name}” stayed empty: {error}"
    if len(text) > LONGEST:
        return text[:LONGEST], f"“{name}” was cut to {LONGEST:,} characters."
    return text, ""
