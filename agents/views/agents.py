"""An owner's agents: the list, one agent with what needs attention first, and making a new one."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from agents import arming, llm
from agents.engine.budgets import WARN_AT, Allowance
from agents.forms import AgentNewForm
from agents.models import AdoptedSkill, Agent, Alert, Budget, Change, Reservation, Run, Trigger
from agents.models.allowances import overview, period_start
from agents.models.money import MoneyField
from agents.tools import ondemand
from agents.views.current import KEY, own_agent
from marketplace import signing
from marketplace.models import Identity, User

RESERVED = {"new", "switch"}  # first segments under /agents/ that are no agent
MOST_ALERTS = 100  # shown of all agents of one page
FIRST_BUDGET = Decimal(1)  # US dollars a day, until its owner says otherwise


@dataclass
class Standing:
    """How one agent is doing today, for its row and its page."""

    agent: Agent
    runs: int = 0
    spent: Decimal = Decimal(0)
    limit: Decimal | None = None
    approvals: int = 0
    failed: int = 0
    broken: int = 0  # triggers that cannot fire
    updates: int = 0
    alerts: list[str] = field(default_factory=list)  # that are open, in words
    attention: list[tuple[str, str]] = field(default_factory=list)  # words, address

    @property
    def share(self) -> int | None:
        """Per cent of the day's budget."""
        return int(self.spent * 100 / self.limit) if self.limit else None

    def look(self) -> "Standing":
        """What its owner should see first."""
        slug, found = self.agent.slug, self.attention
        runs = f"{reverse('runs')}?agent={slug}"
        found += [(words, reverse("agent_alerts", args=[slug])) for words in self.alerts]
        if not self.agent.enabled:
            found.append(("Switched off: nothing it has adopted fires.", reverse("agent", args=[slug])))
        if self.approvals:
            words = "run waits" if self.approvals == 1 else "runs wait"
            found.append((f"{self.approvals} {words} for your approval.", f"{runs}&status=waiting"))
        if self.failed:
            words = "run failed" if self.failed == 1 else "runs failed"
            found.append((f"{self.failed} {words} in the last day.", f"{runs}&status=failed"))
        if self.broken:
            words = "trigger" if self.broken == 1 else "triggers"
            found.append((f"{self.broken} {words} cannot fire.", reverse("agent_triggers", args=[slug])))
        if self.updates:
            words = "skill has" if self.updates == 1 else "skills have"
            found.append((f"{self.updates} {words} a newer version to look at.", reverse("agent_skills", args=[slug])))
        if self.limit and self.spent >= self.limit * WARN_AT:
            words = "is used up" if self.spent >= self.limit else "is at 80 %"
            found.append((f"The budget of the day {words}.", reverse("agent_budgets", args=[slug])))
        if not self.agent.admin_pubkey:
            found.append(("It has no admin to write to.", reverse("agent_settings", args=[slug])))
        return self


def standings(agents: Iterable[Agent], user: User, now: datetime) -> list[Standing]:
    """Today of each agent, in a fixed number of queries."""
    found = {agent.pk: Standing(agent) for agent in agents}
    today = period_start("day", now, user.time_zone)
    runs = Run.objects.filter(agent__in=found).values_list("agent").order_by()
    for pk, count in runs.filter(created_at__gte=today).exclude(status=Run.Status.SUPPRESSED).annotate(n=Count("pk")):
        found[pk].runs = count
    late = Q(status=Run.Status.FAILED, created_at__gte=now - timedelta(days=1))
    asking = Q(status=Run.Status.WAITING, reason="approval")
    looked = runs.filter(late | asking).annotate(failed=Count("pk", filter=late), asking=Count("pk", filter=asking))
    for pk, failed, waiting in looked:
        found[pk].failed, found[pk].approvals = failed, waiting
    reserved = Reservation.objects.filter(agent__in=found, at__gte=today).values_list("agent").order_by()
    amount = Coalesce("settled", "amount", output_field=MoneyField())
    for pk, spent in reserved.annotate(spent=Sum(amount, output_field=MoneyField())):
        found[pk].spent = spent
    for pk, limit in Budget.objects.filter(agent__in=found, scope="agent", period="day").values_list("agent", "limit"):
        found[pk].limit = limit
    broken = Trigger.objects.filter(agent__in=found, enabled=True, usable=False).values_list("agent").order_by()
    for pk, count in broken.annotate(n=Count("pk")):
        found[pk].broken = count
    # Of budgets it says more above.
    open_alerts = Alert.objects.open().filter(agent__in=found).exclude(kind=Alert.Kind.BUDGET).order_by("pk")
    for pk, words in open_alerts.values_list("agent", "words")[:MOST_ALERTS]:
        found[pk].alerts.append(words)
    _count_updates(found)
    return [standing.look() for standing in found.values()]


