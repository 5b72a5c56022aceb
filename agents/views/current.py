"""Whom the adopt buttons act for: the agent chosen in the header, and what the header needs to choose it."""

from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from agents.models import Agent
from marketplace.models import User

KEY = "agent"  # of the session
MOST = 200  # agents in the switcher


def own_agents(request: HttpRequest) -> list[Agent]:
    """The user's agents, read once for each request."""
    kept = getattr(request, "_own_agents", None)
    if kept is None:
        kept = list(Agent.objects.of(cast(User, request.user)).select_related("identity")[:MOST])
        request._own_agents = kept  # type: ignore[attr-defined]
    return cast(list[Agent], kept)


def own_agent(request: HttpRequest, slug: str) -> Agent:
    """Fetch and authorise in one: a stranger's agent is not there."""
    agents = Agent.objects.of(cast(User, request.user)).select_related("identity")
    # NUL is no character of a slug, and PostgreSQL refuses to compare with it.
    return get_object_or_404(agents, slug=slug.replace("\x00", ""))


def listed_agent(request: HttpRequest, slug: str) -> Agent:
    """The same, from what the header has read anyway."""
    return next((agent for agent in own_agents(request) if agent.slug == slug), None) or own_agent(request, slug)


def current_agent(request: HttpRequest) -> Agent | None:
    """The agent chosen in the header, else the owner's first; None where there is none."""
    if not request.user.is_authenticated:
        return None
    agents = own_agents(request)
    chosen = request.session.get(KEY)
    return next((agent for agent in agents if agent.pk == chosen), agents[0] if agents else None)


def agents_nav(request: HttpRequest) -> dict[str, Any]:
    """Context processor: the switcher of signed-in users; at most one query."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {"agents_nav": {"agents": own_agents(request), "current": current_agent(request)}}


@login_required
@require_POST
def agent_switch(request: HttpRequest) -> HttpResponse:
    agent = own_agent(request, request.POST.get("agent", ""))
    request.session[KEY] = agent.pk
    there = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(there, {request.get_host()}, require_https=request.is_secure())
    if getattr(request, "htmx", False):
        # What the page says of "the agent" changes in several places: it is loaded anew.
        return HttpResponse(headers={"HX-Refresh": "true"})
    return redirect(there if safe else "agents")
