"""From an occasion to Run rows: queued, or suppressed with a reason, decided and written under one lock.

The row is the queue. Only its id travels, after commit; what is not announced, or announced in vain, the tick sends
again.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import F

from agents import resting
from agents.dispatch.announcing import announce, announce_after_commit, room
from agents.dispatch.approving import decide, decide_all
from agents.dispatch.children import child, wake_parent
from agents.dispatch.limiting import situation
from agents.dispatch.talking import follow
from agents.engine import limits
from agents.models import Agent, HeldBack, Run, Step, Trigger
from marketplace.protocol.events import Address, Event
from marketplace.protocol.triggers import Occasion, delivery_key, read_trigger

__all__ = [
    "again",
    "announce",
    "anyway",
    "chained",
    "child",
    "decide",
    "decide_all",
    "manual",
    "room",
    "runs_for",
]

FLOOD = 5  # suppressed runs of one trigger, minute and reason that get a row; the rest are counted
REPLY_WITHIN = timedelta(days=1)  # how long after a publication an answer to it still carries its depth
_LOCK = 0x6A6D  # of PostgreSQL's advisory locks


def runs_for(occasion: Occasion, now: datetime, trigger_ids: Collection[int] | None = None) -> list[Run]:
    """The new runs of each trigger the occasion is for, queued or suppressed; announced after commit.

    `trigger_ids` are those that the source already matched (the listener's index, a cron slot, a webhook's address);
    without them the live triggers are asked. Each trigger is decided in a transaction of its own.
    """
    if trigger_ids is None:
        trigger_ids = [trigger.pk for trigger in _asked(occasion)]
    depth = max(occasion.depth, _depth_of(occasion.event, now))
    runs = [_one(pk, occasion, depth, now) for pk in sorted(trigger_ids)]
    found = [run for run in runs if run is not None]
    announce_after_commit([run.pk for run in found if run.status == Run.Status.QUEUED], now)
    return found


def chained(parent: Run, now: datetime) -> list[Run]:
    """The runs that the end of this run starts; call it in the transaction that finishes it."""
    payload = {
        "agent": parent.agent_id,
        "source": parent.skill_address,
        "status": parent.status,
        "output": parent.output,
    }
    resting.note_end(parent)
    follow(parent, now)
    wake_parent(parent, now)
    if parent.comparison:
        return []  # it is looked at, and starts nothing else
    occasion = Occasion("chain", parent.pk, int(now.timestamp()), payload=payload, depth=parent.depth + 1)
    return runs_for(occasion, now)


def manual(
    agent: Agent,
    skill_address: str,
    event_id: str,
    message: str,
    arguments: dict[str, Any],
    overrides: dict[str, Any],
    now: datetime,
    key: str,
) -> Run:
    """A run that a person asked for; the same key gives the same run. `event_id`: the skill's version, "" for none."""
    address = Address.parse(skill_address)
    fields: dict[str, Any] = {
        "skill_address": skill_address,
        "skill_event": event_id,
        "skill_name": address.d if address else "",
        "input": {"message": message, "arguments": arguments},
        "overrides": overrides,
        "created_at": now,
    }
    own = {"agent": agent, "trigger_kind": "manual", "occasion_key": delivery_key(key)}
    try:
        with transaction.atomic():
            run = Run.objects.create(**own, **fields)
    except IntegrityError:
        return Run.objects.get(**own)
    announce_after_commit([run.pk], now)
    return run


def anyway(suppressed: Run, now: datetime) -> Run:
    """A run that was held back, carried out because its owner says so; asked twice it is still one."""
    return again(suppressed, now, f"anyway:{suppressed.pk}")


def again(run: Run, now: datetime, key: str) -> Run:
    """The same skill version on the same input, once for each key."""
    own = {"agent": run.agent, "trigger_kind": "manual", "occasion_key": delivery_key(key)}
    copied = ("skill_address", "skill_event", "skill_name", "action", "autonomy", "input", "overrides")
    try:
        with transaction.atomic():
            run = Run.objects.create(**own, created_at=now, **{name: getattr(run, name) for name in copied})
    except IntegrityError:
        return Run.objects.get(**own)
    announce_after_commit([run.pk], now)
    return run


