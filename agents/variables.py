"""Template variables and the tool that resolves each: bounded in time and size, empty with a warning on failure."""

from collections.abc import Iterable
from dataclasses import dataclass

from agents.tools import ToolContext


@dataclass(frozen=True, slots=True)
class Values:
    """What the variables stand for, and what went wrong on the way."""

    values: dict[str, str]
    warnings: tuple[str, ...]


def resolve(names: Iterable[str], ctx: ToolContext) -> Values:
    """The values of those names that a tool resolves; others are left to the caller."""
    return Values({}, ())
