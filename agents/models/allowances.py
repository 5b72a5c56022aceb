"""What budgets leave, counted from reservations: those of one call under a lock, those of many agents for pages."""

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce

from agents.engine.budgets import Allowance
from agents.models.agents import Agent
from agents.models.budgets import Budget, Reservation
from agents.models.money import MoneyField
from agents.models.runs import Run

AMOUNT = Coalesce("settled", "amount", output_field=MoneyField())


def allowances(
    agent: Agent,
    now: datetime,
    *,
    run: Run | None = None,
    skill: str = "",
    triggered: bool = False,
    lock: bool = False,
) -> list[Allowance]:
    """Every budget that applies to a call, with what is spent or reserved in its period.

    `lock`: nobody else reserves on them before this transaction ends. SQLite's transactions hold its only writer's lock
    from their start.
    """
    if run is not None:
        skill, triggered = run.skill_address, counts_as_triggered(run)
    applying = Budget.objects.applying(agent, skill, triggered, run is not None).order_by("pk")
    budgets = list(applying.select_for_update() if lock else applying)
    for budget in budgets:
        if budget.agent_id is not None:
            budget.agent = agent
    used: dict[int, Decimal] = {}
    for scope in Budget.Scope:  # a day and a month of one scope are one scan
        of_scope = [one for one in budgets if one.scope == scope]
        if scope != Budget.Scope.RUN:
            used |= _sums(of_scope, now, AMOUNT)
        elif of_scope:
            spent = Reservation.objects.filter(step__run=run).aggregate(used=Sum(AMOUNT, output_field=MoneyField()))
            used |= {one.pk: spent["used"] or Decimal(0) for one in of_scope}
    return [Allowance(one.words(agent.name), one.limit, used[one.pk], one.pk) for one in budgets]


def overview(
    agents: Collection[Agent], now: datetime, *, site: bool = True, settled_only: bool = False
) -> list[tuple[Budget, Allowance]]:
    """Every budget of these agents, in at most three queries; caps of single runs have no sum.

    `site`: its own too. `settled_only`: without what calls that are out may still cost.
    """
    by_id = {agent.pk: agent for agent in agents}
    budgets = sorted(
        Budget.objects.filter(Q(agent__in=by_id) | Q(agent=None) if site else Q(agent__in=by_id)), key=_place
    )
    for budget in budgets:
        budget.agent = by_id[budget.agent_id] if budget.agent_id is not None else None
    amount = F("settled") if settled_only else AMOUNT
    used = _sums([one for one in budgets if one.agent_id is not None], now, amount)
    used |= _sums([one for one in budgets if one.agent_id is None], now, amount)
    names = {one.pk: one.words(one.agent.name if one.agent else "") for one in budgets}
    return [(one, Allowance(names[one.pk], one.limit, used.get(one.pk, Decimal(0)), one.pk)) for one in budgets]


def _place(budget: Budget) -> tuple[int, int, str, str]:
    """From the site inwards, a day before a month."""
    return budget.agent_id or 0, list(Budget.Scope).index(Budget.Scope(budget.scope)), budget.target, budget.period


def _sums(budgets: Collection[Budget], now: datetime, amount: F | Coalesce) -> dict[int, Decimal]:
    """All of them at once, read from the earliest beginning on."""
    periodic = [one for one in budgets if one.scope != Budget.Scope.RUN]
    if not periodic:
        return {}
    begins = {one.pk: since(one, now) for one in periodic}
    first = min(begins.values())
    # What all of them have in common narrows the scan, the rest is decided row by row.
    shared = {(one.agent_id, one.scope, one.target) for one in periodic}
    rows = Reservation.objects.filter(at__gte=first)
    if len(shared) == 1:
        rows = rows.filter(_counted(periodic[0]))
    elif None not in (agents := {one.agent_id for one in periodic}):
        rows = rows.filter(agent__in=agents)
    sums = {}
    for one in periodic:
        own = Q() if len(shared) == 1 else _counted(one)
        own &= Q() if begins[one.pk] == first else Q(at__gte=begins[one.pk])
        sums[f"of_{one.pk}"] = Sum(amount, filter=own or None, output_field=MoneyField())
    found = rows.aggregate(**sums)
    return {one.pk: found[f"of_{one.pk}"] or Decimal(0) for one in periodic}


def _counted(budget: Budget) -> Q:
    """What counts against it, whenever it was."""
    if budget.agent_id is None:
        return Q()
    counted = Q(agent=budget.agent_id)
    if budget.scope in {Budget.Scope.SKILL, Budget.Scope.TRIGGER}:
        counted &= Q(skill_address=budget.target)
    return counted & Q(triggered=True) if budget.scope == Budget.Scope.TRIGGER else counted


def counts_as_triggered(run: Run) -> bool:
    return run.trigger_kind != "manual"


def since(budget: Budget, now: datetime) -> datetime:
    """When its current period began: where its owner lives, for the site in the site's own zone."""
    zone = budget.agent.owner.time_zone if budget.agent is not None else settings.TIME_ZONE
    return period_start(budget.period, now, zone)


def period_start(period: str, now: datetime, zone: str) -> datetime:
    """Midnight of the day, or of the first of the month, where the owner lives."""
    local = now.astimezone(ZoneInfo(zone))
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return midnight.replace(day=1) if period == "month" else midnight
