"""Two variants side by side: the form, the comparison while it runs and after, and any two own runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.dispatch import comparing
from agents.engine import differences
from agents.forms.comparing import SIDES, CompareForm
from agents.forms.filters import Unreadable, cursor, place_of
from agents.models import Comparison, Run, Step
from agents.preview import edited, own_names, preview
from agents.runner.loading import load_skill, overrides
from agents.templatetags.running import duration, run_cost
from agents.views.run_start import Asked, asked_for
from agents.views.runs import PAGE, POLL, own_run, own_runs
from marketplace.protocol import nip19
from marketplace.protocol.events import Address

PREFILLED = ("template", "llm", "max_tokens", "temperature", "seed")
PARAMETERS = ("llm", "max_tokens", "temperature", "seed", "tools")


# --- The form ---------------------------------------------------------------------


@login_required
def compare_new(request: HttpRequest) -> HttpResponse:
    asked = asked_for(request)
    if asked is None:
        return redirect("agent_new")
    form = _form(request, asked)
    context: dict[str, Any] = {"asked": asked, "form": form, "agent": asked.agent}
    if request.method == "POST" and not asked.refusal and form.is_valid():
        if request.POST.get("show") in SIDES:
            return _shown(request, asked, form, request.POST["show"])
        found = comparing.compare(
            asked.agent,
            (asked.skill, asked.event_id),
            asked.spec,
            form.cleaned_data["message"],
            form.arguments,
            [form.variant(side) for side in SIDES],
            form.cleaned_data["writes"],
            timezone.now(),
            form.cleaned_data["token"],
        )
        return redirect("compare", found.pk)
    return render(request, "agents/compare_new.html", context, status=422 if form.errors else 200)


def _form(request: HttpRequest, asked: Asked) -> CompareForm:
    """A field for each name that the skill, or a template typed in its place, leaves open."""
    typed = [request.POST.get(f"{side}_template") for side in SIDES] if request.method == "POST" else [None]
    own = () if asked.refusal else own_names(asked.agent, asked.spec, asked.skill, [None, *typed])
    initial = _initial(request, asked)
    return CompareForm(request.POST or None, own=own, has_skill=asked.spec is not None, initial=initial)


def _initial(request: HttpRequest, asked: Asked) -> dict[str, Any]:
    """The skill's template on both sides; after a run its input, and what it and a second one had of their own."""
    template = asked.spec.template if asked.spec else ""
    initial: dict[str, Any] = {f"{side}_template": template for side in SIDES}
    for side, name in zip(SIDES, ("run", "with"), strict=True):
        if pk := request.GET.get(name, ""):
            run = own_run(request, pk)
            given = run.input.get("arguments") or {}
            initial |= {"message": run.input.get("message") or "", **{f"variable-{n}": v for n, v in given.items()}}
            initial |= {f"{side}_{n}": run.overrides[n] for n in PREFILLED if n in run.overrides}
    return initial


def _shown(request: HttpRequest, asked: Asked, form: CompareForm, side: str) -> HttpResponse:
    """What one variant would send."""
    chosen = comparing.variant_of(asked.agent, asked.spec, form.variant(side), form.cleaned_data["writes"])
    spec = edited(asked.spec, chosen.get("template")) if asked.spec else None
    said, arguments = form.cleaned_data["message"], form.arguments
    result = preview(spec, asked.agent, said, None, arguments, overrides(chosen), asked.skill)
    context = {"agent": asked.agent, "event_text": None, "result": result}
    return render(request, "agents/run_preview.html", context)


# --- What was compared ------------------------------------------------------------


@login_required
@require_safe
def comparisons(request: HttpRequest) -> HttpResponse:
    """Newest first."""
    problem, place = "", None
    try:
        place = place_of(request.GET.get("before", ""))
    except Unreadable as error:
        problem = str(error)
    found = Comparison.objects.filter(agent__owner=request.user.pk).select_related("agent", "run_a", "run_b")
    heavy = [f"{side}__{name}" for side in ("run_a", "run_b") for name in Run.HEAVY]
    rows, more = found.defer(*heavy).page(place, PAGE)
    context = {
        "comparisons": [] if problem else rows,
        "problem": problem,
        "later": place is not None,
        "older": cursor(more) if more else "",
    }
    return render(request, "agents/comparisons.html", context, status=400 if problem else 200)


# --- Side by side -----------------------------------------------------------------


@login_required
@require_safe
def compare(request: HttpRequest, pk: str) -> HttpResponse:
    found = get_object_or_404(Comparison.objects.filter(agent__owner=request.user.pk), pk=_plain(pk))
    return _side_by_side(request, found.run_a_id, found.run_b_id, found)


