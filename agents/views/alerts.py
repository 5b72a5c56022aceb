"""An agent's alerts: what is wrong now, what was, what was sent of it, and where it is sent."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Case, Q, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from agents.forms.alerts import AlertRouteForm
from agents.models import Agent, Alert, AlertRoute, Change, Notice
from agents.views.current import own_agent
from marketplace import signing

PAGE = 40
MOST_SHOWN = 200
MOST_TESTS = 4
TEST_PAUSE = timedelta(seconds=30)
TESTS_SHOWN = timedelta(days=1)


@sensitive_post_parameters("secret")
@sensitive_variables("form")
@login_required
def agent_alerts(request: HttpRequest, slug: str) -> HttpResponse:
    own = own_agent(request, slug)
    route = AlertRoute.of(own)
    form = AlertRouteForm(request.POST if request.method == "POST" else None, route=route)
    if request.method == "POST" and form.is_valid():
        _save(own, route, form, timezone.now())
        messages.success(request, "Saved; it holds from the next alert on.")
        return redirect("agent_alerts", own.slug)
    text = request.GET.get("before", "")
    before = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    context = {"agent": own, "tab": "agent_alerts", "before": before, "form": form, "route": route}
    context |= _shown(own, before, timezone.now())
    return render(request, "agents/agent_alerts.html", context, status=422 if form.errors else 200)


def _shown(own: Agent, before: int | None, now: datetime) -> dict[str, Any]:
    """All that are open, a page of those that are over, and the last tests, with what was sent. Two queries."""
    wanted = Q() if before is None else Q(ended_at=None) | Q(pk__lt=before)
    open_first = Case(When(ended_at=None, then=0), default=1)
    alerts = list(Alert.objects.filter(wanted, agent=own).order_by(open_first, "-pk")[: MOST_SHOWN + 1])
    tested = Q(agent=own, level=Notice.Level.TEST, at__gt=now - TESTS_SHOWN)
    notices = list(Notice.objects.filter(Q(alert__in=alerts) | tested).order_by("pk").defer("intent"))
    sent: dict[int | None, list[Notice]] = {}
    for notice in notices:
        sent.setdefault(notice.alert_id, []).append(notice)
    lines = [(alert, sent.get(alert.pk, [])) for alert in alerts]
    ended = [line for line in lines if line[0].ended_at]
    return {
        "open": [line for line in lines if not line[0].ended_at],
        "ended": ended[:PAGE],
        "next": ended[PAGE - 1][0].pk if len(ended) > PAGE else None,
        "tests": sent.get(None, [])[::-1][:MOST_TESTS],
    }


@sensitive_variables("form", "secret", "values")
def _save(own: Agent, route: AlertRoute, form: AlertRouteForm, now: datetime) -> None:
    values = {name: form.cleaned_data[name] for name in ("direct", "kinds", "webhook")}
    secret, before = form.cleaned_data["secret"], _said(route)
    if not values["webhook"]:
        values["sealed"] = ""
    elif secret:
        values["sealed"] = signing.seal(secret)
    route.keep(values)
    Change.record(own, "alerts", "", before, _said(AlertRoute.of(own)), now)


def _said(route: AlertRoute) -> dict[str, Any]:
    """For the history: of the webhook its host, since many addresses hold a secret."""
    return {"to the admin": route.direct, "sent": route.kinds, "webhook": urlsplit(route.webhook).hostname or ""}


@login_required
@require_POST
def alerts_test(request: HttpRequest, slug: str) -> HttpResponse:
    """Sends something by every way that is set up; what became of it stands on the page."""
    own, now = own_agent(request, slug), timezone.now()
    recent = Notice.objects.filter(agent=own, level=Notice.Level.TEST, at__gt=now - TEST_PAUSE)
    if recent.exists():
        messages.info(request, "A test was sent less than 30 seconds ago: its outcome is below.")
    elif not Notice.objects.test(own, f"This is a test of the alerts of {own.name}.", now):
        messages.error(request, "Nothing is set up to send to: choose the private message, or name a webhook.")
    else:
        messages.success(request, "A test is on its way; load this page again to see whether it arrived.")
    return redirect("agent_alerts", own.slug)
