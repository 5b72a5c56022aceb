"""What a trigger would have done in the past days: firings, what limits hold back, samples, and what it costs."""

from decimal import Decimal
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents import arming
from agents.models import Agent, Trigger
from agents.preview import preview
from agents.rehearsing import Rehearsal, rehearsal
from agents.views.current import own_agent
from agents.views.trigger_preview import sample
from marketplace.protocol.events import Event
from marketplace.protocol.triggers import read_trigger
from marketplace.protocol.triggers.cron import Cron, next_times

DAYS = (1, 7, 30)
SAMPLES = 3
LISTED = 100


@login_required
@require_safe
def trigger_rehearsal(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Relays are asked only when a number of days is chosen."""
    agent = own_agent(request, slug)
    trigger = get_object_or_404(Trigger.objects.select_related("agent__identity"), agent=agent, pk=pk)
    spec, now = read_trigger([tuple(tag) for tag in trigger.tags]), timezone.now()
    context: dict[str, Any] = {"agent": agent, "tab": "agent_triggers", "trigger": trigger, "days": DAYS}
    context["next"] = next_times(spec.data, now) if spec and isinstance(spec.data, Cron) else []
    asked = next((days for days in DAYS if str(days) == request.GET.get("days")), None)
    if asked is not None:
        found = rehearsal(trigger, asked, now)
        context |= {"asked": asked, "found": found, "listed": found.found[::-1][:LISTED]}
        context |= _shown(agent, trigger, found)
    return render(request, "agents/rehearsal.html", context)


def _shown(agent: Agent, trigger: Trigger, found: Rehearsal) -> dict[str, Any]:
    """What the newest would have sent, and what a day costs at each model of the chain."""
    spec = arming.pinned_spec(agent, trigger.event_id)
    if spec is None or not spec.readable:
        return {"samples": [], "costs": []}
    occasions = [_happened(one.moment.what) or sample(trigger, spec, agent) for one in found.runs[::-1][:SAMPLES]]
    results = [preview(spec, agent, "", happened, address=trigger.address) for happened in occasions]
    prices = results[0]["prices"] if results else []
    each = len(found.runs) / Decimal(found.days)
    costs = [(one["model"], _a_day(one["input"], each), _a_day(one["at_most"], each)) for one in prices]
    return {"samples": results, "costs": costs, "each": each}


def _happened(what: Any) -> dict[str, Any] | None:
    return what.to_dict() if isinstance(what, Event) else None


def _a_day(amount: str | None, each: Decimal) -> Decimal | None:
    return None if amount is None else Decimal(amount) * each
