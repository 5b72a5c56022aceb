"""How runs are said everywhere: status, model, cost, duration."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.llm import is_offline
from agents.models import Run, Step
from marketplace.templatetags.journeyman import money

register = template.Library()

OFFLINE_WORDS = "offline echo, not a language model"


@register.filter
def model_name(name: str) -> str:
    """The model; the built-in echo by what it is."""
    return OFFLINE_WORDS if is_offline(name) else name


@register.filter
def status(run: Run) -> SafeString:
    """A word; its shape comes from the style sheet."""
    return format_html('<span class="status status-{}">{}</span>', run.status, run.status)


_STEP_STATUS = {
    Step.State.RUNNING: "running",
    Step.State.DONE: "succeeded",
    Step.State.FAILED: "failed",
    Step.State.REFUSED: "suppressed",
    Step.State.WAITING: "waiting",
    Step.State.UNKNOWN: "failed",
}


@register.filter
def step_status(step: Step) -> SafeString:
    words = "outcome unknown" if step.state == Step.State.UNKNOWN else step.state
    shape = _STEP_STATUS.get(Step.State(step.state), "queued")
    return format_html('<span class="status status-{}">{}</span>', shape, words)


def cost_words(cost: Decimal, unknown: int, attempts: int | None = None) -> str:
    """The known part, and how many calls nobody knows the price of."""
    if not unknown:
        return str(money(cost))
    if not cost and (attempts is None or unknown == attempts):
        return "unknown"
    return f"{money(cost)} + {unknown} unknown"


@register.filter
def run_cost(run: Run) -> str:
    return cost_words(run.cost, run.unknown_costs)


@register.filter
def row_cost(row: Any) -> str:
    return cost_words(row.cost, row.unknown, row.attempts)


@register.filter
def step_cost(step: Step) -> str:
    """Only attempts that were really made have one."""
    if step.kind != Step.Kind.MODEL or step.state in {Step.State.RUNNING, Step.State.REFUSED}:
        return ""
    if step.cost is None:
        return "cost unknown"
    return f"{money(step.cost)}{' estimated' if step.estimated else ''}"


@register.filter
def dollars(amount: str | None) -> str:
    """An estimate, which is text with all its digits; unknown is a word, never a zero."""
    return "unknown" if amount is None else str(money(Decimal(amount)))


@register.filter
def duration(value: timedelta | None) -> str:
    """A length of time with as many digits as one reads."""
    if value is None:
        return ""
    seconds = value.total_seconds()
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


@register.filter
def took(step: Step) -> str:
    return duration(step.finished_at - step.started_at) if step.finished_at else ""


@register.filter
def step_tokens(step: Step) -> int:
    return step.input_tokens + step.cached_tokens + step.output_tokens + step.reasoning_tokens


@register.filter
def pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def parameter(value: Any) -> str:
    """A parameter's value as its owner would write it."""
    if value is True:
        return "all granted"
    if value is False:
        return "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return model_name(str(value))
