"""Everything an agent can do: the table of tools, and the one way to call them."""

from collections.abc import Callable
from typing import Any

from agents.tools import (
    adopting,
    authoring,
    calls,
    changing,
    leaks,
    memory,
    messages,
    nostr,
    ondemand,
    relays,
    skills,
    starting,
    web,
)
from agents.tools.calls import SecretFound, Tool, ToolContext, ToolError, ToolFailed, ToolRefused, ToolWaits

__all__ = [
    "TOOLS",
    "SecretFound",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolFailed",
    "ToolRefused",
    "ToolWaits",
    "call",
    "foresee",
]


def changes(name: str, function: Callable[..., str], foresee: Callable[..., str] | None = None) -> Tool:
    """A tool that changes what the agent is or does: its owner is asked, and making it again changes nothing more."""
    return Tool(name, function, "writes", repeatable=True, asks=True, foresee=foresee)


# Publications are repeatable: a retry sends the very event that the first attempt signed.
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("nostr_post", nostr.nostr_post, "writes", repeatable=True),
        Tool("nostr_react", nostr.nostr_react, "writes", repeatable=True),
        Tool("nostr_delete", nostr.nostr_delete, "writes", repeatable=True),
        Tool("nostr_query", nostr.nostr_query, "reads", repeatable=True),
        Tool("nostr_profile", nostr.nostr_profile, "reads", repeatable=True),
        Tool("nostr_admin_profile", nostr.nostr_admin_profile, "reads", repeatable=True),
        Tool("nostr_admin_notes", nostr.nostr_admin_notes, "reads", repeatable=True),
        Tool("nostr_admin_relays", nostr.nostr_admin_relays, "reads", repeatable=True),
        Tool("nostr_relay_status", relays.nostr_relay_status, "reads", repeatable=True),
        Tool("nostr_dm_send", messages.nostr_dm_send, "writes", repeatable=True),
        Tool("nostr_dm_history", messages.nostr_dm_history, "reads", repeatable=True),
        Tool("skill", ondemand.skill, "reads", repeatable=True),
        Tool("read_skill_file", ondemand.read_skill_file, "reads", repeatable=True),
        Tool("skill_search", skills.skill_search, "reads", repeatable=True),
        Tool("skill_list", skills.skill_list, "reads", repeatable=True),
        changes("skill_create", authoring.skill_create, authoring.foresee_create),
        changes("skill_edit", authoring.skill_edit, authoring.foresee_edit),
        changes("skill_adopt", adopting.skill_adopt, adopting.foresee_adopt),
        changes("skill_unadopt", adopting.skill_unadopt),
        Tool("skill_execute", starting.skill_execute, "spends", repeatable=True),
        Tool("tool_list", skills.tool_list, "reads", repeatable=True),
        Tool("trigger_list", skills.trigger_list, "reads", repeatable=True),
        changes("trigger_enable", changing.trigger_enable, changing.foresee_trigger),
        changes("model_set", changing.model_set, changing.foresee_model),
        Tool("http_fetch", web.http_fetch, "reads", repeatable=True),
        Tool("memory_save", memory.memory_save, "writes", repeatable=True),
        Tool("memory_search", memory.memory_search, "reads", repeatable=True),
    )
}


def call(ctx: ToolContext, name: str, arguments: dict[str, Any]) -> str:
    """The tool's answer as text. Raises ToolRefused (nothing was tried) or ToolFailed, in words."""
    return calls.call(TOOLS, ctx, name, arguments, leaks.stop)


def foresee(ctx: ToolContext, name: str, arguments: dict[str, Any]) -> str:
    """What the call would do, in words for the owner; "" where its arguments say it. Raises ToolRefused."""
    return calls.foresee(TOOLS, ctx, name, arguments, leaks.stop)
