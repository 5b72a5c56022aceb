"""What is the case when a trigger fires: the counts that the engine's limits are decided on."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from agents.engine import limits
from agents.models import Agent, Halt, Run, Trigger
from agents.models.allowances import allowances
from marketplace.protocol.events import Event
from marketplace.protocol.triggers import Occasion, delivery_key


def situation(
    trigger: Trigger, occasion: Occasion, depth: int, now: datetime
) -> tuple[limits.Situation, limits.Limits]:
    agent = trigger.agent
    minute = now - timedelta(minutes=1)
    rate = f"{trigger.action}_per_minute"
    recent = _counted(agent, rate).filter(created_at__gt=minute, action=trigger.action).count()
    case = limits.Situation(
        action=trigger.action,
        enabled=trigger.enabled and agent.enabled and not trigger.rests and Halt.since() is None,
        usable=trigger.usable,
        duplicate=Run.objects.filter(trigger=trigger, occasion_key=delivery_key(occasion.key)).exists(),
        own_event=occasion.event is not None and occasion.event.pubkey == agent.identity.pubkey,
        expired=_expired(occasion.event, now),
        depth=depth,
        since_last=_since_last(trigger, occasion, now),
        open_runs=_counted(agent, "concurrent").filter(status__in=["queued", "running", "waiting"]).count(),
        llm_last_minute=recent if trigger.action == "llm" else 0,
        template_last_minute=recent if trigger.action == "template" else 0,
        over_budget=_over_budget(trigger, now) if trigger.action == "llm" else "",
    )
    return case, limits_of(agent)


def limits_of(agent: Agent) -> limits.Limits:
    """The site's, or the agent's own where it has them."""
    site = limits.Limits(
        settings.MAX_CONCURRENT_TRIGGERS,
        settings.TRIGGER_COOLDOWN,
        settings.LLM_ACTIONS_PER_MINUTE,
        settings.TEMPLATE_ACTIONS_PER_MINUTE,
    )
    return site.adjusted(agent.limits if isinstance(agent.limits, dict) else {})


def _counted(agent: Agent, name: str) -> QuerySet[Run]:
    """The triggered runs a limit counts: the agent's own where it has its own number, else all others'."""
    triggered = Run.objects.exclude(trigger_kind="manual").exclude(status=Run.Status.SUPPRESSED)
    if name in (agent.limits or {}):
        return triggered.filter(agent=agent)
    return triggered.exclude(agent__limits__has_key=name)


def _since_last(trigger: Trigger, occasion: Occasion, now: datetime) -> float | None:
    """Seconds since this skill last ran; for a schedule from slot to slot, so that every minute is possible."""
    runs = Run.objects.filter(agent=trigger.agent, skill_address=trigger.address)
    runs = runs.exclude(trigger_kind="manual").exclude(status=Run.Status.SUPPRESSED)
    last = runs.order_by("-created_at").values_list("trigger_kind", "created_at", "occasion_key").first()
    if last is None:
        return None
    kind, created_at, key = last
    if kind == occasion.kind == "cron":
        return occasion.at - datetime.fromisoformat(key).timestamp()
    return max(0.0, (now - created_at).total_seconds())


def _expired(event: Event | None, now: datetime) -> bool:
    """NIP-40."""
    text = event.value("expiration") if event else ""
    return text.isascii() and text.isdigit() and int(text[:15]) <= now.timestamp()


def _over_budget(trigger: Trigger, now: datetime) -> str:
    """Which budget has nothing left, in words; the exact reservation is made before each call."""
    llm = next((tag[1] for tag in trigger.tags if tag[0] == "llm" and len(tag) > 1), "")
    if (llm or trigger.agent.llm or settings.DEFAULT_LLM).startswith("offline/"):
        return ""
    applying = allowances(trigger.agent, now, skill=trigger.address, triggered=True)
    return next((budget.words for budget in applying if budget.state == "stop"), "")
