"""Pricing past calls anew: one run from its page, a range from the page of costs; both prices stay."""

from typing import cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents.forms.filters import Unreadable, days_between, plain, zone_of
from agents.models import Repricing, Run
from agents.repricing import Asked, TooMany, reprice
from agents.views.costs import REPRICED
from agents.views.current import own_agent
from marketplace.models import User
from marketplace.templatetags.journeyman import money


@login_required
@require_POST
def run_reprice(request: HttpRequest, pk: str) -> HttpResponse:
    user = cast(User, request.user)
    run = get_object_or_404(Run.objects.of(user), pk=pk.replace("\x00", ""))
    messages.success(request, words(reprice(user, Asked(run=run), timezone.now())))
    return redirect("run", run.pk)


@login_required
@require_POST
def costs_reprice(request: HttpRequest) -> HttpResponse:
    """The calls that the page showed; the answer is the page with the new prices."""
    user, given = cast(User, request.user), request.POST
    today = timezone.now().astimezone(zone_of(user.time_zone)).date()
    kept = {name: given.get(name, "")[:200] for name in ("group", "from", "to", "agent")}
    try:
        first, last = days_between(kept["from"], kept["to"], today)
        agent = own_agent(request, kept["agent"]) if kept["agent"] else None
        made = reprice(user, Asked(None, agent, plain(given.get("model", "")[:200]), first, last), timezone.now())
    except (Unreadable, TooMany) as error:
        messages.error(request, str(error))
        kept |= {"prices": given.get("prices", "")}
    else:
        messages.success(request, words(made))
        kept |= {"prices": REPRICED}
    query = urlencode({name: value for name, value in kept.items() if value and value.isprintable()})
    return redirect(f"{reverse('costs')}?{query}")


def words(made: Repricing) -> str:
    """What came of it, in a sentence or two."""
    if not made.calls:
        return "Nothing was priced anew: no call in this has both a usage and a price."
    said = f"{made.calls} calls: charged {money(made.charged)}, by today's prices {money(made.repriced)}"
    parts = [f"{said}; {made.changed} differ." if made.changed else f"{said}; none differs."]
    if made.unknown:
        parts.append(f"{made.unknown} of them had been unknown.")
    if made.skipped:
        parts.append(f"{made.skipped} more stay as they are: their usage or their price is unknown.")
    return " ".join([*parts, "What was charged is not changed."])
