"""Everything an agent can do: the table of tools, and the one way to call them."""

from typing import Any

from agents.tools import calls
from agents.tools.calls import SecretFound, Tool, ToolContext, ToolError, ToolFailed, ToolRefused

__all__ = ["TOOLS", "SecretFound", "Tool", "ToolContext", "ToolError", "ToolFailed", "ToolRefused", "call"]

TOOLS: dict[str, Tool] = {}


def call(ctx: ToolContext, name: str, arguments: dict[str, Any]) -> str:
    """The tool's answer as text. Raises ToolRefused (nothing was tried) or ToolFailed, in words."""
    return calls.call(TOOLS, ctx, name, arguments)
