"""Alerts for programs: what is wrong with your agents now, and what was."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query, Router, Schema
from ninja.errors import HttpError
from pydantic import Field

from agents.api.auth import caller
from agents.api.runs import ERRORS, MAX_LIMIT
from agents.models import Agent, Alert


class AlertOut(Schema):
    id: int
    agent: str = Field(description="slug")
    kind: str = Field(description="failing, silent, budget or away")
    subject: str = Field(description="address of the trigger's skill, id of the budget, or worker, listener, relay")
    words: str
    began: datetime
    ended: datetime | None = Field(description="null while it is open")
    ending: str = Field(description="how it ended, in words")


class AlertPage(Schema):
    items: list[AlertOut]
    next: str | None = Field(description="pass as `cursor`; null at the end")


class AlertQuery(Schema):
    agent: str = Field("", description="slug")
    state: str = Field("", description="open or ended")
    limit: int = Field(50, ge=1, le=MAX_LIMIT)
    cursor: str = ""


router = Router(tags=["alerts"])


@router.get("", response={200: AlertPage, **ERRORS}, summary="What is wrong with your agents", operation_id="alerts")
def list_alerts(request: HttpRequest, asked: Query[AlertQuery]) -> dict[str, Any]:
    """Newest first, of one agent or of all of yours."""
    user = caller(request)
    found = Alert.objects.of(user).select_related("agent")
    if asked.agent:
        found = found.filter(agent=get_object_or_404(Agent.objects.of(user), slug=asked.agent.replace("\x00", "")))
    if asked.state not in {"", "open", "ended"}:
        raise HttpError(400, "state is open or ended.")
    if asked.state:
        found = found.filter(ended_at__isnull=asked.state == "open")
    rows, more = found.page(_place(asked.cursor), asked.limit)
    return {"items": [_alert(row) for row in rows], "next": str(more) if more else None}


def _place(cursor: str) -> int | None:
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise HttpError(400, "This cursor is none of ours.")
    return int(cursor) if cursor else None


def _alert(row: Alert) -> dict[str, Any]:
    same = {name: getattr(row, name) for name in ("kind", "subject", "words", "ending")}
    return {**same, "id": row.pk, "agent": row.agent.slug, "began": row.at, "ended": row.ended_at}