@login_required
@require_safe
def run_compare(request: HttpRequest, pk: str, other: str) -> HttpResponse:
    """Any two own runs, whatever they have in common."""
    return _side_by_side(request, pk, other, None)


def _plain(pk: str) -> str:
    if not pk.isalnum() or not pk.isascii():
        raise Http404("There is no such comparison.")
    return pk


@dataclass(frozen=True, slots=True)
class Row:
    """One fact of both runs."""

    label: str
    a: str
    b: str
    difference: str = ""

    @property
    def differs(self) -> bool:
        return self.a != self.b


def _side_by_side(request: HttpRequest, first: str, second: str, found: Comparison | None) -> HttpResponse:
    runs = own_runs(request).in_bulk([_plain(first), _plain(second)])
    if first not in runs or second not in runs:
        raise Http404("There is no such run.")
    a, b = runs[first], runs[second]
    texts = _so_far(run for run in runs.values() if not run.is_final)
    ended = a.is_final and b.is_final
    live = bool(getattr(request, "htmx", False))
    address = Address.parse(a.skill_address)
    context = {
        "comparison": found,
        "sides": [(letter, run, texts.get(run.pk, run.output)) for letter, run in (("A", a), ("B", b))],
        "facts": facts(a, b),
        "parameters": parameters(a, b),
        "same_input": a.input == b.input,
        "answer": differences.words(a.output, b.output) if ended else (),
        "ended": ended,
        "templates": _templates(a, b),
        "naddr": nip19.encode_naddr(address) if address and address.kind == 31123 else "",
        "poll": "" if ended else POLL,
        "here": request.path,
    }
    response = render(request, "agents/_compare_live.html" if live else "agents/compare.html", context)
    response["Vary"] = "HX-Request, Cookie"
    return response


def _so_far(running: Iterable[Run]) -> dict[str, str]:
    """What has come of the answers that are still being written."""
    ids = [run.pk for run in running]
    steps = Step.objects.filter(run__in=ids, kind=Step.Kind.MODEL).order_by("position") if ids else ()
    return {step.run_id: step.text for step in steps}


def facts(a: Run, b: Run) -> list[Row]:
    """What each took; the differences say how B stands to A."""
    known = not (a.unknown_costs or b.unknown_costs)
    took = [run.duration.total_seconds() if run.duration else None for run in (a, b)]
    return [
        Row("Model", a.model, b.model),
        Row("Tokens in", str(a.input_tokens + a.cached_tokens), str(b.input_tokens + b.cached_tokens),
            _more(a.input_tokens + a.cached_tokens, b.input_tokens + b.cached_tokens)),
        Row("Tokens out", str(a.output_tokens + a.reasoning_tokens), str(b.output_tokens + b.reasoning_tokens),
            _more(a.output_tokens + a.reasoning_tokens, b.output_tokens + b.reasoning_tokens)),
        Row("Cost", run_cost(a), run_cost(b), _more(a.cost, b.cost) if known else ""),
        Row("Took", duration(a.duration), duration(b.duration), _more(*took)),
    ]  # fmt: skip


def _more(a: float | Decimal | None, b: float | Decimal | None) -> str:
    """B against A in per cent; nothing where there is nothing to compare with."""
    if not a or b is None:
        return ""
    share = round((float(b) / float(a) - 1) * 100)
    return "the same" if share == 0 else f"{share:+d} %".replace("-", "−")


def parameters(a: Run, b: Run) -> list[Row]:
    return [Row(name, _value(a, name), _value(b, name)) for name in PARAMETERS]


def _value(run: Run, name: str) -> str:
    """Before it began a run knows only what it sets itself."""
    found = run.parameters.get(name) if isinstance(run.parameters, dict) else None
    value = found.get("value") if found else run.overrides.get(name)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "not set" if value is None else "all granted" if value is True else "none" if value is False else str(value)


def _templates(a: Run, b: Run) -> tuple[differences.Piece, ...] | None:
    """How their templates differ; nothing where both ran the version as it is."""
    texts = [run.overrides.get("template") for run in (a, b)]
    if a.skill_event == b.skill_event and texts[0] == texts[1]:
        return ()
    specs = {run.skill_event: load_skill(run.agent, run.skill_event) for run in {a, b} if run.skill_event}
    own = {event: spec.template if spec else "" for event, spec in specs.items()}
    first, second = (
        own.get(run.skill_event, "") if text is None else text for run, text in zip((a, b), texts, strict=True)
    )
    return differences.words(first, second)
