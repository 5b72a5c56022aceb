"""How money is said: a run's ledger, plain numbers of prices."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django import template

from agents.models import Run, Step
from agents.models.ledger import ledger as ledger_of
from marketplace.templatetags.journeyman import money

register = template.Library()


@register.filter
def plain(value: Decimal | None) -> str:
    """All its digits and no zeros behind them; nothing where there is none."""
    if value is None:
        return ""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@register.inclusion_tag("agents/_ledger.html", takes_context=True)
def ledger(context: template.Context, run: Run, steps: Iterable[Step]) -> dict[str, Any]:
    """Every attempt at a model, in the order they were made."""
    return {"run": run, "ledger": ledger_of(steps), "csrf_token": context.get("csrf_token", "")}


@register.filter
def spared(value: Decimal) -> str:
    """A difference without its sign."""
    return str(money(abs(value)))
