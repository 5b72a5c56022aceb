"""Skills on demand, the right to load them, and what requests say, for the tests of all three."""

from typing import Any

from agents.models import AdoptedSkill, Agent
from marketplace.protocol.events import Event
from tests.agents import rows

BOTH = ["skill", "read_skill_file"]


def demand(
    agent: Agent,
    d: str,
    description: str = "",
    template: str = "",
    position: int = 0,
    tags: Any = (),
    **fields: Any,
) -> Event:
    """An adopted skill on demand."""
    content = {"description": description or f"Does {d}", "template": template or f"Do {d} carefully."}
    found = rows.skill(content, *tags, d=d)
    row = rows.adopt(agent, found, position)
    AdoptedSkill.objects.filter(pk=row.pk).update(on_demand=True, **fields)
    return found


def grant(agent: Agent, *names: str) -> None:
    agent.grants = list(names)
    agent.save()


def said(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["role"], message.get("content")) for message in request["messages"]]
