"""Schedules that are due: which of the slots that passed run, by the owner's choice, and when the next one is."""

from collections import deque
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from django.db.models import F

from agents import dispatch
from agents.models import HeldBack, Trigger
from marketplace.protocol.triggers import Occasion, cron, read_trigger

LATE = timedelta(seconds=90)  # a slot older than this was missed: nothing was there to fire it
MOST_CAUGHT_UP = 10
MOST_LOOKED_AT = 20_000  # slots: two weeks of a schedule of every minute
MOST_AT_ONCE = 500  # triggers that one tick looks at


def fire(now: datetime) -> int:
    """Runs for the schedules that are due; how many triggers moved on to their next slot."""
    due = Trigger.objects.live().filter(kind="cron", next_run_at__lte=now).order_by("next_run_at")
    return sum(_fire(trigger, now) for trigger in due[:MOST_AT_ONCE])


def _fire(trigger: Trigger, now: datetime) -> int:
    spec = read_trigger([tuple(tag) for tag in trigger.tags])
    first = trigger.next_run_at
    if spec is None or not isinstance(spec.data, cron.Cron) or first is None:
        Trigger.objects.filter(pk=trigger.pk).update(next_run_at=None)
        return 0
    chosen, missed = choose(spec.data, trigger.catch_up, first, now)
    for slot in chosen:
        dispatch.runs_for(Occasion("cron", cron.slot_key(slot), int(slot.timestamp())), now, [trigger.pk])
    following = next(iter(cron.next_times(spec.data, now, 1)), None)
    # Only from the slot we saw: of two ticks at once the second changes nothing.
    moved = Trigger.objects.filter(pk=trigger.pk, next_run_at=first).update(next_run_at=following)
    if moved and missed:
        _count_missed(trigger, missed, now)
    return moved


def choose(schedule: cron.Cron, catch_up: str, first: datetime, now: datetime) -> tuple[list[datetime], int]:
    """The slots from `first` to `now` that run, oldest first, and how many do not.

    One slot that is just due always runs. Of those that were missed: none (`skip`), the newest for all of them
    (`one`), or each up to the last ten (`all`).
    """
    now = now.astimezone(UTC)  # two times of one zone are compared by the wall clock, which an hour repeats
    passed = [first, *takewhile(lambda slot: slot <= now, islice(schedule.after(first), MOST_LOOKED_AT))]
    most = {"skip": 0, "one": 1, "all": MOST_CAUGHT_UP}[catch_up]
    fresh = passed[-1:] if now - passed[-1] <= LATE else []
    chosen = list(deque(passed, maxlen=max(most, len(fresh)))) if most or fresh else []
    return chosen, len(passed) - len(chosen)


def _count_missed(trigger: Trigger, missed: int, now: datetime) -> None:
    minute = now.replace(second=0, microsecond=0)
    row, _ = HeldBack.objects.get_or_create(trigger=trigger, minute=minute, reason="missed")
    HeldBack.objects.filter(pk=row.pk).update(count=F("count") + missed)
