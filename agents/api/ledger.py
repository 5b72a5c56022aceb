"""A run's ledger for programs: each attempt at a model with its price, its cost and that of the first choice."""

from decimal import Decimal
from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema
from pydantic import Field

from agents.api.auth import caller
from agents.api.runs import ERRORS, digits
from agents.models import Run, Step
from agents.models.ledger import Entry, ledger


class AttemptOut(Schema):
    position: int
    asked: str
    served_model: str
    state: str = Field(description="done, failed, refused (not asked), unknown or running")
    outcome: str = Field(description="how its answer was, or the class of its error")
    decision: str = Field(description="what followed: next, wait, later or stop; empty after an answer")
    waited_ms: int
    tokens: dict[str, int]
    price: dict[str, str] | None = Field(description="US dollars per million tokens as used; null = unknown")
    price_version: str
    cost: str | None = Field(description="US dollars; null = unknown, or not asked")
    repriced: str | None = Field(description="US dollars by a later price; null = not priced anew")
    repriced_version: str
    estimated: bool = Field(description="settled at what was reserved, because nobody knows how it ended")
    assumed: str = Field(
        description="the owner's estimate that counted against budgets; empty where the price is known"
    )
    first_choice: str = Field(description="first model of the chain, where another one answered")
    first_choice_cost: str | None = Field(description="what it would have cost for the same usage; null = unknown")


class LedgerOut(Schema):
    attempts: list[AttemptOut]
    cost: str = Field(description="of the attempts whose cost is known; equals that of the run")
    unknown: int
    repriced: str | None = Field(description="by later prices where an attempt has one; null = none has")
    first_choice_cost: str | None = Field(description="of all answers at the first choice; null = unknown")
    price_versions: list[str]


router = Router(tags=["runs"])


@router.get(
    "/{run_id}/ledger",
    response={200: LedgerOut, **ERRORS},
    summary="What each attempt of a run cost",
    operation_id="ledger",
)
def get_ledger(request: HttpRequest, run_id: str) -> dict[str, Any]:
    """Every attempt at a model, also those that failed or were not made."""
    if not run_id.isascii() or not run_id.isalnum():
        raise Http404("No such run.")
    run = get_object_or_404(Run.objects.of(caller(request)), pk=run_id)
    found = ledger(run.steps.filter(kind=Step.Kind.MODEL).order_by("position"))
    return {
        "attempts": [_attempt(entry) for entry in found.entries],
        "cost": digits(found.cost),
        "unknown": found.unknown,
        "repriced": _amount(found.repriced),
        "first_choice_cost": _amount(found.first_cost),
        "price_versions": list(found.versions),
    }


def _attempt(entry: Entry) -> dict[str, Any]:
    step = entry.step
    same = (
        "position",
        "served_model",
        "state",
        "outcome",
        "waited_ms",
        "price_version",
        "estimated",
        "repriced_version",
    )
    return {
        **{name: getattr(step, name) for name in same},
        "asked": step.name,
        "decision": step.output.get("decision", ""),
        "tokens": {name: getattr(step, f"{name}_tokens") for name in ("input", "cached", "output", "reasoning")},
        "price": dict(entry.price) or None,
        "cost": _amount(step.cost) if entry.made else None,
        "repriced": _amount(step.repriced),
        "assumed": entry.assumed,
        "first_choice": entry.first,
        "first_choice_cost": _amount(step.first_cost),
    }


def _amount(amount: Decimal | None) -> str | None:
    return None if amount is None else digits(amount)
