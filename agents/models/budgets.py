"""What may be spent, and what is reserved while a call is out."""

from django.db import models
from django.db.models import Q

from agents.models.agents import Agent
from agents.models.money import MoneyField
from agents.models.steps import Step


class Budget(models.Model):
    """A limit in US dollars: of an agent, or of the site where `agent` is empty."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="budgets", null=True)
    period = models.CharField(max_length=5, choices=[("day", "a day"), ("month", "a month")])
    limit = MoneyField()
    warned_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "period"], name="one_budget_per_period"),
            models.UniqueConstraint(fields=["period"], name="one_site_budget", condition=Q(agent=None)),
        ]


class Reservation(models.Model):
    """The worst case of one model call, counted as spent until it is settled."""

    step = models.OneToOneField(Step, models.CASCADE, related_name="reservation")
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="reservations")
    amount = MoneyField()
    at = models.DateTimeField()
    settled = MoneyField(null=True)

    class Meta:
        indexes = [models.Index(fields=["agent", "at"], name="reservation_agent_day")]
