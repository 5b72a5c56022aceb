"""What the agent may know of skills, tools and triggers: reading only."""

from agents.models import AdoptedSkill, Trigger
from agents.tools.calls import ToolContext
from marketplace import rankings
from marketplace.models import Skill
from marketplace.protocol import nip19
from marketplace.protocol.events import Address

MOST_SKILLS = 20


def skill_search(ctx: ToolContext, query: str, limit: int = 10) -> str:
    """Search the public skills of this site, most adopted first.

    query: words that the name, description, topics or author hold
    limit: how many skills at most
    """
    found = rankings.order(Skill.objects.public().search(query), rankings.DEFAULT)
    rows = [
        f"{nip19.encode_naddr(Address(skill.kind, skill.pubkey, skill.d))} {_line(skill.d)}: "
        f"{_line(skill.description, 300)} ({skill.adopters} adopters)"
        for skill in found[: max(1, min(limit, MOST_SKILLS))]
    ]
    return ctx.fenced("skills", "\n".join(rows)) if rows else "No skills were found."


def skill_list(ctx: ToolContext) -> str:
    """List the skills that this agent has adopted, in their order."""
    addresses = list(AdoptedSkill.objects.filter(agent=ctx.agent).values_list("address", flat=True))
    parts = [parsed for parsed in map(Address.parse, addresses) if parsed]
    known = Skill.objects.filter(pubkey__in={one.pubkey for one in parts}, d__in={one.d for one in parts})
    said = {skill.address: skill.description for skill in known}
    rows = [f"{_line(one.d)}: {_line(said.get(str(one), ''), 300)}" for one in parts]
    return ctx.fenced("adopted skills", "\n".join(rows)) if rows else "No skills are adopted."


def tool_list(ctx: ToolContext) -> str:
    """List the tools that this run may call."""
    from agents.tools import TOOLS

    rows = [f"{name}: {TOOLS[name].description}" for name in sorted(ctx.granted) if name in TOOLS]
    return "\n".join(rows) or "No tools are granted."


def trigger_list(ctx: ToolContext) -> str:
    """List the triggers of this agent and whether they are on."""
    rows = []
    for trigger in Trigger.objects.filter(agent=ctx.agent).order_by("pk"):
        state = (
            "on" if trigger.enabled and trigger.usable else f"off{': ' + trigger.problem if trigger.problem else ''}"
        )
        rows.append(f"{_line(trigger.address.split(':', 2)[2])}: {_line(trigger.words, 200)} ({state})")
    return ctx.fenced("triggers", "\n".join(rows)) if rows else "No triggers are armed."


def _line(text: str, most: int = 100) -> str:
    return " ".join(text.split())[:most]
