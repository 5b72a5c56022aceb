"""One trigger's web address: how callers prove themselves, what came, and sending it through once more."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from agents.dispatch import receiving
from agents.forms.hooks import HookForm
from agents.models import Agent, Change, Delivery, Hook, Trigger
from agents.models.hooks import OVERLAP
from agents.views.current import own_agent
from marketplace import signing

PAGE = 40
SHOWN = 20_000  # characters of a body
OUTCOMES = {"": "all", "accepted": "accepted", "refused": "refused", "test": "test"}


def own_trigger(request: HttpRequest, slug: str, pk: int) -> tuple[Agent, Trigger]:
    own = own_agent(request, slug)
    return own, get_object_or_404(Trigger.objects.select_related("hook"), agent=own, kind="webhook", pk=pk)


@sensitive_post_parameters("secret")
@sensitive_variables("form")
@login_required
@never_cache
def hook_settings(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    own, trigger = own_trigger(request, slug, pk)
    hook = getattr(trigger, "hook", None)
    before = hook.in_words() if hook else None
    form = HookForm(request.POST if request.method == "POST" and hook else None, instance=hook)
    if request.method == "POST" and hook and form.is_valid():
        now = timezone.now()
        _save(hook, form, now)
        after = hook.in_words() | ({"secret": "another one"} if form.cleaned_data["secret"] else {})
        Change.record(own, "web address", trigger.name, before, after, now)
        messages.success(request, "Saved; it holds from the next request on.")
        return redirect("hook_settings", own.slug, trigger.pk)
    return _page(request, own, trigger, form if hook else None)


@login_required
@never_cache
@require_POST
def hook_address(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Makes the first address, or another one; the page that answers is the only one to show it."""
    own, trigger = own_trigger(request, slug, pk)
    hook = getattr(trigger, "hook", None) or Hook(trigger=trigger)  # which makes it the trigger's
    before, now = {"address": "made before"} if hook.pk else None, timezone.now()
    try:
        with transaction.atomic():
            live, test = hook.readdress(now)
            Change.record(own, "web address", trigger.name, before, {"address": "made"}, now)
    except IntegrityError:  # a second click at the same moment: the first one's answer shows the address
        return redirect("hook_settings", own.slug, trigger.pk)
    addresses = [request.build_absolute_uri(reverse("hook", args=[token])) for token in (live, test)]
    return _page(request, own, trigger, HookForm(instance=hook), *addresses)


def _save(hook: Hook, form: HookForm, now: datetime) -> None:
    secret = form.cleaned_data["secret"]
    if secret:
        if hook.sealed:
            hook.old_sealed, hook.old_until = hook.sealed, now + OVERLAP
        hook.sealed = signing.seal(secret)
    hook.save()


def _page(
    request: HttpRequest, own: Agent, trigger: Trigger, form: HookForm | None, live: str = "", test: str = ""
) -> HttpResponse:
    wanted = request.GET.get("show", "")
    rows = Delivery.objects.filter(trigger=trigger).select_related("run").defer("body", "headers").order_by("-pk")
    if wanted == "test":
        rows = rows.filter(test=True)
    elif wanted in OUTCOMES and wanted:
        rows = rows.filter(accepted=wanted == "accepted")
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = list(rows[: PAGE + 1])
    context: dict[str, Any] = {
        "agent": own,
        "tab": "agent_triggers",
        "trigger": trigger,
        "name": trigger.address.split(":", 2)[-1],
        "form": form,
        "live": live,
        "test": test,
        "deliveries": found[:PAGE],
        "next": found[PAGE - 1].pk if len(found) > PAGE else None,
        "show": wanted if wanted in OUTCOMES else "",
        "outcomes": OUTCOMES,
        "token": timezone.now().strftime("%Y%m%d%H%M%S%f"),
    }
    return render(request, "agents/hook.html", context, status=422 if form and form.errors else 200)


@login_required
@require_safe
def delivery(request: HttpRequest, slug: str, pk: int, delivery: int) -> HttpResponse:
    own, trigger = own_trigger(request, slug, pk)
    found = get_object_or_404(Delivery.objects.select_related("run"), trigger=trigger, pk=delivery)
    context = {"agent": own, "tab": "agent_triggers", "trigger": trigger, "delivery": found}
    context |= {"text": found.text[:SHOWN], "cut": len(found.text) > SHOWN, "name": trigger.address.split(":", 2)[-1]}
    return render(request, "agents/delivery.html", context | {"token": timezone.now().strftime("%Y%m%d%H%M%S%f")})


@login_required
@require_POST
def delivery_replay(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The chosen deliveries once more, each as a run of its own; pressing twice is still once."""
    own, trigger = own_trigger(request, slug, pk)
    chosen = [int(one) for one in request.POST.getlist("delivery")[:PAGE] if one.isascii() and one.isdigit()][:PAGE]
    rows = Delivery.objects.filter(trigger=trigger, pk__in=[one for one in chosen if one < 2**63])
    runs = [receiving.replay(row, request.POST.get("token", "")[:40], timezone.now()) for row in rows.order_by("pk")]
    started = sum(run is not None and not run.is_final for run in runs)
    if not runs:
        messages.error(request, "Choose the deliveries to send through again.")
    else:
        held = len(runs) - started
        messages.success(request, f"Started {started} of {len(runs)}." + (f" {held} were held back." if held else ""))
    return redirect("hook_settings", own.slug, trigger.pk)
