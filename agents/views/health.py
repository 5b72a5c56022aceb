"""Is everything alive: for machines as JSON, for owners as a banner, for the operator in words."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.alive import OK, facts, newest_beats, of_role, span
from agents.models import Alert, Halt
from marketplace.models import User

__all__ = ["BANNERS", "OK", "banners", "facts", "healthz"]
BANNER_SECONDS = 5
BANNERS = "health-banners"  # in the cache


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    found = facts(timezone.now())
    response = JsonResponse(found, status=200 if all(words == OK for words in found.values()) else 503)
    response._has_been_logged = True  # type: ignore[attr-defined]  # asked every few seconds; not an error of ours
    return response


def banners(request: HttpRequest) -> dict[str, Any]:
    """Context processor: tells signed-in owners when nothing is carried out or heard; looked up every few seconds."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    own = _cached(f"{BANNERS}-{user.pk}", lambda: _alerts(user))
    return {"banners": [*_cached(BANNERS, lambda: _away(timezone.now())), *own]}


def _alerts(user: User) -> list[str]:
    """How many alerts of the user's agents are open, in one line that leads to them."""
    slugs = list(Alert.objects.of(user).open().exclude(kind=Alert.Kind.AWAY).values_list("agent__slug", flat=True))
    if not slugs:
        return []
    words = "1 alert is" if len(slugs) == 1 else f"{len(slugs)} alerts are"
    there = reverse("agent_alerts", args=[slugs[0]]) if len(set(slugs)) == 1 else reverse("agents")
    return [format_html('<a href="{}">{} open.</a>', there, words)]


def _away(now: datetime) -> list[str]:
    beats = newest_beats()
    found: tuple[str, ...] = (
        of_role(beats, "worker", "No worker is running: runs wait in the queue until one starts.", now),
        of_role(beats, "listener", "The listener is not running: new events and what they trigger are not seen.", now),
    )
    halted = Halt.since()
    words = (
        f"The operator stopped everything {span(now - halted)} ago: nothing runs until it goes on." if halted else OK
    )
    return [said for said in (words, *found) if said != OK]


def _cached(key: str, make: Callable[[], list[str]]) -> list[str]:
    found = cache.get(key)
    if found is None:
        found = make()
        cache.set(key, found, BANNER_SECONDS)
    return list(found)
