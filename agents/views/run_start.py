"""A run by hand: a form for the names it leaves open, its exact request, and one run however often it is sent."""

from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from agents import arming, dispatch, llm
from agents.forms import RunStartForm
from agents.models import AdoptedSkill, Agent, Conversation, Run
from agents.preview import next_turn, own_names, preview
from agents.runner.loading import overrides
from agents.views.agents import llm_default
from agents.views.current import current_agent, own_agents
from marketplace.models import Identity, Skill, User
from marketplace.protocol import kinds, nip19
from marketplace.protocol.events import Address
from marketplace.protocol.skills import SkillSpec


def version_of(agent: Agent, address: Address, user: User) -> str:
    """The event id to run: the version its owner pinned, else the current one. Raises Http404."""
    pinned = AdoptedSkill.objects.filter(agent=agent, address=str(address)).values_list("pinned_event", flat=True)
    if found := pinned.first():
        return found
    skill = Skill.objects.filter(kind=address.kind, pubkey=address.pubkey, d=address.d).first()
    if skill is None:
        raise Http404("No such skill.")
    for_all = skill.kind == kinds.SKILL and skill.listed
    if not for_all and not Identity.objects.filter(user=user, pubkey=address.pubkey).exists():
        raise Http404("No such skill.")
    return skill.event_id


def read_address(text: str) -> Address | None:
    """From `kind:key:name` or an naddr. Raises Http404 for anything else; None for nothing."""
    if not text:
        return None
    address = Address.parse(text)
    if address is None:
        try:
            decoded = nip19.decode(text)
        except ValueError:
            raise Http404("No such skill.") from None
        address = getattr(decoded, "address", None)
    if not isinstance(address, Address) or address.kind not in kinds.SKILLS or "\x00" in text:
        raise Http404("No such skill.")
    return address


@dataclass
class Asked:
    """What the form is about: whose run, of which skill in which version."""

    agents: list[Agent]
    agent: Agent
    address: Address | None
    event_id: str
    spec: SkillSpec | None

    @property
    def skill(self) -> str:
        return str(self.address) if self.address else ""

    @property
    def refusal(self) -> str:
        return refusal_of(self.spec, bool(self.event_id))

    @property
    def own(self) -> tuple[str, ...]:
        return () if self.refusal else own_names(self.agent, self.spec, self.skill)


def asked_for(request: HttpRequest) -> Asked | None:
    """Read from the address or the form; None for an owner without an agent. Raises Http404."""
    user, agents = cast(User, request.user), own_agents(request)
    if not agents:
        return None
    given = request.POST if request.method == "POST" else request.GET
    slug = given.get("agent", "")
    agent = next((one for one in agents if one.slug == slug), None) or current_agent(request) or agents[0]
    address = read_address(given.get("skill", "")[:400])
    event_id = version_of(agent, address, user) if address else ""
    return Asked(agents, agent, address, event_id, arming.pinned_spec(agent, event_id) if event_id else None)


def _form(asked: Asked, data: Any, needs_message: bool) -> RunStartForm:
    initial = {"agent": asked.agent.slug}
    return RunStartForm(data, agents=asked.agents, own=asked.own, needs_message=needs_message, initial=initial)


@login_required
def run_start(request: HttpRequest) -> HttpResponse:
    asked = asked_for(request)
    if asked is None:
        return redirect("agent_new")
    form = _form(asked, request.POST or None, needs_message=asked.spec is None)
    if request.method == "POST" and not asked.refusal and form.is_valid():
        run = dispatch.manual(
            asked.agent,
            asked.skill,
            asked.event_id,
            form.cleaned_data["message"],
            form.arguments,
            form.overrides,
            timezone.now(),
            form.cleaned_data["token"],
        )
        return redirect("run", run.pk)
    spec, address = asked.spec, asked.address
    model = (spec.llm if spec and spec.llm != "default" else "") or asked.agent.llm or llm_default()
    context = {
        "form": form,
        "agent": asked.agent,
        "spec": spec,
        "address": address,
        "naddr": nip19.encode_naddr(address) if address and address.kind == kinds.SKILL else "",
        "refusal": asked.refusal,
        "model": model,
        "offline": llm.is_offline(model),
    }
    return render(request, "agents/run_start.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def run_preview(request: HttpRequest) -> HttpResponse:
    """What that run would send: a fragment while typing, a page of its own for the buttons."""
    asked = asked_for(request)
    if asked is None:
        raise Http404("There is no agent.")
    form = _form(asked, request.POST, needs_message=False)
    partial = bool(getattr(request, "htmx", False))
    fetch_at = timezone.now() if request.POST.get("fetch") == "1" else None
    context: dict[str, Any] = {"agent": asked.agent, "fetched": fetch_at is not None, "event_text": None}
    if asked.refusal:
        context["problems"] = [("", asked.refusal)]
    elif form.is_valid():
        own = overrides(form.overrides)
        said, arguments = form.cleaned_data["message"], form.arguments
        turn = _turn(request, asked.agent)
        context["result"] = preview(asked.spec, asked.agent, said, None, arguments, own, asked.skill, fetch_at, turn)
    else:
        context["problems"] = form.problems
    name = "agents/_run_preview.html" if partial else "agents/run_preview.html"
    response = render(request, name, context, status=422 if "problems" in context and not partial else 200)
    response["Vary"] = "HX-Request, Cookie"
    return response


def _turn(request: HttpRequest, agent: Agent) -> Run | None:
    """Where the message would be said in a conversation: the turn that it would become. Raises Http404."""
    pk = request.POST.get("conversation", "")
    if not pk:
        return None
    if not (pk.isascii() and pk.isdigit() and len(pk) < 19):
        raise Http404("There is no such conversation.")
    return next_turn(get_object_or_404(Conversation.objects.select_related("agent"), agent=agent, pk=pk))


def refusal_of(spec: SkillSpec | None, wanted: bool) -> str:
    """Why this skill cannot be run by hand, in words."""
    if wanted and (spec is None or not spec.readable):
        return "This version of the skill cannot be read here."
    if spec and not spec.runnable:
        return "This skill has no template to run."
    if spec and spec.action == "template":
        return "This skill fills in a text from an event. It runs when its trigger fires, and needs no model."
    return ""
