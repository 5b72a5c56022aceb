"""“Why didn't it run?”: every occasion that started nothing, by reason, and what can still be carried out."""

import secrets
from collections import Counter
from datetime import timedelta

from django.contrib.auth.decorators import login_required
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.forms.filters import RunFilter, Unreadable, cursor, place_of, zone_of
from agents.models import HeldBack, Run
from agents.models.runs import RunQuerySet
from agents.views.current import own_agents
from agents.views.runs import own_runs

PAGE = 50
SUMMED = timedelta(days=30)  # as long as counts are kept
REASONS = {
    "duplicate": "it already made a run",
    "disabled": "the trigger, its agent or the site was off or resting",
    "unusable": "the trigger could not be used",
    "expired": "the event had expired",
    "loop": "it came from the agent itself, or the chain was too long",
    "cooldown": "the skill had just run",
    "rate": "too many in a minute",
    "concurrency": "too many at once",
    "budget": "the budget was used up",
    "missed": "the time passed while nothing ran here",
}


@login_required
@require_safe
def held_back(request: HttpRequest) -> HttpResponse:
    problem = ""
    try:
        asked = RunFilter.read({**request.GET.dict(), "status": Run.Status.SUPPRESSED})
        place = place_of(request.GET.get("before", ""))
    except Unreadable as error:
        problem, asked, place = str(error), RunFilter(status=Run.Status.SUPPRESSED), None
    reason = request.GET.get("reason", "") if request.GET.get("reason", "") in REASONS else ""
    matching = asked.apply(own_runs(request), zone_of("UTC"))
    rows, more = (matching.filter(reason=reason) if reason else matching).page(place, PAGE)
    context = {
        "problem": problem,
        "filter": asked,
        "reason": reason,
        "reasons": REASONS,
        "agents": own_agents(request),
        "counts": _counts(request, asked, matching),
        "runs": [] if problem else rows,
        "older": asked.query(before=cursor(more), reason=reason) if more else "",
        "token": secrets.token_hex(8),
    }
    return render(request, "agents/held_back.html", context, status=400 if problem else 200)


def _counts(request: HttpRequest, asked: RunFilter, matching: RunQuerySet) -> list[tuple[str, str, int]]:
    """(reason, in words, how often) in the last thirty days, rows and mere counts together; most first."""
    since = timezone.now() - SUMMED
    rows = matching.filter(created_at__gte=since).order_by().values_list("reason").annotate(count=Count("pk"))
    counted = HeldBack.objects.filter(trigger__agent__in=own_agents(request), minute__gte=since)
    if asked.agent:
        counted = counted.filter(trigger__agent__slug=asked.agent)
    if asked.skill:
        counted = counted.filter(trigger__address=asked.skill)
    found: Counter[str] = Counter()
    for reason, count in [*rows, *counted.values_list("reason").annotate(count=Sum("count"))]:
        found[reason] += count
    return [(name, REASONS.get(name, name), count) for name, count in found.most_common()]
