"""What an owner decides about an agent: its character, models, money, keys at providers, rights and triggers."""

from decimal import Decimal

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from agents.forms import AgentForm, ProviderKeyForm
from agents.models import Agent, Budget, Change, ProviderKey
from agents.views.current import own_agent
from marketplace import signing

PERIODS = ("day", "month")


@login_required
def agent_settings(request: HttpRequest, slug: str) -> HttpResponse:
    own = own_agent(request, slug)
    form = AgentForm(request.POST or None, instance=own, initial=_limits(own))
    if request.method == "POST" and form.is_valid():
        _save(own, form)
        messages.success(request, f"The settings of {own.name} are saved; they hold from the next run on.")
        return redirect("agent_settings", own.slug)
    return _page(request, own, form, ProviderKeyForm())


def _page(request: HttpRequest, own: Agent, form: AgentForm, key_form: ProviderKeyForm) -> HttpResponse:
    stored = Agent.objects.get(pk=own.pk)  # a form that failed has written what was typed into its instance
    context = {"agent": stored, "tab": "agent_settings", "form": form, "key_form": key_form}
    context["keys"] = own.provider_keys.order_by("provider")
    return render(request, "agents/agent_settings.html", context, status=422 if form.errors or key_form.errors else 200)


def _limits(own: Agent) -> dict[str, Decimal]:
    own_limits = Budget.objects.filter(agent=own, scope=Budget.Scope.AGENT)
    return dict(own_limits.values_list("period", "limit"))


@transaction.atomic
def _save(own: Agent, form: AgentForm) -> None:
    now, before, limits = timezone.now(), Agent.objects.get(pk=own.pk), Budget.objects.in_words(own)
    if {"admin_pubkey", "talkers"} & set(form.changed_data):
        own.dm_since = int(now.timestamp())  # whom it obeys now may have written to it long before
    own.save(update_fields=[*form.Meta.fields, "limits", "dm_since"])
    for period in PERIODS:
        Budget.objects.put(own, Budget.Scope.AGENT, "", period, form.cleaned_data[period])
    Change.record_fields(before, own, [*form.Meta.fields, "limits"], now)
    Change.record(own, "budgets", "", limits, Budget.objects.in_words(own), now)


@sensitive_post_parameters("key")
@sensitive_variables("form")
@login_required
@require_POST
def agent_key(request: HttpRequest, slug: str) -> HttpResponse:
    """A key for a provider: sealed, and never read back into a page."""
    own = own_agent(request, slug)
    form = ProviderKeyForm(request.POST)
    if not form.is_valid():
        return _page(request, own, AgentForm(instance=own, initial=_limits(own)), form)
    given = form.cleaned_data
    before = ProviderKey.objects.filter(agent=own, provider=given["provider"]).first()
    key, _ = ProviderKey.objects.update_or_create(
        agent=own,
        provider=given["provider"],
        defaults={"base_url": given["base_url"], "sealed": signing.seal(given["key"]) if given["key"] else ""},
    )
    # A key that takes the place of another is a change too, though nothing of either is told.
    after = {**key.in_words(), "changed": timezone.now().isoformat(timespec="seconds")}
    Change.record(own, "provider key", key.provider, before and before.in_words(), after, timezone.now())
    messages.success(request, f"The key for {given['provider']} is sealed and used from the next call on.")
    return redirect("agent_settings", own.slug)


@login_required
@require_POST
def agent_key_remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    own = own_agent(request, slug)
    key = get_object_or_404(ProviderKey, agent=own, pk=pk)
    key.delete()
    Change.record(own, "provider key", key.provider, key.in_words(), None, timezone.now())
    messages.success(request, f"The key for {key.provider} is deleted.")
    return redirect("agent_settings", own.slug)
