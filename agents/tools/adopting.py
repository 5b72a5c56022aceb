"""What the agent adopts: its list is read from the relays before it is replaced, and a version is pinned."""

from agents.models import AdoptedSkill, Change
from agents.tools import shelves
from agents.tools.calls import ToolContext, ToolFailed, ToolRefused
from marketplace import publish, signing
from marketplace.models import Publication, Skill
from marketplace.protocol import kinds
from marketplace.protocol.events import Address

REFUSALS = (publish.PublishError, signing.NotHeld, signing.VaultError)


def skill_adopt(ctx: ToolContext, skill: str) -> str:
    """Adopt a skill: from then on it is part of what this agent knows, and its trigger is armed.

    skill: its address (31123:key:name) or naddr, as skill_search gives it
    """
    address, found = _offered(ctx, skill)
    if ctx.recalled.get("event_id", found.event_id) != found.event_id:
        raise ToolRefused("A newer version came in the meantime. Look at it, and ask again.")
    ctx.remember({"event_id": found.event_id})
    was = AdoptedSkill.objects.filter(agent=ctx.agent, address=str(address)).first()
    adopt(ctx, address, found.event_id)
    before = {"event": was.pinned_event} if was else None
    Change.record(ctx.agent, "adoption", address.d, before, {"event": found.event_id}, ctx.now, ctx.run)
    return f"{address.d} is adopted in version {found.event_id}."


def foresee_adopt(ctx: ToolContext, skill: str) -> str:
    """What the owner decides on: this version and no other."""
    address, found = _offered(ctx, skill)
    ctx.remember({"event_id": found.event_id})
    starts = f"It starts by itself ({found.trigger_kind})." if found.trigger_kind else "It does not start by itself."
    return f"The skill “{address.d}” of {address.pubkey}, version {found.event_id}:\n{found.description}\n{starts}"


def skill_unadopt(ctx: ToolContext, skill: str) -> str:
    """Adopt a skill no longer: its trigger is disarmed and it is no longer part of what this agent knows.

    skill: its name in skill_list, its address or naddr
    """
    address = shelves.address_of(ctx, skill)
    was = AdoptedSkill.objects.filter(agent=ctx.agent, address=str(address)).first()
    try:
        publication = publish.unadopt(ctx.agent.identity, address, int(ctx.now.timestamp()))
    except REFUSALS as error:
        raise ToolFailed(str(error)) from None
    if publication is not None:
        taken(publication)
    AdoptedSkill.objects.filter(agent=ctx.agent, address=str(address)).delete()
    ctx.site.pin(ctx.agent, str(address), "", ctx.now)  # brings the triggers in step with the list
    if was is None and publication is None:
        return f"{address.d} was not adopted."
    before = {"event": was.pinned_event} if was else {"event": ""}
    Change.record(ctx.agent, "adoption", address.d, before, None, ctx.now, ctx.run)
    return f"{address.d} is no longer adopted; its trigger is disarmed."


def adopt(ctx: ToolContext, address: Address, event_id: str) -> None:
    """Put it on the list, pin this version and arm it. Raises ToolFailed; an earlier attempt's work is found."""
    try:
        publication = publish.adopt(ctx.agent.identity, address, int(ctx.now.timestamp()))
    except REFUSALS as error:
        raise ToolFailed(str(error)) from None
    if publication is not None:
        taken(publication)
    ctx.site.pin(ctx.agent, str(address), event_id, ctx.now)


def taken(publication: Publication) -> None:
    """Raises ToolFailed where no relay took it: then nothing changed."""
    answers = list(publication.answers.all())
    if not any(answer.ok for answer in answers):
        said = "; ".join(f"{answer.url}: {answer.message or 'no answer'}" for answer in answers)
        raise ToolFailed(f"No relay took it, so nothing changed. {said}")


def _offered(ctx: ToolContext, text: str) -> tuple[Address, Skill]:
    """A public skill that is listed, or one of the agent's own key."""
    address = shelves.address_of(ctx, text)
    found = shelves.current(address)
    own = address.pubkey == ctx.agent.identity.pubkey
    if found is None or not (own or (found.kind == kinds.SKILL and found.listed)):
        raise ToolRefused("This site does not know such a skill.")
    return address, found
