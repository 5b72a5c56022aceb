"""A run by hand: a form for the template's own variables, and one run however often it is sent."""

from typing import cast

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from agents import arming, dispatch, llm
from agents.forms import RunStartForm
from agents.models import AdoptedSkill, Agent
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
    own = Identity.objects.filter(user=user, pubkey=address.pubkey).exists()
    if skill is None or (not own and (skill.kind != kinds.SKILL or not skill.listed)):
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


@login_required
def run_start(request: HttpRequest) -> HttpResponse:
    user, agents = cast(User, request.user), own_agents(request)
    if not agents:
        return redirect("agent_new")
    given = request.POST if request.method == "POST" else request.GET
    slug = given.get("agent", "")
    agent = next((one for one in agents if one.slug == slug), None) or current_agent(request) or agents[0]
    address = read_address(given.get("skill", "")[:400])
    event_id = version_of(agent, address, user) if address else ""
    spec = arming.pinned_spec(agent, event_id) if event_id else None
    refusal = refusal_of(spec, bool(event_id))
    form = RunStartForm(request.POST or None, agents=agents, spec=spec, initial={"agent": agent.slug})
    if request.method == "POST" and not refusal and form.is_valid():
        run = dispatch.manual(
            agent,
            str(address) if address else "",
            event_id,
            form.cleaned_data["message"],
            form.arguments,
            form.overrides,
            timezone.now(),
            form.cleaned_data["token"],
        )
        return redirect("run", run.pk)
    model = (spec.llm if spec and spec.llm != "default" else "") or agent.llm or llm_default()
    context = {
        "form": form,
        "agent": agent,
        "spec": spec,
        "address": address,
        "naddr": nip19.encode_naddr(address) if address and address.kind == kinds.SKILL else "",
        "refusal": refusal,
        "model": model,
        "offline": llm.is_offline(model),
    }
    return render(request, "agents/run_start.html", context, status=422 if form.errors else 200)


def refusal_of(spec: SkillSpec | None, wanted: bool) -> str:
    """Why this skill cannot be run by hand, in words."""
    if wanted and (spec is None or not spec.readable):
        return "This version of the skill cannot be read here."
    if spec and not spec.runnable:
        return "This skill has no template to run."
    if spec and spec.action == "template":
        return "This skill fills in a text from an event. It runs when its trigger fires, and needs no model."
    return ""
