"""What changed about an agent, by whom and in which run; a former value comes back with a click."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from agents.models import Change
from agents.views.current import own_agent

PAGE = 50


@login_required
@require_safe
def agent_changes(request: HttpRequest, slug: str) -> HttpResponse:
    own = own_agent(request, slug)
    before = request.GET.get("before", "")
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    changes, more = Change.objects.filter(agent=own).select_related("run").page(place, PAGE)
    context = {"agent": own, "tab": "agent_changes", "changes": changes, "more": more, "later": place is not None}
    return render(request, "agents/agent_changes.html", context)


@login_required
@require_POST
def change_undo(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Gives a field of the agent the value it had before this change; the history gains an entry."""
    own = own_agent(request, slug)
    change = get_object_or_404(Change.objects.select_related("agent"), agent=own, pk=pk)
    if not change.undoable:
        messages.error(request, "This change cannot be undone here.")
    else:
        with transaction.atomic():
            undone = change.undo(timezone.now())
        words = "It is as it was before." if undone else "It is so already."
        messages.success(request, words)
    return redirect("agent_changes", own.slug)
