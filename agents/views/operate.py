"""For the operator: what is wrong in words, and what to do about it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.cache import cache
from django.db import connection
from django.db.models import Count, Min
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from agents import halting
from agents.models import Halt, Run, Trigger
from agents.views.health import BANNERS, OK, facts
from marketplace.models import ArchivedEvent, Heartbeat, Relay, Skill, User

STUCK = timedelta(minutes=5)

REMEDIES = {
    "database": "Look at the log of the database, at DATABASE_URL, and at the free space of its disk.",
    "broker": "Nothing is lost: runs are rows, and are announced again once it is back. Look at CELERY_BROKER_URL.",
    "worker": "Start one: celery -A marketplace.celery worker -Q runs. With `make up` it is started again by itself.",
    "relay": "Look at RELAY_PORT and at the relay's lines in the log, or name others in JOURNEYMAN_RELAYS.",
    "listener": "Start it: manage.py listen. It catches up from where it was; nothing on the relays is lost.",
    "web": "",
}


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    words: str
    remedy: str

    @property
    def well(self) -> bool:
        return self.words == OK


@login_required
@require_safe
def operate(request: HttpRequest) -> HttpResponse:
    if not cast(User, request.user).is_staff:
        raise Http404("Not for you.")
    now = timezone.now()
    halted = Halt.since()
    parts = [Part(name, words, REMEDIES[name]) for name, words in facts(now).items()]
    waiting = Run.objects.filter(status=Run.Status.QUEUED).aggregate(count=Count("pk"), oldest=Min("created_at"))
    context: dict[str, Any] = {
        "halted": halted,
        "parts": parts,
        "wrong": [part for part in parts if not part.well],
        "processes": Heartbeat.objects.order_by("role", "instance"),
        "fresh_after": now - timedelta(seconds=30),
        "relays": Relay.objects.order_by("url")[:200],
        "open": Run.objects.open().values_list("status").annotate(count=Count("pk")).order_by("status"),
        "waiting": waiting,
        "stuck": waiting["oldest"] is not None and waiting["oldest"] < now - STUCK,
        "failed": Run.objects.filter(status=Run.Status.FAILED, created_at__gte=now - timedelta(days=1)).count(),
        "armed": Trigger.objects.live().count(),
        "events": ArchivedEvent.objects.count(),
        "skills": Skill.objects.public().count(),
        "vendor": connection.display_name,
        "broker": settings.CELERY_BROKER_URL.partition(":")[0],
    }
    return render(request, "agents/operate.html", context)


@login_required
@require_POST
def site_halt(request: HttpRequest) -> HttpResponse:
    """Stops everything at once, or lets it go on."""
    user = cast(User, request.user)
    if not user.is_staff:
        raise Http404("Not for you.")
    if request.POST.get("halt") == "on":
        stopped = halting.halt(user, timezone.now())
        messages.success(request, f"Everything is stopped: {stopped} open runs ended, and none starts.")
    elif request.POST.get("halt") == "off" and halting.go_on(timezone.now()):
        messages.success(request, "Runs start again. What happened meanwhile is on “Why didn’t it run?”.")
    cache.delete(BANNERS)
    return redirect("operate")
