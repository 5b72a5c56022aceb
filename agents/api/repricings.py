"""Repricing for programs: past calls by today's prices, with both sums; what was charged stays."""

from datetime import date, datetime
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Router, Schema, Status
from ninja.errors import HttpError
from pydantic import Field

from agents.api.auth import caller, writes
from agents.api.runs import ERRORS, Text, digits
from agents.forms.filters import Unreadable, days_between, zone_of
from agents.models import Agent, Repricing, Run
from agents.repricing import Asked, TooMany, reprice

MOST = 100


class RepricingOut(Schema):
    id: int
    at: datetime
    run: str | None = Field(description="id of the one run, else null")
    agent: str = Field(description="slug; empty for all")
    model: str = Field(description="that answered; empty for all")
    first: date | None
    last: date | None
    calls: int = Field(description="that have a new price")
    changed: int = Field(description="of them, those that differ from what was charged")
    skipped: int = Field(description="without usage or price; they stay as charged")
    unknown: int = Field(description="of the calls, those whose cost had been unknown")
    charged: str = Field(description="US dollars of the calls as charged")
    repriced: str = Field(description="US dollars of the same calls by the new prices")
    price_versions: list[str]


class RepricingList(Schema):
    items: list[RepricingOut]


class RepricingIn(Schema):
    run: Text = Field("", max_length=26, description="one run; the other fields are then left out")
    agent: Text = Field("", max_length=60, description="slug of your agent; empty for all")
    model: Text = Field("", max_length=200, description="that answered; empty for all")
    since: Text = Field("", max_length=10, alias="from", description="YYYY-MM-DD; without it the first of the month")
    until: Text = Field("", max_length=10, alias="to", description="YYYY-MM-DD, inclusive; without it today")


router = Router(tags=["costs"])


@router.get("", response={200: RepricingList, **ERRORS}, summary="Repricings so far", operation_id="repricings")
def list_repricings(request: HttpRequest) -> dict[str, Any]:
    """The newest hundred."""
    return {
        "items": [_out(one) for one in Repricing.objects.filter(user=caller(request)).select_related("agent")[:MOST]]
    }


@router.post(
    "", auth=writes, response={201: RepricingOut, **ERRORS}, summary="Price past calls anew", operation_id="reprice"
)
def post_repricing(request: HttpRequest, body: RepricingIn) -> Status[dict[str, Any]]:
    """By today's table and your own prices, from the usage that was reported. What was charged is never changed."""
    user, now = caller(request), timezone.now()
    try:
        if body.run:
            asked = Asked(run=get_object_or_404(Run.objects.of(user), pk=body.run))
        else:
            agent = get_object_or_404(Agent.objects.of(user), slug=body.agent) if body.agent else None
            today = now.astimezone(zone_of(user.time_zone)).date()
            first, last = days_between(body.since, body.until, today)
            asked = Asked(None, agent, body.model, first, last)
        return Status(201, _out(reprice(user, asked, now)))
    except (Unreadable, TooMany) as error:
        raise HttpError(400, str(error)) from None


def _out(made: Repricing) -> dict[str, Any]:
    same = ("at", "model", "first", "last", "calls", "changed", "skipped", "unknown", "price_versions")
    return {
        **{name: getattr(made, name) for name in same},
        "id": made.pk,
        "run": made.run_id,
        "agent": made.agent.slug if made.agent else "",
        "charged": digits(made.charged),
        "repriced": digits(made.repriced),
    }
