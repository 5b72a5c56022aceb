"""What was spent, by day, skill, agent, model or trigger: read from the attempts themselves.

Every grouping sums the same rows, so each one's total is the same to the last digit. Unknown costs are counted beside
the sum and never part of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.db import models
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce, TruncDate

from agents.models.money import MoneyField
from marketplace.models import User

GROUPS: dict[str, tuple[str, ...]] = {
    "day": ("day",),
    "skill": ("run__skill_address", "run__skill_name"),
    "agent": ("run__agent__slug", "run__agent__name"),
    "model": ("answered",),
    "trigger": ("run__trigger_kind",),
}


@dataclass(frozen=True, slots=True)
class CostRow:
    """US dollars of one day, skill, agent, model or trigger kind."""

    key: str  # a date, an address, a slug, a name
    label: str
    cost: Decimal  # of the attempts whose price is known
    unknown: int  # attempts without one
    attempts: int
    runs: int
    tokens: int
    charged: Decimal = Decimal(0)  # as it was then, also where `cost` is by new prices
    assumed: Decimal = Decimal(0)  # what the unknown ones counted against budgets

    @property
    def nothing_known(self) -> bool:
        return self.unknown > 0 and self.unknown == self.attempts


def day_starts(day: date, zone: ZoneInfo) -> datetime:
    """Its first instant where the owner lives: days have 23 or 25 hours twice a year."""
    return datetime.combine(day, time.min, tzinfo=zone)


class StepQuerySet(models.QuerySet["Any"]):
    def of(self, user: User) -> "StepQuerySet":
        return self.filter(run__agent__owner=user)

    def asked(self) -> "StepQuerySet":
        """Attempts at a model that were really made and are over."""
        return self.filter(kind="model", state__in=["done", "failed", "unknown"])

    def between(self, first: date, last: date, zone: ZoneInfo) -> "StepQuerySet":
        """Both days whole, in the owner's zone."""
        return self.filter(
            started_at__gte=day_starts(first, zone), started_at__lt=day_starts(last + timedelta(days=1), zone)
        )

    def answered(self) -> "StepQuerySet":
        """Priced by the model that answered; an attempt that failed has only the one it asked."""
        answered = models.Case(models.When(served_model="", then=F("name")), default=F("served_model"))
        found: StepQuerySet = self.annotate(answered=answered)
        return found

    def answered_by(self, model: str) -> "StepQuerySet":
        return self.answered().filter(answered=model)

    def costs_by(self, group: str, zone: ZoneInfo, *, repriced: bool = False) -> list[CostRow]:
        """One row for each value of the group; days in order, everything else by cost. KeyError: no such group.

        `repriced`: by the new price where a call has one; what was charged stands beside it.
        """
        fields = GROUPS[group]
        rows = self.asked().answered().annotate(day=TruncDate("started_at", tzinfo=zone))
        amount = Coalesce("repriced", "cost", output_field=MoneyField()) if repriced else F("cost")
        nobody_knows = Q(cost=None, repriced=None) if repriced else Q(cost=None)
        found = rows.values(*fields).annotate(
            spent=Sum(amount, output_field=MoneyField()),
            charged=Sum("cost"),
            assumed=Sum("reservation__settled", filter=nobody_knows),
            unknown=Count("pk", filter=nobody_knows),
            attempts=Count("pk"),
            run_count=Count("run", distinct=True),
            tokens=Sum(F("input_tokens") + F("cached_tokens") + F("output_tokens") + F("reasoning_tokens")),
        )
        made = [_row(row, fields) for row in found.order_by(*fields)]
        return made if group == "day" else sorted(made, key=lambda row: (-row.cost, -row.unknown, row.label, row.key))


def _row(row: dict[str, Any], fields: tuple[str, ...]) -> CostRow:
    return CostRow(
        key=str(row[fields[0]]),
        label=str(row[fields[-1]]),
        cost=row["spent"] or Decimal(0),
        charged=row["charged"] or Decimal(0),
        assumed=row["assumed"] or Decimal(0),
        unknown=row["unknown"],
        attempts=row["attempts"],
        runs=row["run_count"],
        tokens=row["tokens"] or 0,
    )


def every_day(rows: Iterable[CostRow], first: date, last: date) -> list[CostRow]:
    """The days without a run too, as zero: nothing was spent, which is known."""
    known = {row.key: row for row in rows}
    days = [(first + timedelta(days=at)).isoformat() for at in range((last - first).days + 1)]
    return [known.get(day) or CostRow(day, day, Decimal(0), 0, 0, 0, 0) for day in days]


def total(rows: Iterable[CostRow]) -> CostRow:
    rows = list(rows)
    return CostRow(
        key="",
        label="total",
        cost=sum((row.cost for row in rows), Decimal(0)),
        charged=sum((row.charged for row in rows), Decimal(0)),
        assumed=sum((row.assumed for row in rows), Decimal(0)),
        unknown=sum(row.unknown for row in rows),
        attempts=sum(row.attempts for row in rows),
        runs=sum(row.runs for row in rows),
        tokens=sum(row.tokens for row in rows),
    )
