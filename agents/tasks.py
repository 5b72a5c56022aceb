"""What Celery carries out, one run by its id; and the tick, which makes good whatever a message missed."""

import gc
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from celery import shared_task
from celery.signals import worker_init
from django.db import close_old_connections, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from agents import alerting, arming, dispatch, llm, runner, telling
from agents.firing import fire
from agents.models import HeldBack, Run
from agents.resting import wake
from agents.runner import settling
from marketplace import celery, ingest
from marketplace.models import Heartbeat
from marketplace.protocol import nostr

log = logging.getLogger(__name__)

AGAIN_AFTER = timedelta(seconds=30)  # a message that has led to nothing by then is sent again
WATCH_SECONDS = 15  # between two looks for alerts
REARM_SECONDS = 60  # between two looks at every agent, beyond what signals and quick looks find
MOST_AT_ONCE = 500  # rows that one tick looks at
KEEP_HELD_BACK = timedelta(days=30)


@shared_task(name="agents.tasks.execute_run", ignore_result=True)
def execute_run(run_id: str) -> bool:
    """Carry out the run if it can be claimed; a second message for it finds nothing to do."""
    return runner.execute(run_id)


@shared_task(name="agents.tasks.tell", ignore_result=True)
def tell(notice_id: int) -> bool:
    """Send a notice to its owner; what cannot be sent now the tick hands out again."""
    return telling.tell(notice_id, timezone.now())


@worker_init.connect
def preload(sender: Any = None, **_: Any) -> None:
    """What every run needs, once in the parent: its 200 MB are then shared by all children, and no run waits for it."""
    llm.warm_up()
    nostr.generate_secret()
    gc.collect()
    gc.freeze()


def tick() -> dict[str, int]:
    """Everything that time alone brings about; each part on its own, so that one failing stops no other."""
    now = timezone.now()
    close_old_connections()
    done = {part.__name__: _attempt(part, now) for part in PARTS}
    celery.beat("tick", "tick", ", ".join(name for name, count in done.items() if count < 0))
    return done


def _attempt(part: Callable[[datetime], int], now: datetime) -> int:
    """How much the part did; -1 where it failed, which is logged and shown in the heartbeat."""
    try:
        return part(now)
    except Exception:
        log.exception("the tick could not %s", part.__name__)
        if not connection.in_atomic_block:
            connection.close()  # it may be what failed; the next part gets a fresh one
        return -1


def park(now: datetime) -> int:
    """Runs that ended their worker too often are not tried again."""
    worn = Run.objects.filter(status=Run.Status.RUNNING, lease_until__lt=now, deliveries__gte=Run.MAX_DELIVERIES)
    return sum(_parked(run, now) for run in worn.select_related("agent")[:MOST_AT_ONCE])


def _parked(run: Run, now: datetime) -> int:
    words = f"It ended its worker {Run.MAX_DELIVERIES} times and was parked."
    end = {"status": Run.Status.FAILED, "reason": "parked", "reason_words": words, "finished_at": now}
    with transaction.atomic():
        still = Run.objects.filter(pk=run.pk, status=Run.Status.RUNNING, lease_until=run.lease_until)
        parked = still.update(**end, lease_token="", lease_until=None)
        if parked:
            run.status = Run.Status.FAILED
            dispatch.chained(run, now)
    return parked


def announce(now: datetime) -> int:
    """Send again what nobody took: never announced, announced in vain, due after waiting, or left by a dead worker."""
    room = dispatch.room()
    if not room:
        return 0
    in_vain = Q(announced_at=None) | Q(announced_at__lt=now - AGAIN_AFTER)
    waited = Q(status=Run.Status.WAITING, announced_at__lt=F("waiting_until"))
    open_runs = Run.objects.claimable(now).filter(in_vain | waited)
    rows = open_runs.order_by("created_at").only("created_at", "announced_at", "status")[:MOST_AT_ONCE]
    return dispatch.announce([run.pk for run in rows if _due(run, now)], now)


def _due(run: Run, now: datetime) -> bool:
    """Doubling pauses while queued: many workers busy for long must not fill the broker with repetitions."""
    if run.announced_at is None or run.status != Run.Status.QUEUED:
        return True
    return now - run.announced_at >= max(AGAIN_AFTER, run.announced_at - run.created_at)


def arm(now: datetime) -> int:
    """Agents out of step with their lists; all of them once a minute, since a deletion shows only then."""
    return arming.arm_all(now, every=int(now.timestamp()) % REARM_SECONDS == 0)


def release(now: datetime) -> int:
    """Events dated ahead that are due by now."""
    return len(ingest.release_held(int(now.timestamp())))


def expire(now: datetime) -> int:
    """What its author gave an end (NIP-40)."""
    return ingest.expire(int(now.timestamp()))


def settle(now: datetime) -> int:
    """Calls whose worker died, of runs that are over."""
    return settling.settle(now)


def warn(now: datetime) -> int:
    """Budgets that are nearly or wholly used up; every few seconds is soon enough."""
    return telling.look(now) if int(now.timestamp()) % 5 == 0 else 0


def watch(now: datetime) -> int:
    """Alerts that begin and end; four times a minute."""
    return alerting.look(now) if int(now.timestamp()) % WATCH_SECONDS == 0 else 0


def hand_out(now: datetime) -> int:
    """Messages to owners that are due."""
    return telling.announce(now)


def tidy(now: datetime) -> int:
    """Signs of life of processes long gone, and counts nobody reads any more; once an hour."""
    if int(now.timestamp()) % 3600:
        return 0
    gone, _ = Heartbeat.objects.filter(at__lt=now - timedelta(days=1)).delete()
    old, _ = HeldBack.objects.filter(minute__lt=now - KEEP_HELD_BACK).delete()
    return gone + old


PARTS: tuple[Callable[[datetime], int], ...] = (
    park,
    announce,
    wake,
    fire,
    release,
    expire,
    arm,
    settle,
    warn,
    watch,
    hand_out,
    tidy,
)
