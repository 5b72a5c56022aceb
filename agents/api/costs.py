"""Costs for programs: the sums of the page, with all digits."""

from datetime import date
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Schema
from ninja.errors import HttpError
from pydantic import Field

from agents.api.auth import caller
from agents.api.runs import ERRORS, digits
from agents.forms.filters import Unreadable, days_between, zone_of
from agents.models import Step
from agents.models.costs import GROUPS, CostRow, total


class CostQuery(Schema):
    group: str = Field("day", description="one of " + ", ".join(GROUPS))
    since: str = Field("", alias="from", description="YYYY-MM-DD; without it the first of the month")
    until: str = Field("", alias="to", description="YYYY-MM-DD, inclusive; without it today")
    prices: str = Field("charged", description="charged, or repriced: by the new price where a call has one")
    tz: str = Field("", max_length=64, description="such as Europe/Berlin; without it yours")


class Amount(Schema):
    cost: str = Field(description="US dollars of calls with a known price, all digits")
    charged: str = Field(description="US dollars as charged, also where `cost` is by new prices")
    unknown: int = Field(description="calls without a known price; not part of the cost, not zero")
    assumed: str = Field(description="US dollars that the unknown calls counted against budgets")
    calls: int
    tokens: int


class CostOut(Amount):
    key: str = Field(description="date, address, slug, model or kind of trigger")
    label: str
    runs: int


class CostTable(Schema):
    group: str
    first: date
    last: date
    tz: str
    items: list[CostOut]
    total: Amount


router = Router(tags=["costs"])


@router.get("", response={200: CostTable, **ERRORS}, summary="What was spent", operation_id="costs")
def get_costs(request: HttpRequest, asked: Query[CostQuery]) -> dict[str, Any]:
    """Whole days of one time zone. The items add up to the total at every grouping."""
    user = caller(request)
    try:
        if asked.group not in GROUPS:
            raise Unreadable(f"group is one of: {', '.join(GROUPS)}.")
        if asked.prices not in {"charged", "repriced"}:
            raise Unreadable("prices is charged or repriced.")
        zone = zone_of(asked.tz or user.time_zone)
        first, last = days_between(asked.since, asked.until, timezone.now().astimezone(zone).date())
    except Unreadable as error:
        raise HttpError(400, str(error)) from None
    rows = (
        Step.objects.of(user)
        .between(first, last, zone)
        .costs_by(asked.group, zone, repriced=asked.prices == "repriced")
    )
    items = [{**_amount(row), "key": row.key, "label": row.label, "runs": row.runs} for row in rows]
    return {
        "group": asked.group,
        "first": first,
        "last": last,
        "tz": zone.key,
        "items": items,
        "total": _amount(total(rows)),
    }


def _amount(row: CostRow) -> dict[str, Any]:
    amounts = {"cost": digits(row.cost), "charged": digits(row.charged), "assumed": digits(row.assumed)}
    return {**amounts, "unknown": row.unknown, "calls": row.attempts, "tokens": row.tokens}
