"""Run history, and one run: everything it was made of, live until it ends, and what its owner can still do."""

import secrets
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from agents import dispatch
from agents.forms.filters import RunFilter, Unreadable, cursor, place_of, zone_of
from agents.models import Run, Step
from agents.models.runs import RunQuerySet
from agents.preview import of_run
from agents.templatetags.running import pretty
from agents.views.current import own_agents
from agents.views.figures import DAYS, figures
from marketplace.models import User
from marketplace.protocol import nip19
from marketplace.protocol.events import Address
from marketplace.protocol.storable import storable

PAGE = 50
TRIGGER_KINDS = ("manual", "nostr-subscription", "cron", "webhook", "chain")
POLL = "1s"  # while something may happen by itself
POLL_WAITING = "5s"  # while it waits for a person or a time


def own_runs(request: HttpRequest) -> RunQuerySet:
    return Run.objects.of(cast(User, request.user)).select_related("agent", "trigger")


def own_run(request: HttpRequest, pk: str) -> Run:
    """Fetch and authorise in one: a stranger's run is not there."""
    if not pk.isalnum() or not pk.isascii():
        raise Http404("No such run.")
    return get_object_or_404(own_runs(request), pk=pk)


@login_required
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    problem, status = "", 200
    try:
        asked, place = RunFilter.read(request.GET.dict()), place_of(request.GET.get("before", ""))
    except Unreadable as error:
        problem, status, asked, place = str(error), 400, RunFilter(), None
    rows, more = asked.apply(own_runs(request), zone_of(user.time_zone)).page(place, PAGE)
    context = {
        "runs": [] if problem else rows,
        "problem": problem,
        "filter": asked,
        "older": asked.query(before=cursor(more)) if more else "",
        "later": place is not None,
        "statuses": Run.Status.values,
        "kinds": TRIGGER_KINDS,
        "agents": own_agents(request),
    }
    return render(request, "agents/runs.html", context, status=status)


@login_required
@require_safe
def run(request: HttpRequest, pk: str) -> HttpResponse:
    """The page, and for htmx the part of it that changes; the last one does not ask again."""
    own = own_run(request, pk)
    live = bool(getattr(request, "htmx", False))
    response = render(request, "agents/_run_live.html" if live else "agents/run.html", _whole(own))
    response["Vary"] = "HX-Request, Cookie"
    return response


def _whole(own: Run) -> dict[str, Any]:
    steps = list(own.steps.order_by("position"))
    address = Address.parse(own.skill_address)
    return {
        "run": own,
        "steps": steps,
        "waiting": [step for step in steps if step.state == Step.State.WAITING and not step.outcome],
        "sent": of_run(own),
        "request_text": pretty(own.request) if own.request else "",
        "event_text": pretty(own.input["event"]) if own.input.get("event") else "",
        "payload_text": pretty(own.input["payload"]) if own.input.get("payload") else "",
        "naddr": nip19.encode_naddr(address) if address and address.kind == 31123 else "",
        "children": list(own.children.select_related("agent").order_by("created_at", "id").defer(*Run.HEAVY)[:20]),
        "poll": "" if own.is_final else POLL_WAITING if own.status == Run.Status.WAITING else POLL,
        "again_token": secrets.token_hex(8),
    }


@login_required
@require_POST
def run_stop(request: HttpRequest, pk: str) -> HttpResponse:
    own = own_run(request, pk)
    if own.cancel(timezone.now(), "You stopped it."):
        messages.success(request, "Stopped. What it cost so far stays on record.")
    else:
        messages.info(request, "It had ended already.")
    return redirect("run", own.pk)


@login_required
@require_POST
def run_again(request: HttpRequest, pk: str) -> HttpResponse:
    """The same version on the same input; held-back runs are carried out once, however often this is pressed."""
    own, now = own_run(request, pk), timezone.now()
    token = request.POST.get("token", "")[:64]
    if own.status == Run.Status.SUPPRESSED:
        new = dispatch.anyway(own, now)
    else:
        new = dispatch.again(own, now, f"again:{own.pk}:{token or now.isoformat()}")
    return redirect("run", new.pk)


@login_required
@require_POST
def step_decide(request: HttpRequest, pk: str, position: int) -> HttpResponse:
    """Approve or decline one call that waits for its owner; the run goes on once none waits."""
    own = own_run(request, pk)
    step = get_object_or_404(Step, run=own, position=min(position, 2**31 - 1))
    return _decide(request, own, [step])


@login_required
@require_POST
def run_decide(request: HttpRequest, pk: str) -> HttpResponse:
    """The same word on all calls that wait; only on those the page showed."""
    own = own_run(request, pk)
    shown = [int(text) for text in request.POST.getlist("position")[:200] if text.isascii() and text.isdigit()]
    waiting = own.steps.filter(state=Step.State.WAITING, outcome="", position__in=[at for at in shown if at < 2**31])
    return _decide(request, own, list(waiting))


def _decide(request: HttpRequest, own: Run, steps: list[Step]) -> HttpResponse:
    decision = request.POST.get("decision")
    words = storable(request.POST.get("reason", "")[:500]).strip()
    if nip19.holds_nsec(words):
        messages.error(request, "The reason held a secret key (nsec). Nothing was decided, and it was not kept.")
    elif decision not in {"approve", "decline"}:
        messages.error(request, "Say approve or decline.")
    elif not dispatch.decide_all(steps, decision == "approve", timezone.now(), words):
        messages.info(request, "This call no longer waits.")
    return redirect("run", own.pk)


@require_safe
def skill_runs(request: HttpRequest) -> HttpResponse:
    """The fragment on a skill's page: how it went here, for the agents of who is looking."""
    address = Address.parse(request.GET.get("address", "")[:300].replace("\x00", ""))
    if address is None:
        raise Http404("No such skill.")
    context: dict[str, Any] = {"address": str(address), "runs": [], "more": False}
    if request.user.is_authenticated:
        rows, more = own_runs(request).filter(skill_address=str(address)).page(None, 10)
        found = figures(request.user, [str(address)], timezone.now())
        context |= {"runs": rows, "more": more is not None, "figures": found.get(str(address)), "days": DAYS}
    return render(request, "agents/_skill_runs.html", context)
