"""What agents remember, for programs."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema
from ninja.errors import HttpError
from pydantic import Field

from agents.api.auth import caller
from agents.api.runs import ERRORS, MAX_LIMIT, Text
from agents.models import Agent, Memory

router = Router(tags=["memory"])


class MemoryOut(Schema):
    id: int
    agent: str = Field(description="slug")
    text: str
    created_at: datetime
    updated_at: datetime


class MemoryPage(Schema):
    items: list[MemoryOut]
    next: str | None = Field(description="pass as `cursor`; null at the end")


class MemoryQuery(Schema):
    agent: Text = Field("", max_length=100, description="slug")
    q: Text = Field("", max_length=200, description="words it holds")
    limit: int = Field(50, ge=1, le=MAX_LIMIT)
    cursor: str = Field("", max_length=40)


@router.get("", response={200: MemoryPage, **ERRORS}, summary="What your agents remember", operation_id="memory")
def list_memory(request: HttpRequest, asked: Query[MemoryQuery]) -> dict[str, Any]:
    """Newest first."""
    user = caller(request)
    if asked.cursor and not (asked.cursor.isascii() and asked.cursor.isdigit() and len(asked.cursor) < 19):
        raise HttpError(400, "This cursor was not given out here.")
    found = Memory.objects.of(user).select_related("agent").search(asked.q)
    if asked.agent:
        found = found.filter(agent=get_object_or_404(Agent.objects.of(user), slug=asked.agent))
    rows, more = found.page(int(asked.cursor) if asked.cursor else None, asked.limit)
    return {"items": [_shown(memory) for memory in rows], "next": str(more) if more else None}


def _shown(memory: Memory) -> dict[str, Any]:
    same = ("text", "created_at", "updated_at")
    return {"id": memory.pk, "agent": memory.agent.slug, **{name: getattr(memory, name) for name in same}}
