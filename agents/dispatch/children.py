"""Runs that another run started by a tool, and the run that waits for them."""

from datetime import datetime

from django.db import IntegrityError, transaction

from agents.dispatch.announcing import announce_after_commit
from agents.models import Run
from agents.models.runs import CALLED
from marketplace.protocol.events import Address
from marketplace.protocol.triggers import delivery_key

WAITS_FOR = "child"  # the reason of a run that waits for one it started


def child(
    parent: Run, skill_address: str, event_id: str, message: str, tools: list[str], key: str, now: datetime
) -> Run:
    """A run of this skill version with no more rights than its parent has; the same key gives the same run."""
    address = Address.parse(skill_address)
    own = {"agent": parent.agent, "trigger_kind": "manual", "occasion_key": delivery_key(f"{CALLED}{key}")}
    try:
        with transaction.atomic():
            run = Run.objects.create(
                **own,
                skill_address=skill_address,
                skill_event=event_id,
                skill_name=address.d if address else "",
                input={"message": message, "arguments": {}},
                overrides={"tools": tools},
                # What the parent must ask for, its children must ask for too.
                autonomy=parent.autonomy,
                depth=parent.depth + 1,
                parent=parent,
                created_at=now,
            )
    except IntegrityError:
        return Run.objects.get(**own)
    announce_after_commit([run.pk], now)
    return run


def wake_parent(ended: Run, now: datetime) -> None:
    """Call it in the transaction that ends the run: who waits for it goes on."""
    if ended.parent_id is None:
        return
    waiting = Run.objects.filter(pk=ended.parent_id, status=Run.Status.WAITING, reason=WAITS_FOR)
    if waiting.update(waiting_until=now):
        announce_after_commit([ended.parent_id], now)
