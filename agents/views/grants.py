"""What an agent may do: allowed by its owner, beside what it really used."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from agents.forms.grants import GrantsForm
from agents.models import Agent, Change, Run, Step
from agents.tools import TOOLS, Tool
from agents.variables import VARIABLES
from agents.views.current import own_agent

LOOKED_AT = 50  # its last runs
RISKS = {
    "reads": "Reads: it sees, and changes nothing",
    "writes": "Writes: others see what it does",
    "spends": "Spends: it costs money",
}


@dataclass
class Use:
    """How a tool was used in the last runs."""

    tool: Tool
    allowed: bool
    count: int = 0
    last: datetime | None = None


@login_required
def agent_grants(request: HttpRequest, slug: str) -> HttpResponse:
    """The tools and what else it may do; `narrow` leaves only the tools it used."""
    own = own_agent(request, slug)
    uses = used(own)
    if request.method == "POST" and "narrow" in request.POST:
        return _narrow(request, own, uses)
    form = GrantsForm(request.POST or None, instance=own)
    if request.method == "POST" and form.is_valid():
        _save(own, form, sorted(set(request.POST.getlist("grant")) & TOOLS.keys()))
        messages.success(request, f"{own.name} may use {len(own.grants)} tools. A skill can ask for fewer, never more.")
        return redirect("agent_grants", own.slug)
    asked = set(request.POST.getlist("grant")) if form.is_bound else set(own.grants)
    groups = {words: [use for use in uses.values() if use.tool.risk == risk] for risk, words in RISKS.items()}
    context = {
        "agent": own,
        "tab": "agent_grants",
        "form": form,
        "groups": groups,
        "granted": asked,
        "looked_at": LOOKED_AT,
        "unused": [use.tool.name for use in uses.values() if use.allowed and not use.count],
    }
    return render(request, "agents/agent_grants.html", context, status=422 if form.errors else 200)


@transaction.atomic
def _save(own: Agent, form: GrantsForm, grants: list[str]) -> None:
    before = Agent.objects.get(pk=own.pk)
    own.grants = grants
    own.save(update_fields=["grants", *form.Meta.fields])
    Change.record_fields(before, own, ["grants", *form.Meta.fields], timezone.now())


def _narrow(request: HttpRequest, own: Agent, uses: dict[str, Use]) -> HttpResponse:
    before = list(own.grants)
    own.grants = sorted(name for name, use in uses.items() if use.allowed and use.count)
    if not own.grants:
        messages.info(request, "It used no tool in its last runs, so there is nothing to narrow to.")
    elif own.grants == sorted(before):
        messages.info(request, "It used every tool it may use.")
    else:
        with transaction.atomic():
            own.save(update_fields=["grants"])
            Change.record(own, "grants", "", before, own.grants, timezone.now())
        messages.success(request, f"{own.name} may use the {len(own.grants)} tools it used. “What changed” undoes it.")
    return redirect("agent_grants", own.slug)


def used(own: Agent) -> dict[str, Use]:
    """Every tool, with its use in the agent's last runs; three queries. A variable of a template is a use too."""
    found = {name: Use(tool, name in own.grants) for name, tool in TOOLS.items()}
    last = list(Run.objects.filter(agent=own).order_by("-created_at", "-id").values_list("pk", flat=True)[:LOOKED_AT])
    made = Step.objects.filter(run__in=last, kind=Step.Kind.TOOL)
    calls = made.exclude(state__in=[Step.State.REFUSED, Step.State.WAITING]).order_by()
    for row in calls.values("name").annotate(count=Count("pk"), last=Max("started_at")):
        if row["name"] in found:
            found[row["name"]].count, found[row["name"]].last = row["count"], row["last"]
    for name, at in _named(last):
        use = found[name]
        use.count, use.last = use.count + 1, max(use.last or at, at)
    return found


def _named(runs: list[str]) -> Iterator[tuple[str, datetime]]:
    """The tools that variables of these runs were resolved with."""
    steps = Step.objects.filter(run__in=runs, kind=Step.Kind.VARIABLE)
    for given, at in steps.values_list("input", "started_at"):
        for name in given.get("names", ()):
            if name in VARIABLES:
                yield VARIABLES[name], at
