"""Which skill a tool's words mean: an own one by its name, any other by its address."""

from agents.models import AdoptedSkill
from agents.tools.calls import ToolContext, ToolRefused
from marketplace.models import Skill
from marketplace.protocol import kinds, nip19
from marketplace.protocol.events import Address

GONE = ("deleted", "expired")


def address_of(ctx: ToolContext, text: str) -> Address:
    """From an naddr, a coordinate, or the name of an adopted or own skill. Raises ToolRefused."""
    wanted = text.strip()
    found = Address.parse(wanted)
    if found is None and wanted.startswith("naddr1"):
        try:
            decoded = nip19.decode(wanted)
        except ValueError:
            decoded = None
        found = decoded.address if isinstance(decoded, nip19.Naddr) else None
    if found is not None and found.kind in kinds.SKILLS:
        return found
    named = [one for one in adopted(ctx) if one.d == wanted]
    named += [] if named else [address for address in own(ctx) if address.d == wanted]
    if len(named) == 1:
        return named[0]
    if named:
        raise ToolRefused(f"More than one skill is called “{wanted[:80]}”: name its address.")
    raise ToolRefused(f"No skill of this agent is called “{wanted[:80]}”, and it is not an address either.")


def adopted(ctx: ToolContext) -> list[Address]:
    """The agent's skills in their order."""
    rows = AdoptedSkill.objects.filter(agent=ctx.agent).values_list("address", flat=True)
    return [address for address in map(Address.parse, rows) if address is not None]


def own(ctx: ToolContext) -> list[Address]:
    """What the agent's key published and did not take back."""
    rows = Skill.objects.filter(pubkey=ctx.agent.identity.pubkey).exclude(state__in=GONE)
    return [Address(skill.kind, skill.pubkey, skill.d) for skill in rows.order_by("pk")]


def current(address: Address) -> Skill | None:
    """The skill as it stands, unless it was taken back."""
    found = Skill.objects.filter(kind=address.kind, pubkey=address.pubkey, d=address.d)
    return found.exclude(state__in=GONE).first()
