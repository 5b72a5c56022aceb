"""What was spent: by day, skill, agent, model or trigger, in the owner's time zone, exact or said to be unknown."""

from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents import charts
from agents.forms.filters import Unreadable, days_between, plain, zone_of
from agents.models import Budget, Repricing, Step
from agents.models.allowances import overview
from agents.models.costs import GROUPS, CostRow, every_day, total
from agents.templatetags.running import cost_words, model_name
from agents.views.current import own_agents
from marketplace.models import User

REPRICED = "repriced"  # the other way of looking at past costs
MOST_REPRICINGS = 10
MOST_BUDGETS = 12
LINKS = {"skill": "skill", "agent": "agent", "model": "model", "trigger": "trigger"}  # group -> filter of runs


@dataclass(frozen=True, slots=True)
class Spending:
    """The month so far against what may be spent in it."""

    today: CostRow
    month: CostRow
    forecast: Decimal | None  # of the whole month at this pace; None on its first day
    day_limit: Decimal | None
    month_limit: Decimal | None


@login_required
@require_safe
def costs(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    zone = zone_of(user.time_zone)
    today = timezone.now().astimezone(zone).date()
    problem, agent = "", ""
    group = request.GET.get("group", "day")
    repriced = request.GET.get("prices") == REPRICED
    try:
        if group not in GROUPS:
            raise Unreadable(f"Costs are by {', '.join(GROUPS)}.")
        agent = plain(request.GET.get("agent", ""))
        first, last = days_between(request.GET.get("from", ""), request.GET.get("to", ""), today)
    except Unreadable as error:
        problem, group, (first, last) = str(error), "day", days_between("", "", today)
    steps = Step.objects.of(user).between(first, last, zone)
    if agent:
        steps = steps.filter(run__agent__slug=agent)
    rows = steps.costs_by(group, zone, repriced=repriced)
    shown = every_day(rows, first, last) if group == "day" else rows
    context = {
        "problem": problem,
        "group": group,
        "groups": [(name, _address(name, first, last, agent, repriced)) for name in GROUPS],
        "other_prices": _address(group, first, last, agent, not repriced),
        "first": first,
        "last": last,
        "agent": agent,
        "agents": own_agents(request),
        "rows": [(row, _label(group, row), _runs_address(group, row, first, last, agent)) for row in shown],
        "total": total(rows),
        **_chart(group, shown, bool(rows)),
        **_repricings(user, repriced),
        **_budgets(request, user, today),
        "zone": user.time_zone,
    }
    return render(request, "agents/costs.html", context, status=400 if problem else 200)


def _chart(group: str, shown: Sequence[CostRow], any_cost: bool) -> dict[str, Any]:
    most = 400 if group == "day" else 12
    bars = charts.bars([_bar(group, row) for row in shown[:most]]) if any_cost else None
    return {"chart": bars, "left_out": max(0, len(shown) - most)}


def _repricings(user: User, repriced: bool) -> dict[str, Any]:
    made = Repricing.objects.filter(user=user).select_related("agent")
    return {"repriced": repriced, "repricings": made[:MOST_REPRICINGS] if repriced else []}


def _label(group: str, row: CostRow) -> str:
    if group == "model":
        return model_name(row.label)
    if group == "skill":
        return row.label or "no skill"
    return row.label


def _bar(group: str, row: CostRow) -> tuple[str, Decimal, int, str]:
    label = _label(group, row)
    short = f"{date.fromisoformat(row.key):%-d %b}" if group == "day" else label[:14]
    return short, row.cost, row.unknown, f"{label}: {cost_words(row.cost, row.unknown, row.attempts)}"


def _address(group: str, first: date, last: date, agent: str, repriced: bool) -> str:
    given = {"group": group, "from": str(first), "to": str(last), "agent": agent}
    given["prices"] = REPRICED if repriced else ""
    return "?" + urlencode({name: value for name, value in given.items() if value})


def _runs_address(group: str, row: CostRow, first: date, last: date, agent: str) -> str:
    """The runs behind a row: those that began in its days."""
    given = {"from": str(first), "to": str(last), "agent": agent}
    given |= {"from": row.key, "to": row.key} if group == "day" else {LINKS[group]: row.key}
    return urlencode({name: value for name, value in given.items() if value})


def _budgets(request: HttpRequest, user: User, today: date) -> dict[str, Any]:
    """Every budget of the owner's agents, fullest first; and the month against those of whole agents."""
    agents = own_agents(request)
    for agent in agents:
        agent.owner = user
    found = [row for row in overview(agents, timezone.now(), site=False) if row[0].scope != Budget.Scope.RUN]
    limits: dict[str, Decimal] = {}
    for budget, allowance in found:
        if budget.scope == Budget.Scope.AGENT:
            limits[budget.period] = limits.get(budget.period, Decimal(0)) + allowance.limit
    found.sort(key=lambda row: -(row[1].share or 0))
    return {"budgets": found[:MOST_BUDGETS], "spending": _spending(user, today, limits)}


def _spending(user: User, today: date, limits: Mapping[str, Decimal]) -> Spending:
    zone = zone_of(user.time_zone)
    days = Step.objects.of(user).between(today.replace(day=1), today, zone).costs_by("day", zone)
    month = total(days)
    length = monthrange(today.year, today.month)[1]
    return Spending(
        today=total(row for row in days if row.key == today.isoformat()),
        month=month,
        forecast=month.cost / today.day * length if today.day > 1 else None,
        day_limit=limits.get("day"),
        month_limit=limits.get("month"),
    )
