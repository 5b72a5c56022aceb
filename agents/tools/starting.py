"""Another skill as a run of its own: started once, waited for in the row and not in the worker."""

import time

from agents.engine.limits import MAX_DEPTH
from agents.models import AdoptedSkill, Run
from agents.tools import shelves
from agents.tools.calls import ToolContext, ToolFailed, ToolRefused, ToolWaits
from marketplace.forms import known_version
from marketplace.protocol.skills import SkillSpec

LONGEST_MESSAGE = 20_000
PATIENCE = 4.0  # seconds in the worker; nothing waits there for longer than five
LOOK = 0.25


def skill_execute(ctx: ToolContext, skill: str, message: str = "") -> str:
    """Carry out another adopted skill as a run of its own, and get what it answers.

    skill: its name in skill_list, its address or naddr
    message: what to tell it
    """
    if ctx.run is None:
        raise ToolRefused("This tool works within a run only.")
    started = ctx.recalled.get("run")
    if started is None:
        started = _start(ctx, ctx.run, skill, message).pk
        ctx.remember({"run": started})
    until = time.monotonic() + min(PATIENCE, ctx.left)
    while True:
        child = Run.objects.get(pk=started)
        if child.is_final:
            return _answer(ctx, child)
        if time.monotonic() >= until:
            raise ToolWaits(f"It waits for the run {child.pk} of “{child.skill_name}”.")
        time.sleep(LOOK)


def _start(ctx: ToolContext, parent: Run, skill: str, message: str) -> Run:
    if len(message) > LONGEST_MESSAGE:
        raise ToolRefused(f"The message is longer than {LONGEST_MESSAGE:,} characters.")
    if parent.depth >= MAX_DEPTH:
        raise ToolRefused(f"Runs may start runs {MAX_DEPTH} deep, and this is that deep.")
    address = shelves.address_of(ctx, skill)
    row = AdoptedSkill.objects.filter(agent=ctx.agent, address=str(address)).exclude(pinned_event="").first()
    if row is None:
        raise ToolRefused("This skill is not adopted.")
    if str(address) == parent.skill_address:
        raise ToolRefused("A skill does not carry out itself.")
    found = known_version(row.pinned_event, ctx.agent.owner)
    if found is None or not found[1].runnable or found[1].action == "template":
        raise ToolRefused("This skill cannot be carried out: it has no instructions for a model, or cannot be read.")
    return ctx.site.start(parent, row.address, row.pinned_event, message, _tools(ctx, found[1]), ctx.key)


def _tools(ctx: ToolContext, spec: SkillSpec) -> list[str]:
    """What the other skill asks for, of what this run may use: starting a run never widens rights."""
    if isinstance(spec.tools, bool):
        return sorted(ctx.granted) if spec.tools else []
    return sorted(ctx.granted & set(spec.tools))


def _answer(ctx: ToolContext, child: Run) -> str:
    if child.status != Run.Status.SUCCEEDED:
        raise ToolFailed(f"The run {child.pk} ended as {child.status}: {child.reason_words or child.reason}")
    return f"The run {child.pk} answered:\n{ctx.fenced('another run', child.output)}"
