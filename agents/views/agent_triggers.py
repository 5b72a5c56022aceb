"""An agent's triggers: what fires them, how they did this week, and every switch an owner has on them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from agents import arming, resting
from agents.models import Agent, Change, Run, Trigger
from agents.models.money import MoneyField
from agents.views.current import own_agent

WEEK = timedelta(days=7)
MOST_HOURS = 8_760  # a year
PAUSES = {"3600": "an hour", "86400": "a day", "604800": "a week", "": "until I resume it"}


@dataclass
class Line:
    """One trigger as the list shows it, with its last seven days."""

    trigger: Trigger
    runs: int = 0
    failed: int = 0
    held_back: int = 0
    cost: Decimal = Decimal(0)
    unknown: int = 0


@login_required
@require_safe
def agent_triggers(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, own_agent(request, slug))


def _page(request: HttpRequest, own: Agent, wrong: int = 0, typed: str = "") -> HttpResponse:
    """`wrong`: the trigger whose expected hours were typed as no number can be."""
    context = {
        "agent": own,
        "tab": "agent_triggers",
        "lines": _lines(own, timezone.now()),
        "pauses": PAUSES,
        "catch_ups": Trigger.CatchUp.choices,
        "most_hours": MOST_HOURS,
        "wrong": wrong,
        "typed": typed[:40],
    }
    return render(request, "agents/agent_triggers.html", context, status=422 if wrong else 200)


def _lines(own: Agent, now: datetime) -> list[Line]:
    """Two queries, however many triggers."""
    lines = {row.pk: Line(row) for row in Trigger.objects.filter(agent=own).order_by("address", "pk")}
    for line in lines.values():
        line.trigger.agent = own
    suppressed = Q(status=Run.Status.SUPPRESSED)
    counted = Run.objects.filter(agent=own, trigger__in=lines, created_at__gte=now - WEEK).values("trigger")
    for row in counted.annotate(
        all=Count("pk"),
        held=Count("pk", filter=suppressed),
        failed=Count("pk", filter=Q(status=Run.Status.FAILED)),
        spent=Sum("cost", output_field=MoneyField()),
        unknown=Sum("unknown_costs"),
    ):
        line = lines[row["trigger"]]
        line.runs, line.held_back, line.failed = row["all"] - row["held"], row["held"], row["failed"]
        line.cost, line.unknown = row["spent"] or Decimal(0), row["unknown"] or 0
    return list(lines.values())


@login_required
@require_POST
def trigger_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Its switch, a pause, how much it may do unasked, what becomes of missed slots, when it is too silent."""
    own, now = own_agent(request, slug), timezone.now()
    trigger = get_object_or_404(Trigger.objects.select_related("agent"), agent=own, pk=pk)
    asked, before = request.POST, trigger.in_words()
    hours = asked.get("expected_hours", "").strip()
    if hours and not (hours.isascii() and hours.isdigit() and 1 <= int(hours[:9]) <= MOST_HOURS):
        return _page(request, own, trigger.pk, hours)
    if "expected_hours" in asked:
        Trigger.objects.filter(pk=trigger.pk).update(expected_hours=int(hours) if hours else None)
    if asked.get("autonomy") in Trigger.Autonomy.values:
        Trigger.objects.filter(pk=trigger.pk).update(autonomy=cast(Any, asked["autonomy"]))
    if asked.get("catch_up") in Trigger.CatchUp.values:
        Trigger.objects.filter(pk=trigger.pk).update(catch_up=cast(Any, asked["catch_up"]))
    if asked.get("enabled") in {"on", "off"}:
        arming.switch(trigger, asked["enabled"] == "on", now)
    if asked.get("pause") in PAUSES:
        seconds = asked["pause"]
        resting.pause(trigger, now + timedelta(seconds=int(seconds)) if seconds else None)
        long = f" for {PAUSES[seconds]}" if seconds else ""
        messages.success(request, f"{trigger.name} rests{long}; what happens meanwhile does not fire later.")
    if asked.get("resume"):
        resting.resume(trigger, now)
        messages.success(request, f"{trigger.name} fires again, from now on.")
    trigger.refresh_from_db()
    Change.record(own, "trigger", trigger.name, before, trigger.in_words(), now)
    return redirect("agent_triggers", own.slug)
