"""Models of one agent: what each costs and holds, who says so, and the owner's own word on it."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from agents import llm
from agents.engine import fallback
from agents.engine.costs import Assumed, Price
from agents.forms.models import OwnModelForm
from agents.models import Agent, OwnModel
from agents.views.current import listed_agent

MOST_HISTORY = 50


@dataclass(frozen=True, slots=True)
class Row:
    """One model as a call of it would be priced now."""

    name: str
    sizes: llm.Sizes
    price: Price | None
    assumed: Assumed | None
    own: OwnModel | None

    @property
    def per_million(self) -> Mapping[str, str]:
        return self.price.per_million() if self.price else {}

    @property
    def free(self) -> bool:
        return self.price is not None and not self.price.input and not self.price.output


@login_required
def agent_models(request: HttpRequest, slug: str) -> HttpResponse:
    own, now = listed_agent(request, slug), timezone.now()
    if request.method == "POST" and "remove" in request.POST:
        model = request.POST["remove"].replace("\x00", "")[:200]
        if OwnModel.objects.end(own, model, now):
            messages.success(request, f"{model} is priced by the table again. What was said of it stays on record.")
        return redirect("agent_models", own.slug)
    form = OwnModelForm(request.POST or None, initial=_initial(own, request.GET.get("model", "")))
    if request.method == "POST" and form.is_valid():
        model = form.cleaned_data["model"]
        OwnModel.objects.put(own, model, form.values(), now)
        messages.success(request, f"{model} is saved; it holds from the next run on. Past costs stay as they were.")
        return redirect("agent_models", own.slug)
    context = {
        "agent": own,
        "tab": "agent_models",
        "form": form,
        "rows": _rows(own),
        "history": OwnModel.objects.filter(agent=own).exclude(until=None).order_by("-until", "-pk")[:MOST_HISTORY],
    }
    return render(request, "agents/agent_models.html", context, status=422 if form.errors else 200)


def _rows(own: Agent) -> list[Row]:
    """The models that this agent may ask: its chain, what its aliases stand for, and those its owner spoke of."""
    terms = llm.Terms.of(own)
    names = [*fallback.candidates(own.llm, own.aliases, settings.DEFAULT_LLM)]
    for chain in own.aliases.values():
        names += fallback.candidates(chain, own.aliases, settings.DEFAULT_LLM)
    addresses = dict(own.provider_keys.values_list("provider", "base_url"))
    rows = []
    for name in dict.fromkeys([*names, *terms.own]):
        provider = name.partition("/")[0]
        endpoint = llm.Endpoint(name, addresses.get(provider, settings.LLM_BASE_URL if provider == "openai" else ""))
        rows.append(Row(name, terms.sizes(name), terms.price(endpoint), terms.assumed(name), terms.own.get(name)))
    return rows


def _initial(own: Agent, model: str) -> dict[str, object]:
    """What holds for the model that was chosen, to be changed."""
    found = OwnModel.objects.current(own).filter(model=model.replace("\x00", "")).first() if model else None
    return OwnModelForm.initial_of(found) if found else {"model": model[:200]}
