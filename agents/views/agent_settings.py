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
from agents.models import Agent, Budget, ProviderKey
from agents.tools import TOOLS
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
    if {"admin_pubkey", "talkers"} & set(form.changed_data):
        own.dm_since = int(timezone.now().timestamp())  # whom it obeys now may have written to it long before
    own.save(update_fields=[*form.Meta.fields, "limits", "dm_since"])
    for period in PERIODS:
        Budget.objects.put(own, Budget.Scope.AGENT, "", period, form.cleaned_data[period])


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
    ProviderKey.objects.update_or_create(
        agent=own,
        provider=given["provider"],
        defaults={"base_url": given["base_url"], "sealed": signing.seal(given["key"]) if given["key"] else ""},
    )
    messages.success(request, f"The key for {given['provider']} is sealed and used from the next call on.")
    return redirect("agent_settings", own.slug)


@login_required
@require_POST
def agent_key_remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    own = own_agent(request, slug)
    key = get_object_or_404(ProviderKey, agent=own, pk=pk)
    key.delete()
    messages.success(request, f"The key for {key.provider} is deleted.")
    return redirect("agent_settings", own.slug)


@login_required
def agent_grants(request: HttpRequest, slug: str) -> HttpResponse:
    own = own_agent(request, slug)
    if request.method == "POST":
        own.grants = sorted(set(request.POST.getlist("grant")) & TOOLS.keys())
        own.save(update_fields=["grants"])
        messages.success(request, f"{own.name} may use {len(own.grants)} tools. A skill can ask for fewer, never more.")
        return redirect("agent_grants", own.slug)
    groups = {risk: [tool for tool in TOOLS.values() if tool.risk == risk] for risk in ("reads", "writes", "spends")}
    context = {"agent": own, "tab": "agent_grants", "groups": groups, "granted": set(own.grants)}
    return render(request, "agents/agent_grants.html", context)
