"""Telling owners of alerts, by private message or webhook: noted by the tick, sent by a worker, and never twice.

No run waits for it. What was spent decides, not what is reserved: a call that may cost much is no news.
"""

import logging
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.urls import reverse
from kombu.exceptions import KombuError

from agents import posting
from agents.models import Agent, Alert, Notice, Reservation
from agents.models.allowances import overview, since
from agents.models.notices import speaker
from agents.tools import ToolContext, ToolError
from agents.tools.messages import nostr_dm_send
from marketplace.celery import app

log = logging.getLogger(__name__)

RECENT = timedelta(hours=1)  # calls that began longer ago have been settled and looked at
MOST_AT_ONCE = 50


def look(now: datetime) -> int:
    """Notes budgets that are used up or nearly so, of agents that spent lately; how many are news."""
    active = Reservation.objects.filter(at__gte=now - RECENT, settled__isnull=False).values("agent").distinct()
    agents = list(Agent.objects.filter(pk__in=active).select_related("owner"))
    if not agents:
        return 0
    found = 0
    for budget, allowance in overview(agents, now, settled_only=True):
        who = speaker(budget) if allowance.state else None
        if who is not None:
            found += Notice.objects.note(budget, who, allowance.state, allowance.words, since(budget, now), now)
    return found


def _where(notice: Notice) -> str:
    """The page that shows more of it."""
    path = reverse("agent_alerts", args=[notice.agent.slug])
    if notice.budget is not None:
        whole_site = notice.budget.agent_id is None
        path = reverse("site_budgets") if whole_site else reverse("agent_budgets", args=[notice.agent.slug])
    return f"{settings.SITE_URL}{path}"


def announce(now: datetime) -> int:
    """Hands what is due to workers; what a broker does not take is tried again later."""
    sent = 0
    for notice in Notice.objects.due(now).select_related("alert").order_by("next_at", "pk")[:MOST_AT_ONCE]:
        if not notice.take(now):
            continue
        if _nobody_to_send(notice):
            threading.Thread(target=_tell_from_here, args=[notice.pk, now], daemon=True).start()
            sent += 1
            continue
        try:
            app.send_task("agents.tasks.tell", args=[notice.pk], queue="runs", retry=False, ignore_result=True)
        except (KombuError, OSError) as error:
            log.warning("the broker took no notice (%s); the tick will try again", type(error).__name__)
            break
        sent += 1
    return sent


def _nobody_to_send(notice: Notice) -> bool:
    """That no worker is there cannot be told by a worker."""
    alert = notice.alert
    return alert is not None and (alert.kind, alert.subject, notice.level) == (Alert.Kind.AWAY, "worker", "open")


def _tell_from_here(notice_id: int, now: datetime) -> None:
    """In a thread of its own: nothing else that time brings about waits for a relay."""
    try:
        tell(notice_id, now)
    except Exception:
        log.exception("a notice could not be sent; the tick will try again")
    finally:
        connection.close()


def tell(notice_id: int, now: datetime) -> bool:
    """Sends it, or the very event of an earlier attempt; whether it has arrived."""
    related = ("agent__identity", "budget", "alert")
    notice = Notice.objects.select_related(*related).filter(pk=notice_id, sent_at=None).first()
    if notice is None:
        return False
    try:
        _send(notice, now)
    except (ToolError, posting.NotPosted) as error:
        Notice.objects.filter(pk=notice.pk).update(problem=str(error)[:300])
        return False
    Notice.objects.filter(pk=notice.pk).update(sent_at=now, problem="")
    return True


def _send(notice: Notice, now: datetime) -> None:
    """Raises ToolError or NotPosted where it did not arrive."""
    if notice.channel == Notice.Channel.WEBHOOK:
        posting.post(notice, _where(notice))
        return

    def remember(intent: dict[str, Any]) -> None:
        if not notice.remember(intent):
            raise ToolError("Another attempt is sending it.")

    recalled: Mapping[str, Any] = notice.intent
    ctx = ToolContext(notice.agent, now, frozenset({"nostr_dm_send"}), recalled=recalled, remember=remember)
    nostr_dm_send(ctx, f"{notice.words} {_where(notice)}")
