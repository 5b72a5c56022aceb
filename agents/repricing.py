"""Pricing past calls anew from the usage that providers reported: on request only, and beside what was charged."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction

from agents import llm
from agents.engine import costs
from agents.models import Agent, Repricing, Run, Step
from agents.models.costs import StepQuerySet
from agents.models.money import storable
from marketplace.models import User

MOST = 10_000  # calls at once: a few seconds of a web process
BATCH = 200


class TooMany(Exception):
    """More calls than are priced at once; the words say what to do."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which calls; empty means all."""

    run: Run | None = None
    agent: Agent | None = None
    model: str = ""
    first: date | None = None
    last: date | None = None

    def of(self, user: User) -> StepQuerySet:
        steps = Step.objects.of(user).filter(kind=Step.Kind.MODEL, state=Step.State.DONE)
        if self.run is not None:
            steps = steps.filter(run=self.run)
        if self.agent is not None:
            steps = steps.filter(run__agent=self.agent)
        if self.model:
            steps = steps.answered_by(self.model)
        if self.first is not None and self.last is not None:
            steps = steps.between(self.first, self.last, ZoneInfo(user.time_zone))
        return steps


@dataclass
class _Prices:
    """What each agent's models cost now."""

    terms: dict[int, llm.Terms] = field(default_factory=dict)
    addresses: dict[int, Mapping[str, str]] = field(default_factory=dict)

    def of(self, step: Step) -> costs.Price | None:
        agent = step.run.agent
        if agent.pk not in self.terms:
            self.terms[agent.pk] = llm.Terms.of(agent)
            self.addresses[agent.pk] = dict(agent.provider_keys.values_list("provider", "base_url"))
        provider = step.name.partition("/")[0]
        shared = settings.LLM_BASE_URL if provider == "openai" else ""
        endpoint = llm.Endpoint(step.name, self.addresses[agent.pk].get(provider, shared))
        return self.terms[agent.pk].price(endpoint, step.served_model)


@transaction.atomic
def reprice(user: User, asked: Asked, now: datetime) -> Repricing:
    """The new prices, written beside the old ones. Raises TooMany."""
    steps = asked.of(user)
    count = steps.count()
    if count > MOST:
        raise TooMany(
            f"These are {count:,} calls; at most {MOST:,} are priced at once. Choose fewer days, or an agent."
        )
    made = Repricing(user=user, at=now, run=asked.run, agent=asked.agent, model=asked.model)
    made.first, made.last = asked.first, asked.last
    light = steps.select_related("run__agent").only(
        "name", "served_model", "usage", "cost", "run__agent__id", "repriced", "repriced_version"
    )
    _price(light.order_by("pk"), made)
    made.save(force_insert=True)
    return made


def _price(steps: Iterable[Step], made: Repricing) -> None:
    prices, changed, versions = _Prices(), [], set()
    for step in steps:
        price = prices.of(step)
        new = costs.cost(costs.read_usage(step.usage), price)
        if new is None or price is None:
            made.skipped += 1
            continue
        step.repriced, step.repriced_version = storable(new), price.version
        changed.append(step)
        versions.add(price.version)
        made.calls += 1
        made.changed += step.repriced != step.cost
        made.unknown += step.cost is None
        made.charged += step.cost or Decimal(0)
        made.repriced += step.repriced
    made.price_versions = sorted(versions)
    Step.objects.bulk_update(changed, ["repriced", "repriced_version"], batch_size=BATCH)