def _count_updates(found: dict[int, Standing]) -> None:
    adopted = list(
        AdoptedSkill.objects.filter(agent__in=found, follow=False).values_list("agent", "address", "pinned_event")
    )
    newest = arming.current_versions({address for _, address, _ in adopted}) if adopted else {}
    for pk, address, pinned in adopted:
        if pinned and newest.get(address, pinned) != pinned:
            found[pk].updates += 1


@login_required
@require_safe
def agents(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    own = list(Agent.objects.of(user).select_related("identity"))
    return render(request, "agents/agents.html", {"standings": standings(own, user, timezone.now())})


@login_required
@require_safe
def agent(request: HttpRequest, slug: str) -> HttpResponse:
    own, user, now = own_agent(request, slug), cast(User, request.user), timezone.now()
    recent = Run.objects.filter(agent=own).select_related("agent").order_by("-created_at", "-id")
    return render(
        request,
        "agents/agent.html",
        {
            "agent": own,
            "tab": "agent",
            "standing": standings([own], user, now)[0],
            "budgets": _budgets(own, user, now),
            "model": own.llm or llm_default(),
            "offline": llm.is_offline(own.llm or llm_default()),
            "changes": Change.objects.filter(agent=own)[:5],
            "runs": recent.defer(*Run.HEAVY)[:10],
        },
    )


def _budgets(own: Agent, user: User, now: datetime) -> list[Allowance]:
    """What is used of each, fullest first; caps of single runs are used up by no other run."""
    own.owner = user
    found = [allowance for budget, allowance in overview([own], now) if budget.scope != Budget.Scope.RUN]
    return sorted(found, key=lambda one: -(one.share or 0))


def llm_default() -> str:
    from django.conf import settings

    return str(settings.DEFAULT_LLM)


@sensitive_post_parameters("nsec")
@sensitive_variables("form")
@login_required
def agent_new(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    spare = Identity.objects.filter(user=user, custody=Identity.Custody.HELD, agent=None).order_by("label", "pk")
    form = AgentNewForm(request.POST or None, spare=spare)
    if request.method == "POST" and form.is_valid():
        try:
            made = _make(user, form)
        except ValueError as error:
            form.add_error("nsec", str(error))
        else:
            request.session[KEY] = made.pk
            messages.success(request, f"{made.name} is made. Give it a soul and an admin, then adopt skills.")
            return redirect("agent_settings", made.slug)
    return render(request, "agents/agent_new.html", {"form": form}, status=422 if form.errors else 200)


@sensitive_variables()
@transaction.atomic
def _make(user: User, form: AgentNewForm) -> Agent:
    name, key = form.cleaned_data["name"], form.cleaned_data["key"]
    identity = form.spare.get(key) or signing.create_identity(
        user, name, form.cleaned_data["nsec"] if key == "paste" else None
    )
    # What only reads the agent's own skills is no right that anybody misses at first.
    made = Agent.objects.create(
        owner=user, identity=identity, name=name, slug=free_slug(user, name), grants=list(ondemand.NAMES)
    )
    Budget.objects.create(agent=made, period="day", limit=FIRST_BUDGET)
    return made


def free_slug(user: User, name: str) -> str:
    """From the name in any alphabet, with a number where it is taken."""
    wanted = slugify(name, allow_unicode=True)[:50] or "agent"
    taken = set(Agent.objects.of(user).filter(slug__startswith=wanted).values_list("slug", flat=True)) | RESERVED
    return next(slug for slug in (wanted, *(f"{wanted}-{number}" for number in range(2, 10_000))) if slug not in taken)


@login_required
@require_POST
def agent_enabled(request: HttpRequest, slug: str) -> HttpResponse:
    """The kill switch: off stops every trigger at once, and what is open is stopped too."""
    own, now = own_agent(request, slug), timezone.now()
    on = request.POST.get("enabled") == "on"
    before = own.enabled
    arming.switch_agent(own, on, now)
    Change.record(own, "enabled", "", before, on, now)
    if on:
        messages.success(request, f"{own.name} is on: its triggers fire again from now on.")
    else:
        stopped = sum(run.cancel(now, "Its agent was switched off.") for run in Run.objects.filter(agent=own).open())
        messages.success(request, f"{own.name} is off. {stopped} open runs were stopped; nothing fires.")
    return redirect("agent", own.slug)
