"""What the agent remembers between runs."""

import json

from agents.models import Memory
from agents.tools.calls import ToolContext, ToolRefused


def memory_save(ctx: ToolContext, text: str) -> str:
    """Remember something for later runs.

    text: what to remember, as one or a few sentences
    """
    if refusal := Memory.problem(text):
        raise ToolRefused(refusal)
    if refusal := Memory.full(ctx.agent):
        raise ToolRefused(refusal)
    memory, made = Memory.objects.get_or_create(agent=ctx.agent, text=text.strip(), defaults={"created_at": ctx.now})
    return f"Remembered as number {memory.pk}." if made else f"This was remembered already, as number {memory.pk}."


def memory_search(ctx: ToolContext, query: str = "", limit: int = 10) -> str:
    """Search what was remembered, newest first.

    query: words it holds; leave it out for the newest
    limit: how many at most
    """
    found = Memory.objects.filter(agent=ctx.agent).search(query)
    rows = [
        json.dumps({"number": one.pk, "at": one.created_at.isoformat(), "text": one.text}, ensure_ascii=False)
        for one in found.order_by("-pk")[: max(1, min(limit, 50))]
    ]
    return ctx.fenced("memories", "\n".join(rows)) if rows else "Nothing was remembered about that."
