"""Skills of the agent's own key: made or changed, published under one id, adopted, armed, and kept in the history."""

from typing import Any, Literal

from agents.models import Change, Trigger
from agents.tools import shelves, wording
from agents.tools.adopting import adopt
from agents.tools.calls import ToolContext, ToolFailed, ToolRefused
from agents.tools.publishing import published_skill, recalled
from marketplace.forms import fields_of, known_version
from marketplace.protocol.events import Address
from marketplace.protocol.skills import SkillSpec, kind_of
from marketplace.protocol.templates import read_action

TriggerKind = Literal["none", "nostr-subscription", "cron", "webhook", "chain"]
Autonomy = Literal["suggest", "auto"]


def skill_create(
    ctx: ToolContext,
    name: str,
    description: str,
    template: str,
    trigger: TriggerKind = "none",
    filter: dict[str, Any] | None = None,
    schedule: str | None = None,
    tz: str | None = None,
    source: str | None = None,
    on: str | None = None,
    params: str | None = None,
    action: Literal["llm", "template"] = "llm",
    enabled: bool = True,
    tools: list[str] | None = None,
    llm: str | None = None,
    max_tokens: int | None = None,
    context_mode: Literal["inject", "full", "override"] | None = None,
    public: bool = False,
    autonomy: Autonomy = "suggest",
) -> str:
    """Make a skill of this agent's own, adopt it, and arm its trigger. It is private unless the owner allows others.

    name: its address for good: letters, digits and hyphens
    description: one or two sentences: when to use it
    template: what to do when it starts; with action template the text to send, such as "DM admin: {content}"
    trigger: what starts it by itself, none if nothing does
    filter: for nostr-subscription: a NIP-01 filter; "search" in it asks for words; npub is converted
    schedule: for cron: five fields, minute hour day month weekday
    tz: for cron: a time zone such as Europe/Berlin, UTC if left out
    source: for chain: the skill after which it starts, as address or naddr
    on: for chain: always, succeeded or failed
    params: for webhook: one a line, name string|number|boolean required|optional
    action: llm has a model carry it out, template fills in the text and sends it without a model
    enabled: whether the trigger is on
    tools: names of tools it may use, of those you may use now; if left out, only what a template action sends with
    llm: a model or alias, the agent's own if left out
    max_tokens: how long an answer may be
    context_mode: inject, full or override; leave it out unless it starts without a trigger and names tools or a model
    public: whether everyone may see it, which the owner must have allowed
    autonomy: auto if it may write without asking the owner each time, suggest if it asks
    """
    given = _given(locals())
    spec = _made(ctx, given, public)
    if recalled(ctx) is None:
        _is_new(ctx, spec)
    return _carried_out(ctx, spec, autonomy, before=None)


def foresee_create(ctx: ToolContext, **given: Any) -> str:
    """What the owner decides on."""
    spec = _made(ctx, given, bool(given.get("public")))
    _is_new(ctx, spec)
    return wording.in_words(spec, given.get("autonomy", "suggest"))


def skill_edit(
    ctx: ToolContext,
    name: str,
    description: str | None = None,
    template: str | None = None,
    trigger: TriggerKind | None = None,
    filter: dict[str, Any] | None = None,
    schedule: str | None = None,
    tz: str | None = None,
    source: str | None = None,
    on: str | None = None,
    params: str | None = None,
    action: Literal["llm", "template"] | None = None,
    enabled: bool | None = None,
    tools: list[str] | None = None,
    llm: str | None = None,
    max_tokens: int | None = None,
    context_mode: Literal["inject", "full", "override"] | None = None,
    autonomy: Autonomy | None = None,
) -> str:
    """Change a skill of this agent's own. What is left out stays as it is.

    name: the skill's name
    description: when to use it
    template: what to do when it starts
    trigger: what starts it by itself, none if nothing does
    filter: for nostr-subscription: a NIP-01 filter
    schedule: for cron: five fields
    tz: for cron: a time zone
    source: for chain: the skill after which it starts
    on: for chain: always, succeeded or failed
    params: for webhook: one a line, name string|number|boolean required|optional
    action: llm or template
    enabled: whether the trigger is on
    tools: names of tools it may use, of those you may use now; an empty list for none
    llm: a model or alias
    max_tokens: how long an answer may be
    context_mode: inject, full or override
    autonomy: auto if it may write without asking the owner each time, suggest if it asks
    """
    given = _given(locals())
    address, before, spec = _edited(ctx, name, given)
    return _carried_out(ctx, spec, autonomy, before={"event": before, "name": address.d})