def _asked(occasion: Occasion) -> list[Trigger]:
    """The live triggers that this occasion fires."""
    live = Trigger.objects.live().filter(kind=occasion.kind)
    if occasion.kind == "chain":
        # Chains join runs of the same agent only.
        live = live.filter(agent=occasion.payload["agent"])
    return [trigger for trigger in live if _fires(trigger, occasion)]


def _fires(trigger: Trigger, occasion: Occasion) -> bool:
    spec = read_trigger([tuple(tag) for tag in trigger.tags])
    if spec is None or spec.data is None:
        return False
    if occasion.kind == "nostr-subscription":
        return occasion.event is not None and spec.data.matches(occasion.event)
    if occasion.kind == "chain":
        ended = spec.data.on in {"always", occasion.payload["status"]}
        return ended and str(spec.data.source) == occasion.payload["source"]
    return False  # cron and webhook name their trigger


def _depth_of(event: Event | None, now: datetime) -> int:
    """One more than that of the run which published the event: two agents answering each other come to an end."""
    if event is None or not Agent.objects.filter(identity__pubkey=event.pubkey).exists():
        return 0
    steps = Step.objects.filter(
        run__agent__identity__pubkey=event.pubkey,
        run__created_at__gte=now - REPLY_WITHIN,
        kind=Step.Kind.TOOL,
        intent__event__id=event.id,
    )
    depth = steps.values_list("run__depth", flat=True).first()
    return 0 if depth is None else depth + 1


@transaction.atomic
def _one(trigger_id: int, occasion: Occasion, depth: int, now: datetime) -> Run | None:
    """The run of one trigger, or None where it is only counted."""
    _serialise()
    trigger = Trigger.objects.select_related("agent__identity").filter(pk=trigger_id).first()
    if trigger is None:
        return None
    agent = trigger.agent
    case, own = situation(trigger, occasion, depth, now)
    refusal = limits.decide(case, own)
    if case.own_event or case.duplicate:
        # No row of its own: the first would be one for each note of the agent, the second cannot be.
        _count(trigger, "loop" if case.own_event else "duplicate", now)
        return None
    if refusal and _rows(trigger, refusal.reason, now) >= FLOOD:
        _count(trigger, refusal.reason, now)
        return None
    run = Run(
        agent=agent,
        trigger=trigger,
        trigger_kind=trigger.kind,
        skill_address=trigger.address,
        skill_name=trigger.address.split(":", 2)[2],
        skill_event=trigger.event_id,
        occasion_key=delivery_key(occasion.key),
        action=trigger.action,
        autonomy=trigger.autonomy,
        input=_input(occasion),
        depth=depth,
        parent_id=occasion.key if occasion.kind == "chain" else None,
        created_at=now,
    )
    if refusal:
        run.status, run.finished_at = Run.Status.SUPPRESSED, now
        run.reason, run.reason_words = refusal.reason, refusal.words
    else:
        Trigger.objects.filter(pk=trigger.pk).update(last_fired_at=now)
    run.save(force_insert=True)
    return run


def _serialise() -> None:
    """One decision at a time on the whole site, so that limits hold across processes."""
    # SQLite: transactions are IMMEDIATE and hold the only writer's lock from their start.
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def _input(occasion: Occasion) -> dict[str, Any]:
    event = occasion.event.to_dict() if occasion.event else None
    said = {"event": event, "relay": occasion.relay, "payload": occasion.payload}
    if occasion.kind == "webhook":
        said |= {"payload": occasion.payload["body"], "arguments": occasion.payload["arguments"]}
    return said


def _rows(trigger: Trigger, reason: str, now: datetime) -> int:
    minute = now.replace(second=0, microsecond=0)
    return Run.objects.filter(
        trigger=trigger, status=Run.Status.SUPPRESSED, reason=reason, created_at__gte=minute
    ).count()


def _count(trigger: Trigger, reason: str, now: datetime) -> None:
    minute = now.replace(second=0, microsecond=0)
    row, _ = HeldBack.objects.get_or_create(trigger=trigger, minute=minute, reason=reason)
    HeldBack.objects.filter(pk=row.pk).update(count=F("count") + 1)
