"""The ledger of one run: each attempt at a model, why it ended, what it cost, and what the first choice would have."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from agents.models.steps import Step

FOLLOWED = {
    "next": "the next model",
    "wait": "the same model again",
    "later": "the run waited",
    "stop": "no other model",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One attempt. Amounts in US dollars, prices in US dollars per million tokens."""

    step: Step

    @property
    def tokens(self) -> int:
        one = self.step
        return one.input_tokens + one.cached_tokens + one.output_tokens + one.reasoning_tokens

    @property
    def made(self) -> bool:
        """False: the model was not even asked."""
        return self.step.state not in {Step.State.REFUSED, Step.State.RUNNING}

    @property
    def followed(self) -> str:
        decision = self.step.output.get("decision", "") if isinstance(self.step.output, dict) else ""
        return FOLLOWED.get(decision, "")

    @property
    def price(self) -> Mapping[str, str]:
        found = self.step.output.get("price") if isinstance(self.step.output, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def assumed(self) -> str:
        """The owner's estimate that it counted against budgets by, where its price was unknown."""
        return str(self.step.input.get("assumed", "")) if isinstance(self.step.input, dict) else ""

    @property
    def first(self) -> str:
        """The first model of the chain, where another one answered."""
        first = self.step.input.get("first", "") if isinstance(self.step.input, dict) else ""
        return str(first) if first != self.step.name and self.step.state == Step.State.DONE else ""


@dataclass(frozen=True, slots=True)
class Ledger:
    entries: tuple[Entry, ...]
    cost: Decimal  # of the attempts whose cost is known
    unknown: int
    first: str  # the first model of the chain, "" where it answered everything
    first_cost: Decimal | None  # of the same answers at the first model; None: its price is unknown
    answers_cost: Decimal | None  # of those answers as they were; None: not all are known
    versions: tuple[str, ...]  # price lists that were used
    repriced: Decimal | None  # by new prices where an attempt has one; None: none has

    @property
    def saved(self) -> Decimal | None:
        """What the first choice would have cost more."""
        if self.first_cost is None or self.answers_cost is None:
            return None
        return self.first_cost - self.answers_cost


def ledger(steps: Iterable[Step]) -> Ledger:
    """Of a run's steps, in their order; attempts only."""
    entries = tuple(Entry(step) for step in steps if step.kind == Step.Kind.MODEL)
    made = [one.step for one in entries if one.made]
    answers = [one.step for one in entries if one.step.state == Step.State.DONE]
    return Ledger(
        entries,
        cost=sum((one.cost for one in made if one.cost is not None), Decimal(0)),
        unknown=sum(one.cost is None for one in made),
        first=next((one.first for one in entries if one.first), ""),
        first_cost=_all(one.first_cost for one in answers),
        answers_cost=_all(one.cost for one in answers),
        repriced=_repriced(made),
        versions=tuple(dict.fromkeys(one.price_version for one in made if one.price_version)),
    )


def _repriced(made: Iterable[Step]) -> Decimal | None:
    made = list(made)
    if all(one.repriced is None for one in made):
        return None
    found = (one.cost if one.repriced is None else one.repriced for one in made)
    return sum((one for one in found if one is not None), Decimal(0))


def _all(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """Their sum, where each is known."""
    total = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