def foresee_edit(ctx: ToolContext, name: str, **given: Any) -> str:
    """What the owner decides on."""
    address, _, spec = _edited(ctx, name, given)
    trigger = Trigger.objects.filter(agent=ctx.agent, address=str(address)).first()
    autonomy = given.get("autonomy") or (trigger.autonomy if trigger else "suggest")
    return wording.in_words(spec, autonomy)


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "ctx"}


def _made(ctx: ToolContext, given: dict[str, Any], public: bool) -> SkillSpec:
    if public and not ctx.agent.public_skills:
        raise ToolRefused("The owner has not allowed public skills (on the page of the agent's grants).")
    typed = wording.typed_from({name: value for name, value in given.items() if name not in {"public", "autonomy"}})
    typed = {"action": "llm", "enabled": "on", **typed, "visibility": "public" if public else "private"}
    if typed.get("trigger") and "tools_choice" not in typed:
        # What is not named is not given, but a text that is filled in and sent needs what sends it.
        sends = _sends(typed)
        typed |= {"tools_choice": "list", "tools": sends} if sends else {"tools_choice": "none"}
    return wording.spec_from(ctx, typed, SkillSpec(d=""))


def _sends(typed: dict[str, str]) -> str:
    """The tool that a template action sends with, "" for none."""
    if typed.get("action") != "template":
        return ""
    try:
        kind = read_action(typed.get("template", "")).kind
    except ValueError:
        return ""
    return {"post": "nostr_post", "log": ""}.get(kind, "nostr_dm_send")


def _is_new(ctx: ToolContext, spec: SkillSpec) -> None:
    if any(address.d == spec.d for address in shelves.own(ctx)):
        raise ToolRefused(f"There is a skill “{spec.d}” already: change it with skill_edit, or choose another name.")


def _edited(ctx: ToolContext, name: str, given: dict[str, Any]) -> tuple[Address, str, SkillSpec]:
    """Its address, the id of the version it is made from, and the next version."""
    address = shelves.address_of(ctx, name)
    skill = shelves.current(address)
    if address.pubkey != ctx.agent.identity.pubkey or skill is None:
        raise ToolRefused("This is not a skill of this agent's own.")
    base_id = str(ctx.recalled.get("base") or skill.event_id)
    found = known_version(base_id, ctx.agent.owner)
    if found is None or not found[1].readable:
        raise ToolRefused("The current version of this skill cannot be read here.")
    base = found[1]
    if base.public and not ctx.agent.public_skills:
        raise ToolRefused("The owner has not allowed public skills (on the page of the agent's grants).")
    changed = wording.typed_from({key: value for key, value in given.items() if key not in {"name", "autonomy"}})
    return address, base_id, wording.spec_from(ctx, {**fields_of(base), **changed}, base)


def _carried_out(ctx: ToolContext, spec: SkillSpec, autonomy: str | None, before: dict[str, Any] | None) -> str:
    """Publish, adopt, pin, arm, and keep it in the history: each step finds what an earlier attempt did."""
    event = published_skill(ctx, spec, base=before["event"] if before else "")
    address = Address(kind_of(spec), ctx.agent.identity.pubkey, spec.d)
    try:
        adopt(ctx, address, event.id)
    except ToolFailed as failed:
        raise ToolFailed(f"The skill is published as event {event.id}, but not adopted: {failed}") from None
    trigger = _trusted(ctx, address, autonomy)
    after = {"event": event.id, "name": spec.d} | ({"autonomy": trigger.autonomy} if trigger else {})
    Change.record(ctx.agent, "skill", spec.d, before, after, ctx.now, ctx.run)
    done = f"The skill “{spec.d}” ({address}) is published as event {event.id} and adopted."
    if trigger is None:
        return done
    state = "armed" if trigger.live else f"not armed: {trigger.problem or 'it is switched off'}"
    return f"{done} Its trigger is {state}; {trigger.get_autonomy_display()}. {trigger.words}"


def _trusted(ctx: ToolContext, address: Address, autonomy: str | None) -> Trigger | None:
    """The armed trigger, acting by itself only where the owner said yes to that."""
    trigger = Trigger.objects.filter(agent=ctx.agent, address=str(address)).select_related("agent").first()
    may = ctx.approved or ctx.agent.self_change
    if trigger is not None and autonomy is not None and trigger.autonomy != autonomy and (may or autonomy == "suggest"):
        trigger.autonomy = Trigger.Autonomy(autonomy)
        trigger.save(update_fields=["autonomy"])
    return trigger
