"""An agent's skills for programs: what each costs in every request, and the switch between always on and on demand."""

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema
from ninja.errors import HttpError
from pydantic import Field

from agents.api.auth import caller, writes
from agents.api.runs import ERRORS, Text
from agents.models import AdoptedSkill, Agent
from agents.views.agent_skills import Line, carry, lines_of, totals_of
from marketplace.models import User


class CarriedOut(Schema):
    address: str
    name: str = Field(description="what it goes by for a model, and as /name")
    pinned_event: str = Field(description="the version that runs")
    on_demand: bool
    always_tokens: int = Field(description="in every request while it is always on")
    line_tokens: int = Field(description="in every request while it is on demand")
    load_tokens: int = Field(description="more, once it is loaded")
    note: str = Field(description="why a figure is not what one would expect, else empty")


class CarriedList(Schema):
    items: list[CarriedOut]
    tokens: int = Field(description="of skills in each request as it is set now")
    always_tokens: int = Field(description="were all always on")
    on_demand_tokens: int = Field(description="were all on demand, before any is loaded")


class CarriedIn(Schema):
    address: Text = Field("", max_length=300, description="of one adopted skill; empty for all")
    on_demand: bool | None = Field(None, description="must be there")


router = Router(tags=["agents"])


@router.get(
    "/agents/{slug}/skills",
    response={200: CarriedList, **ERRORS},
    summary="Adopted skills and what each costs in every request",
    operation_id="agent_skills",
)
def list_skills(request: HttpRequest, slug: str) -> dict[str, Any]:
    return _list(_own(caller(request), slug))


@router.post(
    "/agents/{slug}/skills",
    auth=writes,
    response={200: CarriedList, **ERRORS},
    summary="Put skills on demand, or keep them always on",
    operation_id="carry_skills",
)
def carry_skills(request: HttpRequest, slug: str, body: CarriedIn) -> dict[str, Any]:
    """Holds from the next run on. On demand grants the tool `skill`, which loads them."""
    own = _own(caller(request), slug)
    if body.on_demand is None:
        raise HttpError(400, "Say `on_demand`: true, or false for always on.")
    rows = AdoptedSkill.objects.filter(agent=own)
    if body.address:
        rows = rows.filter(pk=get_object_or_404(rows, address=body.address).pk)
    carry(own, rows, body.on_demand)
    return _list(own)


def _own(user: User, slug: str) -> Agent:
    agents = Agent.objects.of(user).select_related("identity")
    return get_object_or_404(agents, slug=slug.replace("\x00", ""))


def _list(own: Agent) -> dict[str, Any]:
    lines = lines_of(own)
    totals = totals_of(own, lines)
    return {
        "items": [_carried(line) for line in lines],
        "tokens": totals.now,
        "always_tokens": totals.always,
        "on_demand_tokens": totals.on_demand,
    }


def _carried(line: Line) -> dict[str, Any]:
    return {
        "address": line.row.address,
        "name": line.name,
        "pinned_event": line.row.pinned_event,
        "on_demand": line.row.on_demand,
        "always_tokens": line.cost.always,
        "line_tokens": line.cost.line,
        "load_tokens": line.cost.load,
        "note": line.cost.note,
    }
