"""Everything an agent can do: the table of tools, and the one way to call them."""

from typing import Any

from agents.tools import calls, memory, messages, nostr, ondemand, skills, web
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

# Publications are repeatable: a retry sends the very event that the first attempt signed.
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("nostr_post", nostr.nostr_post, "writes", repeatable=True),
        Tool("nostr_react", nostr.nostr_react, "writes", repeatable=True),
        Tool("nostr_query", nostr.nostr_query, "reads", repeatable=True),
        Tool("nostr_profile", nostr.nostr_profile, "reads", repeatable=True),
        Tool("nostr_admin_profile", nostr.nostr_admin_profile, "reads", repeatable=True),
        Tool("nostr_admin_notes", nostr.nostr_admin_notes, "reads", repeatable=True),
        Tool("nostr_admin_relays", nostr.nostr_admin_relays, "reads", repeatable=True),
        Tool("nostr_dm_send", messages.nostr_dm_send, "writes", repeatable=True),
        Tool("nostr_dm_history", messages.nostr_dm_history, "reads", repeatable=True),
        Tool("skill", ondemand.skill, "reads", repeatable=True),
        Tool("read_skill_file", ondemand.read_skill_file, "reads", repeatable=True),
        Tool("skill_search", skills.skill_search, "reads", repeatable=True),
        Tool("skill_list", skills.skill_list, "reads", repeatable=True),
        Tool("tool_list", skills.tool_list, "reads", repeatable=True),
        Tool("trigger_list", skills.trigger_list, "reads", repeatable=True),
        Tool("http_fetch", web.http_fetch, "reads", repeatable=True),
        Tool("memory_save", memory.memory_save, "writes", repeatable=True),
        Tool("memory_search", memory.memory_search, "reads", repeatable=True),
    )
}


def call(ctx: ToolContext, name: str, arguments: dict[str, Any]) -> str:
    """The tool's answer as text. Raises ToolRefused (nothing was tried) or ToolFailed, in words."""
    return calls.call(TOOLS, ctx, name, arguments)


def foresee(ctx: ToolContext, name: str, arguments: dict[str, Any]) -> str:
    """What the call would do, in words for the owner; "" where its arguments say it. Raises ToolRefused."""
    return calls.foresee(TOOLS, ctx, name, arguments)
