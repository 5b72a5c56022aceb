"""What an agent remembers: its owner reads, searches, adds to it, corrects it and has it forgotten."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents.forms.memory import MemoryForm
from agents.models import Agent, Memory
from agents.models.memory import MOST
from agents.views.current import own_agent
from marketplace.protocol.storable import storable

PAGE = 50


@login_required
def agent_memory(request: HttpRequest, slug: str) -> HttpResponse:
    """GET: the list, by `q`. POST: one more."""
    own = own_agent(request, slug)
    form = MemoryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        full = Memory.full(own)
        if not full:
            text = form.cleaned_data["text"]
            _, made = Memory.objects.get_or_create(agent=own, text=text, defaults={"created_at": timezone.now()})
            messages.success(request, "It remembers that." if made else "It remembered that already.")
            return redirect("agent_memory", own.slug)
        form.add_error("text", full)
    return _page(request, own, form)


@login_required
@require_POST
def memory_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Another text for one memory, or none: it is forgotten."""
    own = own_agent(request, slug)
    memory = get_object_or_404(Memory, agent=own, pk=pk)
    if request.POST.get("do") == "forget":
        memory.delete()
        messages.success(request, "Forgotten.")
        return redirect("agent_memory", own.slug)
    form = MemoryForm(request.POST)
    if not form.is_valid():
        return _page(request, own, MemoryForm(), (memory.pk, form))
    memory.text = form.cleaned_data["text"]
    memory.save(update_fields=["text", "updated_at"])
    messages.success(request, "Saved.")
    return redirect("agent_memory", own.slug)


def _page(
    request: HttpRequest, own: Agent, form: MemoryForm, edited: tuple[int, MemoryForm] | None = None
) -> HttpResponse:
    query = storable(request.GET.get("q", "")[:200].replace("\0", "")).strip()
    before = request.GET.get("before", "")
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    found, more = Memory.objects.filter(agent=own).search(query).page(place, PAGE)
    if edited and edited[0] not in {memory.pk for memory in found}:
        found = [Memory.objects.get(pk=edited[0]), *found]  # what is being corrected stays in sight
    context: dict[str, Any] = {
        "agent": own,
        "tab": "agent_memory",
        "form": form,
        "rows": [(memory, edited[1] if edited and edited[0] == memory.pk else None) for memory in found],
        "query": query,
        "count": Memory.objects.filter(agent=own).count(),
        "most": MOST,
        "older": urlencode({"q": query, "before": more}) if more else "",
        "later": place is not None,
    }
    wrong = form.errors or (edited and edited[1].errors)
    return render(request, "agents/agent_memory.html", context, status=422 if wrong else 200)
