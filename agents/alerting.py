"""Looks for what is wrong and for what is well again: failing and silent triggers, budgets, parts of the site away.

What holds is compared with the alerts that are open; what differs begins or ends one. No run waits for it.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from django.db.models import Exists, F, OuterRef, Q

from agents import alive
from agents.models import Agent, Alert, Budget, HeldBack, Notice, Trigger
from agents.models.allowances import overview, since
from agents.models.notices import period_mark

AWAY_AFTER = timedelta(minutes=2)  # a restart is no alert
LATE = timedelta(minutes=5)  # a slot that is due for so long has made no run
MOST = 500  # triggers or agents that one look tells of
LONGEST_NAME = 80
KINDS = Alert.Kind

_AWAY: dict[str, datetime] = {}  # part -> since when this process finds it away; a site that just starts is not away


class Condition(NamedTuple):
    agent_id: int
    kind: str
    subject: str


def look(now: datetime, away: dict[str, datetime] | None = None) -> int:
    """Begins and ends alerts; how many. `away` remembers between two looks."""
    alerts = list(Alert.objects.open().select_related("agent"))
    parts = _parts_away(now, _AWAY if away is None else away)
    holding = _triggers(now) | _away(parts, alerts)
    opened = {Condition(alert.agent_id, alert.kind, alert.subject): alert for alert in alerts}
    agents = Agent.objects.in_bulk({one.agent_id for one in holding.keys() - opened.keys()})
    found = sum(Notice.objects.begin(agents[one.agent_id], one.kind, one.subject, holding[one], now)
                for one in holding.keys() - opened.keys() if one.agent_id in agents)  # fmt: skip
    over = [alert for one, alert in opened.items() if alert.kind != KINDS.BUDGET and one not in holding]
    found += sum(Notice.objects.end(alert, _ending(alert), now) for alert in over)
    return found + _budgets([alert for alert in alerts if alert.kind == KINDS.BUDGET], now)


# --- Triggers ----------------------------------------------------------------------


def _triggers(now: datetime) -> dict[Condition, str]:
    """Those that were stopped, and those that did not fire when they should have. One query."""
    missed = HeldBack.objects.filter(trigger=OuterRef("pk"), reason="missed").filter(
        Q(trigger__last_fired_at=None) | Q(minute__gt=F("trigger__last_fired_at"))
    )
    stopped = Q(rests=Trigger.Rest.FAILURES)
    watched = Q(rests="", usable=True, agent__enabled=True)
    due = Q(expected_hours__isnull=False) | Q(kind="cron", next_run_at__lte=now - LATE) | Q(kind="cron", missed=True)
    rows = Trigger.objects.filter(enabled=True).annotate(missed=Exists(missed)).filter(stopped | watched & due)
    found = {}
    for row in rows.select_related("agent").order_by("pk")[:MOST]:
        if row.rests:
            words = f"The trigger of {_named(row)} was {row.get_rests_display()}; it rests until you resume it."
            found[Condition(row.agent_id, KINDS.FAILING, row.address)] = words
        elif words := _silence(row, cast(Any, row).missed, now):
            found[Condition(row.agent_id, KINDS.SILENT, row.address)] = words
    return found


def _silence(trigger: Trigger, missed: bool, now: datetime) -> str:
    """Why it should have fired and did not; "" where all is well."""
    if trigger.kind == "cron" and trigger.next_run_at and trigger.next_run_at <= now - LATE:
        return f"{_named(trigger)} was due at {_at(trigger.next_run_at)} and has not run."
    if trigger.kind == "cron" and missed:
        return f"{_named(trigger)} missed what was due while this site was away, and has not run since."
    armed = datetime.fromtimestamp(trigger.armed_at, UTC)
    last = max(trigger.last_fired_at or armed, armed)
    if trigger.expected_hours is not None and last <= now - timedelta(hours=trigger.expected_hours):
        hours = f"{trigger.expected_hours} hour{'' if trigger.expected_hours == 1 else 's'}"
        return f"{_named(trigger)} has not fired since {_at(last)}; you expect it within {hours}."
    return ""


def _named(trigger: Trigger) -> str:
    return f"“{trigger.name[:LONGEST_NAME]}” of {trigger.agent.name}"


def _at(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


# --- Parts of the site -------------------------------------------------------------


def _parts_away(now: datetime, since_when: dict[str, datetime]) -> dict[str, str]:
    """Worker, listener and relays that have been away for a while, each with words."""
    beats = alive.newest_beats()
    facts = {
        "worker": alive.of_role(beats, "worker", "No worker is running: runs stay queued.", now),
        "listener": alive.of_role(beats, "listener", "The listener is not running: new events are not seen.", now),
        "relay": alive.relay(),
    }
    for part, words in facts.items():
        if words == alive.OK:
            since_when.pop(part, None)
        else:
            since_when.setdefault(part, now)
    return {part: facts[part] for part, began in since_when.items() if now - began >= AWAY_AFTER}


def _away(parts: dict[str, str], alerts: Iterable[Alert]) -> dict[Condition, str]:
    """One alert for each owner with something armed: one of the agents speaks for all, and the same to the end."""
    told = {(alert.agent.owner_id, alert.subject): alert.agent_id for alert in alerts if alert.kind == KINDS.AWAY}
    found = {Condition(pk, KINDS.AWAY, part): parts[part] for (_, part), pk in told.items() if part in parts}
    if not parts:
        return found
    armed = Agent.objects.filter(Exists(Trigger.objects.live().filter(agent=OuterRef("pk"))))
    first: dict[int, int] = {}
    for pk, owner in armed.order_by("pk").values_list("pk", "owner")[:MOST]:
        first.setdefault(owner, pk)
    for owner, pk in first.items():
        found |= {Condition(pk, KINDS.AWAY, part): words for part, words in parts.items() if (owner, part) not in told}
    return found


def _ending(alert: Alert) -> str:
    if alert.kind == KINDS.AWAY:
        back = {"worker": "A worker runs again.", "listener": "The listener runs again."}
        return back.get(alert.subject, "A relay is connected again.")
    trigger = Trigger.objects.filter(agent=alert.agent_id, address=alert.subject).select_related("agent").first()
    name = f"“{alert.subject.split(':', 2)[-1][:LONGEST_NAME]}” of {alert.agent.name}"
    if trigger is None or not trigger.live:
        return f"{name} is switched off, paused or gone; it is not watched any more."
    if alert.kind == KINDS.FAILING:
        return f"{name} was resumed: it fires again."
    if trigger.last_fired_at and trigger.last_fired_at > alert.at:
        return f"{name} fired again at {_at(trigger.last_fired_at)}."
    return f"{name} is not expected to have fired any more."


# --- Budgets -----------------------------------------------------------------------


def _budgets(alerts: list[Alert], now: datetime) -> int:
    """Ends what was told of a budget once another period or another limit leaves room."""
    if not alerts:
        return 0
    agents = Agent.objects.filter(pk__in={alert.agent_id for alert in alerts}).select_related("owner")
    now_used = {str(budget.pk): (budget, one) for budget, one in overview(list(agents), now, settled_only=True)}
    found = 0
    for alert in alerts:
        budget, allowance = now_used.get(alert.subject, (None, None))
        if budget is None or allowance is None:
            found += Notice.objects.end(alert, "The budget was taken away.", now)
        elif not allowance.state and not _same(alert, budget, now):
            found += Notice.objects.end(alert, f"The budget for {allowance.name}, has room again.", now)
    return found


def _same(alert: Alert, budget: Budget, now: datetime) -> bool:
    """Whether its period and limit are still those it was told of: a stopped run may leave a little of them."""
    return alert.detail.startswith(f"{period_mark(budget, since(budget, now))} ")
