"""What the budgets of an agent and the site leave, counted from reservations."""

from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.db.models import Q, Sum
from django.db.models.functions import Coalesce

from agents.engine.budgets import Allowance
from agents.models.agents import Agent
from agents.models.budgets import Budget, Reservation
from agents.models.money import MoneyField


def allowances(agent: Agent, now: datetime, *, lock: bool = False) -> list[Allowance]:
    """Every budget that applies, with what is spent or reserved in its period of the owner's zone.

    `lock`: nobody else reserves on them before this transaction ends. SQLite's transactions hold its only writer's lock
    from their start.
    """
    found = []
    budgets = Budget.objects.filter(Q(agent=agent) | Q(agent=None)).order_by("pk")
    for budget in budgets.select_for_update() if lock else budgets:
        since = period_start(budget.period, now, agent.owner.time_zone)
        spent = Reservation.objects.filter(at__gte=since)
        if budget.agent_id is not None:
            spent = spent.filter(agent=agent)
        amount = Coalesce("settled", "amount", output_field=MoneyField())
        used = spent.aggregate(used=Sum(amount, output_field=MoneyField()))["used"] or Decimal(0)
        whose = "the whole site" if budget.agent_id is None else agent.name
        found.append(Allowance(f"{whose}, {budget.get_period_display()}", budget.limit, used))
    return found


def period_start(period: str, now: datetime, zone: str) -> datetime:
    """Midnight of the day, or of the first of the month, where the owner lives."""
    local = now.astimezone(ZoneInfo(zone))
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return midnight.replace(day=1) if period == "month" else midnight
