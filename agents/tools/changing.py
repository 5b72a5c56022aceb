"""What the agent may change about itself besides its skills: the model it uses, and whether a trigger is on."""

from django.conf import settings

from agents.models import Agent, Change, Trigger
from agents.tools import shelves
from agents.tools.calls import ToolContext, ToolRefused

SITE = "default"  # the site's own model


def model_set(ctx: ToolContext, model: str) -> str:
    """Choose the model that this agent uses from the next run on, among those its owner allows.

    model: an alias or a model that the owner allows, or default for the site's
    """
    wanted = _allowed(ctx, model)
    before = ctx.agent.llm
    Agent.objects.filter(pk=ctx.agent.pk).update(llm=wanted)
    ctx.agent.llm = wanted
    Change.record(ctx.agent, "llm", "", before, wanted, ctx.now, ctx.run)
    return f"From the next run on it uses {wanted or settings.DEFAULT_LLM}."


def foresee_model(ctx: ToolContext, model: str) -> str:
    """What the owner decides on."""
    wanted, current = (chain or settings.DEFAULT_LLM for chain in (_allowed(ctx, model), ctx.agent.llm))
    return f"From the next run on it would use {wanted} instead of {current}."


def model_choices(agent: Agent) -> list[str]:
    """What its owner lets it choose: its aliases, what they name beside them, and what it uses now."""
    current = [part.strip() for part in agent.llm.split(",") if part.strip()]
    return list(dict.fromkeys([SITE, *agent.aliases, *agent.model_choices, *current]))


def trigger_enable(ctx: ToolContext, skill: str, enabled: bool) -> str:
    """Switch the trigger of an adopted skill on or off. What happens while it is off does not start it later.

    skill: the skill's name in trigger_list, its address or naddr
    enabled: true for on, false for off
    """
    trigger = _trigger(ctx, skill)
    name, before = trigger.name, trigger.in_words()
    if trigger.enabled != enabled:
        ctx.site.switch(trigger, enabled, ctx.now)
        trigger.refresh_from_db()
    Change.record(ctx.agent, "trigger", name, before, trigger.in_words(), ctx.now, ctx.run)
    problem = f" It cannot fire: {trigger.problem}" if enabled and not trigger.usable else ""
    return f"The trigger of {name} is {'on' if enabled else 'off'}.{problem}"


def foresee_trigger(ctx: ToolContext, skill: str, enabled: bool) -> str:
    """What the owner decides on."""
    trigger = _trigger(ctx, skill)
    name = trigger.address.split(":", 2)[-1]
    return f"It would switch {'on' if enabled else 'off'} what starts “{name}”: {trigger.words}"


def _allowed(ctx: ToolContext, model: str) -> str:
    """The chain to keep: each part of it one of the choices."""
    parts = [part.strip() for part in model.split(",") if part.strip()]
    choices = model_choices(ctx.agent)
    if not parts or not set(parts) <= set(choices):
        raise ToolRefused(f"The owner allows: {', '.join(choices)}.")
    return "" if parts == [SITE] else ", ".join(dict.fromkeys(parts))


def _trigger(ctx: ToolContext, skill: str) -> Trigger:
    address = shelves.address_of(ctx, skill)
    found = Trigger.objects.filter(agent=ctx.agent, address=str(address)).select_related("agent").first()
    if found is None:
        raise ToolRefused("This skill has no trigger armed here.")
    return found
