"""What a trigger would send when it fires, for a sample that its owner can change; nothing fires."""

import json
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from agents import arming
from agents.models import Agent, Trigger
from agents.preview import preview, sample_event
from agents.templatetags.running import pretty
from agents.views.current import own_agent
from marketplace.protocol.skills import SkillSpec

LONGEST = 200_000  # characters of a sample
LABELS = {"nostr-subscription": "Event", "cron": "Slot of the schedule", "webhook": "What the webhook is sent"}


@login_required
@require_http_methods(["GET", "POST"])
def trigger_preview(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The exact request for a sample occasion."""
    agent = own_agent(request, slug)
    trigger = get_object_or_404(Trigger, agent=agent, pk=pk)
    spec = arming.pinned_spec(agent, trigger.event_id)
    text = request.POST.get("event", "")[:LONGEST] if request.method == "POST" else pretty(sample(trigger, spec, agent))
    happened, error = read(text)
    context: dict[str, Any] = {
        "agent": agent,
        "back": reverse("agent_triggers", args=[agent.slug]),
        "event_label": LABELS.get(trigger.kind, "What started it"),
        "event_text": text,
        "event_error": error,
    }
    if spec is None or not spec.readable:
        context["problems"] = [("", "The version this trigger was armed from cannot be read here.")]
    elif happened is not None:
        context["result"] = preview(spec, agent, "", happened, address=trigger.address)
    return render(request, "agents/run_preview.html", context, status=422 if error else 200)


def sample(trigger: Trigger, spec: SkillSpec | None, agent: Agent) -> dict[str, Any]:
    """What such an occasion brings, in the shape in which a run gets it."""
    if trigger.kind == "nostr-subscription" and spec is not None:
        return sample_event(spec, agent)
    if trigger.kind == "cron":
        return {"schedule": trigger.next_run_at.isoformat() if trigger.next_run_at else "2026-01-01T12:00:00+00:00"}
    if trigger.kind == "chain":
        return {"agent": agent.pk, "source": "31123:…", "status": "succeeded", "output": "What the other skill said."}
    return {"text": "What somebody posts to its address."}


def read(text: str) -> tuple[dict[str, Any] | None, str]:
    """The sample, and what is wrong with it in words."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return None, f"This is not JSON: {error}"[:300]
    except (ValueError, RecursionError):
        return None, "This cannot be read: a number in it is too long, or it is nested too deeply."
    if not isinstance(value, dict):
        return None, "This is JSON, but not an object: it starts with { and ends with }."
    return value, ""
