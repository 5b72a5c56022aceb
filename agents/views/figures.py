"""What skills cost an owner a day and how often they succeed here: for the trigger market and a skill's page."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import cast

from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents.models import Run
from agents.models.money import MoneyField
from marketplace.models import User
from marketplace.protocol.storable import storable

DAYS = 7
MOST = 50  # skills of one page of the market
LONGEST_ADDRESS = 300  # of a coordinate, as runs keep it


@dataclass(frozen=True)
class Figures:
    """Of one skill and one owner, over the last days."""

    runs: int = 0
    succeeded: int = 0
    failed: int = 0
    cost: Decimal = Decimal(0)
    unknown: int = 0  # calls whose price is not known; they are in no sum

    @property
    def a_day(self) -> Decimal:
        return self.cost / DAYS

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed

    @property
    def rate(self) -> int | None:
        """Per cent that succeeded of those that ended by themselves, rounded down: only all of them are 100."""
        return self.succeeded * 100 // self.ended if self.ended else None


def figures(user: User, addresses: Iterable[str], now: datetime) -> dict[str, Figures]:
    """By skill; what no agent of the user ran is not there. One query."""
    since = now - timedelta(days=DAYS)
    found = Run.objects.of(user).filter(skill_address__in=set(addresses), created_at__gte=since)
    rows = found.exclude(status=Run.Status.SUPPRESSED).order_by().values_list("skill_address")
    counted = rows.annotate(
        ran=Count("pk"),
        good=Count("pk", filter=Q(status=Run.Status.SUCCEEDED)),
        bad=Count("pk", filter=Q(status=Run.Status.FAILED)),
        spent=Sum("cost", output_field=MoneyField()),
        unpriced=Sum("unknown_costs"),
    )
    return {
        address: Figures(runs, succeeded, failed, cost or Decimal(0), unknown or 0)
        for address, runs, succeeded, failed, cost, unknown in counted
    }


@login_required
@require_POST
def trigger_figures(request: HttpRequest) -> HttpResponse:
    """A part of the market: the cell of each skill named in `a`, in that order. POST, since fifty make a long line."""
    asked = [str(storable(text[:LONGEST_ADDRESS])) for text in request.POST.getlist("a")[:MOST]]
    found = figures(cast(User, request.user), asked, timezone.now())
    context = {"cells": [(address, found.get(address)) for address in asked], "days": DAYS}
    return HttpResponse(render_to_string("agents/_trigger_figures.html", context))
