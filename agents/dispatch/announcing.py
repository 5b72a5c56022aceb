"""Waking workers: a run's id to the broker, after commit, and never so many that a folder of messages clogs."""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from django.db import transaction
from kombu.exceptions import KombuError

from agents.models import Run
from marketplace.celery import app

log = logging.getLogger(__name__)

MOST_OUTSTANDING = 200  # messages in the folder of the filesystem broker, whose reading slows with thousands


def announce(ids: Iterable[str], now: datetime) -> int:
    """Wakes workers for these runs; how many messages were sent. The tick makes good what a broker did not take."""
    sent: list[str] = []
    for run_id in list(ids)[: room()]:
        try:
            app.send_task("agents.tasks.execute_run", args=[run_id], queue="runs", retry=False, ignore_result=True)
        except (KombuError, OSError) as error:
            log.warning("the broker took no message (%s); the tick will try again", type(error).__name__)
            break
        sent.append(run_id)
    if sent:
        Run.objects.filter(pk__in=sent).update(announced_at=now)
    return len(sent)


def room() -> int:
    """How many more messages the broker should be given now."""
    messages = folder()
    return 10_000 if messages is None else max(0, MOST_OUTSTANDING - sum(1 for _ in messages.glob("*.runs.msg")))


def folder() -> Path | None:
    """Where the filesystem broker keeps its messages; None for every other broker."""
    if not str(app.conf.broker_url).startswith("filesystem"):
        return None
    return Path(app.conf.broker_transport_options["data_folder_out"])


def announce_after_commit(ids: Sequence[str], now: datetime) -> None:
    if ids:
        transaction.on_commit(lambda: announce(ids, now), robust=True)
