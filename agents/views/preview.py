"""The editor's live preview: what a model would be sent, and each field's problems, while the author types."""

from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from agents.preview import own_names, sample_event
from agents.preview import preview as shown
from agents.tools import TOOLS
from agents.views.current import current_agent
from marketplace.forms import SkillForm, known_version, typed_fields
from marketplace.models import User
from marketplace.protocol import kinds
from marketplace.protocol.events import Address
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.triggers.cron import Cron, next_times


@login_required
@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """A fragment while typing, a page of its own for the button that works without JavaScript."""
    user = cast(User, request.user)
    fields, taken_out = typed_fields(request.POST)
    version = known_version(request.POST.get("base_event", "")[:64], user)
    form = SkillForm(fields, user, version[1] if version else None)
    form.is_valid()
    agent, spec = current_agent(request), form.spec
    event = sample_event(spec, agent) if _triggered(request, spec) else None
    message = "" if event else request.POST.get("sample_message", "Hello")
    address = _address(form)
    own = {name: f"[{name}]" for name in own_names(agent, spec, address)}
    result = shown(spec, agent, message, event, own, address=address)
    context: dict[str, Any] = {
        "form": form,
        "fields": [form[name] for name in form.fields],
        "spec": spec,
        "agent": agent,
        "result": result,
        "warnings": [*(problem.message for problem in form.warnings), *taken_out, *result["warnings"]],
        "own": own,
        "problems": [(form[name].label if name in form.fields else "", said) for name, said in _said(form)],
        "times": _times(spec),
        "partial": bool(getattr(request, "htmx", False)),
    }
    for name in form.fields:
        # An empty field is not shouted at while its author is still on the way to it; the list above names it.
        if not fields.get(name, "").strip() and name in form.errors:
            del form.errors[name]
    name = "agents/_preview.html" if context["partial"] else "agents/preview.html"
    response = render(request, name, context)
    response["Vary"] = "HX-Request, Cookie"
    return response


@login_required
@require_GET
def tool_chips(request: HttpRequest) -> HttpResponse:
    """Names of the tools for the editor's field, with what the current agent grants."""
    agent = current_agent(request)
    granted = set(agent.grants) if agent else set()
    tools = [(tool, tool.name in granted) for tool in TOOLS.values()]
    return render(request, "agents/_preview_tools.html", {"tools": tools})


def _address(form: SkillForm) -> str:
    """Where it will stand once it is published: an own skill that the agent adopted is previewed in its place."""
    identity = form.cleaned_data.get("identity")
    kind = kinds.SKILL if form.spec.public else kinds.PRIVATE_SKILL
    return str(Address(kind, identity.pubkey, form.spec.d)) if identity and form.spec.d else ""


def _triggered(request: HttpRequest, spec: SkillSpec) -> bool:
    return spec.action == "template" or request.POST.get("sample_run") == "event"


def _times(spec: SkillSpec) -> list[Any]:
    data = spec.trigger.data if spec.trigger else None
    return next_times(data, timezone.now(), 5) if isinstance(data, Cron) else []


def _said(form: SkillForm) -> list[tuple[str, str]]:
    return [(name, str(message)) for name, messages in form.errors.items() for message in messages]
