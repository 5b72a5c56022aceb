"""What an owner says of a model: its window and prices, or what a call may cost; every earlier word is kept."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import models, transaction
from django.db.models import Q

from agents.engine.costs import Assumed, Price
from agents.models.agents import Agent
from agents.models.money import MoneyField

MILLION = Decimal(1_000_000)  # prices are said per million tokens


class OwnModelQuerySet(models.QuerySet["OwnModel"]):
    def current(self, agent: Agent) -> "OwnModelQuerySet":
        return self.filter(agent=agent, until=None)

    @transaction.atomic
    def put(self, agent: Agent, model: str, values: dict[str, Any], now: datetime) -> "OwnModel":
        """From now on; what was said before ends, and stays on record."""
        Agent.objects.select_for_update().get(pk=agent.pk)  # of two at once the later one holds
        self.end(agent, model, now)
        return self.create(agent=agent, model=model, since=now, **values)

    def end(self, agent: Agent, model: str, now: datetime) -> bool:
        return bool(self.current(agent).filter(model=model).update(until=now))


class OwnModel(models.Model):
    """One owner's word on one model; amounts in US dollars per million tokens, or per call."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="own_models")
    model = models.CharField(max_length=200)  # provider/name, as it is asked
    window = models.PositiveIntegerField(null=True)  # tokens; empty: as the table says
    most_output = models.PositiveIntegerField(null=True)
    # True: the prices are charged. False: they are guesses that count against budgets; costs stay unknown.
    certain = models.BooleanField(default=True)
    input = MoneyField(null=True)
    output = MoneyField(null=True)
    cached = MoneyField(null=True)
    reasoning = MoneyField(null=True)
    per_call = MoneyField(null=True)  # assumed for each call, whatever it uses
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)  # empty: it holds

    objects = OwnModelQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "model"], name="one_word_on_a_model", condition=Q(until=None))
        ]
        ordering = ["model", "-since", "-pk"]

    @property
    def version(self) -> str:
        """Of its prices, as it stands on each attempt."""
        return f"own prices {self.pk} of {self.since.date()}"

    @property
    def price(self) -> Price | None:
        """What is charged."""
        return self._rates() if self.certain else None

    @property
    def assumed(self) -> Assumed | None:
        """What counts against budgets where no price is known."""
        rates = None if self.certain else self._rates()
        return Assumed(self.version, self.per_call, rates) if rates or self.per_call is not None else None

    def _rates(self) -> Price | None:
        if self.input is None or self.output is None:
            return None
        cached, reasoning = (None if one is None else one / MILLION for one in (self.cached, self.reasoning))
        return Price(self.input / MILLION, self.output / MILLION, cached, reasoning, self.version)
