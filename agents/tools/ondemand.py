"""Loading a skill on demand, and reading its files: what the model asks for after it has seen the catalogue."""

from typing import Any

from agents import llm
from agents.engine import disclosure
from agents.models import Run, Step
from agents.sources import SkillNotFoundError, SkillsError, sources_for
from agents.tools.calls import ToolContext, ToolFailed, ToolRefused

NAMES = ("read_skill_file", "skill")  # granted to a new agent: they read its own skills and nothing else
LONGEST_PATH = 300  # characters of a path kept in the record


def skill(ctx: ToolContext, name: str) -> str:
    """Load the full instructions of an available skill before acting on it.

    name: its exact name in the list of available skills
    """
    try:
        entry = (
            None if disclosure.refusal(name, None).startswith("invalid") else sources_for(ctx.agent).load_skill(name)
        )
    except SkillNotFoundError:
        entry = None
    except SkillsError as error:
        raise _failed(error) from None
    wrong = disclosure.refusal(name, entry)
    if wrong or entry is None:
        raise ToolRefused(wrong)
    text = disclosure.handed(entry, ctx.fenced)
    _record(ctx, "loaded", {"name": entry.name, "version": entry.version, "tokens": llm.count(text)})
    return text


def read_skill_file(ctx: ToolContext, name: str, path: str) -> str:
    """Read a file that a loaded skill refers to.

    name: the skill's exact name
    path: the file, relative to the skill's folder
    """
    sources = sources_for(ctx.agent)
    try:
        entry = sources.load_skill(name)
        if not entry.by_model and not _invoked(ctx, name):
            raise ToolRefused(disclosure.refusal(name, entry))
        text = disclosure.handed_file(sources.read_file(name, path), entry.foreign, ctx.fenced)
    except SkillNotFoundError as error:
        raise ToolRefused(str(error)) from None
    except SkillsError as error:
        raise _failed(error) from None
    _record(ctx, "read", {"name": name, "path": path[:LONGEST_PATH], "tokens": llm.count(text)})
    return text


def _failed(error: SkillsError) -> ToolFailed:
    return ToolFailed(f"{error}. {error.hint}" if error.hint else str(error))


def _invoked(ctx: ToolContext, name: str) -> bool:
    """Whether the user called the skill in this run: its files are then theirs to have read."""
    record = ctx.run.disclosure if ctx.run else {}
    return any(one["name"] == name for one in record.get("invoked", []))


def _record(ctx: ToolContext, kind: str, what: dict[str, Any]) -> None:
    """On the call first, then on the run: a call that a second worker makes again is one entry all the same."""
    ctx.remember({kind: what})
    if ctx.run is None:
        return
    tools = {"loaded": "skill", "read": "read_skill_file"}
    steps = Step.objects.filter(run=ctx.run, kind=Step.Kind.TOOL, name=tools[kind]).order_by("position")
    entries = [intent[kind] for intent in steps.values_list("intent", flat=True) if kind in intent]
    ctx.run.disclosure = {**ctx.run.disclosure, kind: entries}
    Run.objects.filter(pk=ctx.run.pk).update(disclosure=ctx.run.disclosure)
