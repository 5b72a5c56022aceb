"""What may be spent: every budget of one agent on one page, and for staff those of the whole site."""

from collections.abc import Sequence
from decimal import Decimal
from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from agents.forms.budgets import BudgetsForm
from agents.models import AdoptedSkill, Agent, Budget, Notice, Trigger
from agents.models import Change as History
from agents.models.allowances import overview
from agents.views.current import listed_agent
from marketplace.models import User

MOST_TOLD = 20
Change = tuple[str, str, str, Decimal | None]


@login_required
def agent_budgets(request: HttpRequest, slug: str) -> HttpResponse:
    own = listed_agent(request, slug)
    own.owner = cast(User, request.user)  # whose zone the periods are of
    rows = overview([own], timezone.now())
    mine = [row for row in rows if row[0].agent_id is not None]
    form = BudgetsForm(request.POST or None, rows=mine, targets=_targets(own))
    if request.method == "POST" and form.is_valid():
        _save(own, form.changes())
        messages.success(request, f"The budgets of {own.name} are saved; they hold from the next call on.")
        return redirect("agent_budgets", own.slug)
    context = {
        "agent": own,
        "tab": "agent_budgets",
        "form": form,
        "site": [row for row in rows if row not in mine],
        "told": Notice.objects.filter(agent=own, budget__isnull=False, channel="dm").order_by("-at", "-pk")[:MOST_TOLD],
    }
    return render(request, "agents/agent_budgets.html", context, status=422 if form.errors else 200)


@login_required
def site_budgets(request: HttpRequest) -> HttpResponse:
    if not cast(User, request.user).is_staff:
        raise Http404("Not for you.")
    form = BudgetsForm(request.POST or None, rows=overview([], timezone.now()), targets=[("site", "the whole site")])
    if request.method == "POST" and form.is_valid():
        _save(None, form.changes())
        messages.success(request, "The budgets of the site are saved; they hold from the next call on.")
        return redirect("site_budgets")
    return render(request, "agents/site_budgets.html", {"form": form}, status=422 if form.errors else 200)


def _targets(own: Agent) -> list[tuple[str, str]]:
    """What a budget can be for, in the words of the list."""
    armed = Trigger.objects.filter(agent=own, address=OuterRef("address"))
    skills = AdoptedSkill.objects.filter(agent=own).annotate(armed=Exists(armed)).values_list("address", "armed")
    found = [("agent", "all of this agent"), ("run", "each single run")]
    for address, has_trigger in skills:
        name = address.split(":", 2)[-1][:80]
        found.append((f"skill {address}", f"skill {name}"))
        if has_trigger:
            found.append((f"trigger {address}", f"trigger of {name}"))
    return found


@transaction.atomic
def _save(own: Agent | None, changes: Sequence[Change]) -> None:
    before = Budget.objects.in_words(own) if own else {}
    for scope, target, period, limit in changes:
        Budget.objects.put(own, scope, target, period, limit)
    if own:
        History.record(own, "budgets", "", before, Budget.objects.in_words(own), timezone.now())
