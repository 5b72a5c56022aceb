"""Whom the adopt buttons act for: the agent chosen in the header."""

from django.http import HttpRequest

from agents.models import Agent


def current_agent(request: HttpRequest) -> Agent | None:
    """The agent chosen in the header, else the owner's first; None where there is none."""
    if not request.user.is_authenticated:
        return None
    own = Agent.objects.of(request.user).select_related("identity")
    return own.filter(pk=request.session.get("agent", 0)).first() or own.first()
