"""Budgets for programs: what may be spent, what is used, and setting a limit."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from django.db import transaction
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Router, Schema
from ninja.errors import HttpError
from pydantic import Field

from agents.api.auth import caller, writes
from agents.api.runs import ERRORS, Text, digits
from agents.engine.budgets import Allowance
from agents.models import AdoptedSkill, Agent, Budget
from agents.models.allowances import overview, since
from marketplace.models import User

Limit = Annotated[Decimal, Field(ge=0, le=1_000_000, decimal_places=6, allow_inf_nan=False)]


class BudgetOut(Schema):
    agent: str = Field(description="slug; empty for the whole site")
    scope: str = Field(description="site, agent, skill, trigger or run")
    target: str = Field(description="the skill's address where scope is skill or trigger")
    period: str = Field(description="day, month, or run")
    since: datetime | None = Field(description="when the current period began; null for a cap of single runs")
    limit: str = Field(description="US dollars, all digits")
    used: str | None = Field(description="spent and reserved; null for a cap of single runs")
    left: str | None
    state: str = Field(description="warn from 80 %, stop when it is used up, else empty")


class BudgetList(Schema):
    items: list[BudgetOut]


class BudgetIn(Schema):
    agent: Text = Field("", max_length=60, description="slug of your agent; empty for the site, which only staff set")
    scope: Text = Field("agent", max_length=8, description="agent, skill, trigger or run; site without an agent")
    target: Text = Field("", max_length=300, description="address of an adopted skill, for skill and trigger")
    period: Text = Field("day", max_length=5, description="day or month; run where scope is run")
    limit: Limit | None = Field(description="US dollars; null takes the budget away")


router = Router(tags=["budgets"])


@router.get("", response={200: BudgetList, **ERRORS}, summary="What may be spent", operation_id="budgets")
def list_budgets(request: HttpRequest, agent: str = "") -> dict[str, Any]:
    """Of one agent, or of all of yours; with those of the site, which hold for everybody."""
    return {"items": _items(caller(request), agent)}


@router.put("", auth=writes, response={200: BudgetList, **ERRORS}, summary="Set a limit", operation_id="set_budget")
def set_budget(request: HttpRequest, body: BudgetIn) -> dict[str, Any]:
    """Holds from the next call on. The answer is the agent's budgets, or the site's."""
    user = caller(request)
    with transaction.atomic():
        own = _place(user, body)
        Budget.objects.put(own, body.scope, body.target, body.period, body.limit)
    items = _items(user, body.agent)
    return {"items": items if own else [item for item in items if item["scope"] == Budget.Scope.SITE]}


def _items(user: User, slug: str) -> list[dict[str, Any]]:
    now, agents = timezone.now(), Agent.objects.of(user).select_related("owner")
    if slug:
        agents = agents.filter(pk=_own(user, slug).pk)
    return [_budget(budget, allowance, now) for budget, allowance in overview(list(agents), now)]


def _own(user: User, slug: str) -> Agent:
    return get_object_or_404(Agent.objects.of(user), slug=slug.replace("\x00", ""))


def _place(user: User, body: BudgetIn) -> Agent | None:
    """Whose budget it is, or an error in words: only what exists can have one."""
    if not body.agent:
        if not user.is_staff:
            raise Http404("No such agent.")
        body.scope, body.target = Budget.Scope.SITE, ""
    elif body.scope not in set(Budget.Scope.values) - {Budget.Scope.SITE}:
        raise HttpError(400, "scope is agent, skill, trigger or run.")
    own = _own(user, body.agent) if body.agent else None
    if body.scope == Budget.Scope.RUN:
        body.period = Budget.Period.RUN
    elif body.period not in {Budget.Period.DAY, Budget.Period.MONTH}:
        raise HttpError(400, "period is day or month.")
    if body.scope not in {Budget.Scope.SKILL, Budget.Scope.TRIGGER}:
        body.target = ""
    elif not (AdoptedSkill.objects.filter(agent=own, address=body.target).exists() or body.limit is None):
        raise HttpError(400, "target is the address of a skill that this agent adopted.")
    return own


def _budget(budget: Budget, allowance: Allowance, now: datetime) -> dict[str, Any]:
    summed = budget.scope != Budget.Scope.RUN
    return {
        "agent": budget.agent.slug if budget.agent else "",
        "scope": budget.scope,
        "target": budget.target,
        "period": budget.period,
        "since": since(budget, now) if summed else None,
        "limit": digits(budget.limit),
        "used": digits(allowance.used) if summed else None,
        "left": digits(allowance.left) if summed else None,
        "state": allowance.state if summed else "",
    }
