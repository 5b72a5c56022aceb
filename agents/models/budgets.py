"""What may be spent, and what is reserved while a call is out."""

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import Q

from agents.models.agents import Agent
from agents.models.money import MoneyField
from agents.models.steps import Step


class BudgetQuerySet(models.QuerySet["Budget"]):
    def applying(
        self, agent: Agent, skill: str = "", triggered: bool = False, one_run: bool = False
    ) -> "BudgetQuerySet":
        """Those that a call of this agent counts against."""
        own = Q(scope=Budget.Scope.AGENT)
        if skill:
            own |= Q(scope=Budget.Scope.SKILL, target=skill)
        if skill and triggered:
            own |= Q(scope=Budget.Scope.TRIGGER, target=skill)
        if one_run:
            own |= Q(scope=Budget.Scope.RUN)
        return self.filter(Q(agent=None) | Q(agent=agent) & own)

    def in_words(self, agent: Agent) -> dict[str, str]:
        """What each of the agent's budgets is for, and its limit; for the history."""
        rows = self.filter(agent=agent).order_by("scope", "target", "period")
        return {f"{row.scope} {row.target} {row.period}".replace("  ", " "): f"{row.limit:f}" for row in rows}

    def limit(self, agent: Agent, scope: str, target: str, period: str) -> Decimal | None:
        """What is set there."""
        place: dict[str, Any] = {"agent": agent, "scope": scope, "target": target, "period": period}
        return self.filter(**place).values_list("limit", flat=True).first()

    def put(self, agent: Agent | None, scope: str, target: str, period: str, limit: Decimal | None) -> None:
        """The limit from now on; None takes it away."""
        place: dict[str, Any] = {"agent": agent, "scope": scope, "target": target, "period": period}
        if limit is None:
            self.filter(**place).delete()
        else:
            self.update_or_create(**place, defaults={"limit": limit})


class Budget(models.Model):
    """A limit in US dollars: of the site where `agent` is empty, else of an agent or of something of its."""

    class Scope(models.TextChoices):
        SITE = "site"
        AGENT = "agent"
        SKILL = "skill"
        TRIGGER = "trigger"  # runs of a skill that its trigger started
        RUN = "run"  # each run of the agent, for itself

    class Period(models.TextChoices):
        DAY = "day", "a day"
        MONTH = "month", "a month"
        RUN = "run", "at most"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="budgets", null=True)
    scope = models.CharField(max_length=8, choices=Scope, default=Scope.AGENT)
    # The skill's address for `skill` and `trigger`: it outlives a trigger that is disarmed and armed again.
    target = models.CharField(max_length=300, default="", blank=True)
    period = models.CharField(max_length=5, choices=Period)
    limit = MoneyField()
    warned_at = models.DateTimeField(null=True)

    objects = BudgetQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "scope", "target", "period"], name="one_budget_per_scope"),
            models.UniqueConstraint(fields=["period"], name="one_site_budget", condition=Q(agent=None)),
            models.CheckConstraint(
                condition=Q(scope="site", agent=None) | ~Q(scope="site") & Q(agent__isnull=False),
                name="site_budget_has_no_agent",
            ),
        ]

    def words(self, agent: str) -> str:
        """What it limits, read after "the budget for"; `agent` is its agent's name."""
        skill = f"“{self.target.split(':', 2)[-1][:80]}”"
        whose = {
            self.Scope.SITE: "the whole site",
            self.Scope.AGENT: agent,
            self.Scope.SKILL: f"the skill {skill} of {agent}",
            self.Scope.TRIGGER: f"the trigger of {skill} of {agent}",
            self.Scope.RUN: f"each run of {agent}",
        }[self.Scope(self.scope)]
        return f"{whose}, {self.get_period_display()}"


class Reservation(models.Model):
    """The worst case of one model call, counted as spent until it is settled.

    It carries what it counts for, so that the sum of every budget is read from one index.
    """

    step = models.OneToOneField(Step, models.CASCADE, related_name="reservation")
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="reservations")
    skill_address = models.CharField(max_length=300, default="")
    triggered = models.BooleanField(default=False)  # whether a trigger started its run
    amount = MoneyField()
    at = models.DateTimeField()
    settled = MoneyField(null=True)

    class Meta:
        # With the amounts in them, so that a sum over a month of calls never touches the table.
        indexes = [
            models.Index(fields=["agent", "at", "settled", "amount"], name="reservation_agent_sum"),
            models.Index(
                fields=["agent", "skill_address", "at", "triggered", "settled", "amount"], name="reservation_skill_sum"
            ),
            models.Index(fields=["at", "settled", "amount"], name="reservation_site_sum"),
            models.Index(fields=["at"], name="reservation_open", condition=Q(settled=None)),
        ]
