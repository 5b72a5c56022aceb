"""Adopt for an agent: what is asked and what will fire stands before the click, what was seen is pinned after it."""

from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from agents import arming
from agents.engine import disclosure
from agents.models import AdoptedSkill, Agent, Change, Trigger
from agents.sources import sources_for
from agents.sources.adopted import entry_of
from agents.sources.carrying import Carried, catalogue
from agents.sources.disclosing import TOOL, description_length
from agents.tools import TOOLS, Tool
from agents.views.agent_skills import cost_of, grant_loading
from agents.views.current import current_agent
from marketplace import publish, signing
from marketplace.models import Identity, Publication, Skill, User
from marketplace.protocol import kinds, nip19
from marketplace.protocol.events import Address
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.templates import read_action

REFUSALS = (publish.PublishError, signing.NotHeld, signing.VaultError)


@dataclass
class Offer:
    """One skill before one agent: what it asks for, and what adopting it would do."""

    skill: Skill
    agent: Agent | None
    spec: SkillSpec | None = None
    row: AdoptedSkill | None = None
    trigger: Trigger | None = None

    @property
    def address(self) -> Address:
        return Address(self.skill.kind, self.skill.pubkey, self.skill.d)

    @property
    def naddr(self) -> str:
        return nip19.encode_naddr(self.address)

    @property
    def tools(self) -> list[tuple[Tool, bool]]:
        """The tools it names (all, where it does not say), and whether the agent grants them already."""
        granted = set(self.agent.grants) if self.agent else set()
        return [(TOOLS[name], name in granted) for name in sorted(self._asked() & TOOLS.keys())]

    def _asked(self) -> set[str]:
        if self.spec is None:
            return set()
        if self.spec.action == "template":
            return set(arming.writing_tools(self.agent, self.spec)) if self.agent else set()
        if self.spec.tools is True:  # what is granted already, nothing more
            return set(self.agent.grants) if self.agent else set()
        return set(self.spec.tools or ())

    @property
    def asks_all(self) -> bool:
        return self.spec is not None and self.spec.tools is True and self.spec.action != "template"

    @property
    def unknown_tools(self) -> list[str]:
        return sorted(self._asked() - TOOLS.keys())

    @property
    def writes(self) -> bool:
        return any(tool.risk != "reads" for tool, _ in self.tools)

    @property
    def action(self) -> str:
        """What a template action does, in a word."""
        if self.spec is None or self.spec.action != "template":
            return ""
        try:
            return read_action(self.spec.template).kind
        except ValueError:
            return ""

    @property
    def cost(self) -> Carried:
        """What carrying it costs in every request, always on or on demand."""
        if self.agent is None or self.spec is None:
            return Carried()
        return cost_of(self.agent, self.spec, self._name)

    @property
    def frame(self) -> int:
        """Tokens that come once with the list of skills on demand, where this would be the first on it."""
        if self.agent is None or self.spec is None or not self.cost.line:
            return 0
        listed, entry = sources_for(self.agent).list_skills().entries, entry_of(self._name, self.spec)
        rules, length = self.agent.usage_rules, description_length(self.agent)
        now = catalogue(listed, rules, length) if TOOL in self.agent.grants else 0
        return max(0, catalogue([*listed, entry], rules, length) - now - self.cost.line - 1)

    @property
    def _name(self) -> str:
        return disclosure.names([(self.skill.d, self.skill.pubkey)])[0]

    @property
    def relays(self) -> list[str]:
        return publish.write_relays(self.agent.identity) if self.agent else []


@require_GET
def adopt_button(request: HttpRequest) -> HttpResponse:
    """The fragment on a skill's page; the same as a page of its own stands at /adopt/."""
    address = request.GET.get("address", "")
    if not getattr(request, "htmx", False):
        return redirect(f"{reverse('adopt')}?{urlencode({'address': address})}")
    if not request.user.is_authenticated:
        there = getattr(getattr(request, "htmx", None), "current_url_abs_path", None)
        return render(request, "agents/_adopt.html", {"offer": None, "there": there or "/"})
    return render(request, "agents/_adopt.html", {"offer": _offer(request, address)})


@login_required
def adopt(request: HttpRequest) -> HttpResponse:
    """GET: the page that asks, for lists and without JavaScript. POST: grant, publish, pin."""
    if request.method != "POST":
        return render(request, "agents/adopt.html", {"offer": _offer(request, request.GET.get("address", ""))})
    offer = _offer(request, request.POST.get("address", ""))
    if offer.agent is None:
        return redirect("agent_new")
    seen = request.POST.get("event", "") or offer.skill.event_id
    if seen != offer.skill.event_id:
        messages.warning(request, "A newer version came since you looked. It is shown now; nothing was adopted.")
        return _back(request, offer)
    _adopt(request, offer, offer.agent, seen)
    return _back(request, offer)


def _adopt(request: HttpRequest, offer: Offer, agent: Agent, seen: str) -> None:
    """Grants and pin first, so that arming finds them when the list comes back from the relays."""
    address, before = str(offer.address), list(agent.grants)
    asked = {tool.name for tool, _ in offer.tools}
    with transaction.atomic():
        agent.grants = sorted({*before, *(name for name in request.POST.getlist("grant") if name in asked)})
        agent.save(update_fields=["grants"])
        on_demand = request.POST.get("carry") == "demand"
        if on_demand:
            grant_loading(agent)
        last = AdoptedSkill.objects.filter(agent=agent).count()
        defaults = {"pinned_event": seen, "position": last, "on_demand": on_demand}
        row, made = AdoptedSkill.objects.get_or_create(agent=agent, address=address, defaults=defaults)
    now = timezone.now()
    try:
        publication = publish.adopt(agent.identity, offer.address, int(now.timestamp()))
    except REFUSALS as error:
        messages.error(request, str(error))
        publication, failed = None, True
    else:
        failed = publication is not None and not told(request, publication, f"{agent.name} adopted {offer.skill}.")
    if failed:
        if made:
            row.delete()
        Agent.objects.filter(pk=agent.pk).update(grants=before)
        return
    if publication is None:
        messages.info(request, f"{agent.name} has adopted {offer.skill} already.")
    arming.pin(agent, address, seen, now)
    was = None if made else {"event": row.pinned_event}
    Change.record(agent, "adoption", offer.address.d, was, {"event": seen}, now)
    Change.record(agent, "grants", "", before, agent.grants, now)


@login_required
@require_POST
def unadopt(request: HttpRequest) -> HttpResponse:
    agent, address = _posted(request)
    try:
        publication = publish.unadopt(agent.identity, address, int(timezone.now().timestamp()))
    except REFUSALS as error:
        messages.error(request, str(error))
    else:
        if publication is None:
            messages.info(request, f"{address.d} is not on the list of {agent.name}.")
        else:
            words = f"{agent.name} no longer adopts {address.d}; its trigger is disarmed."
            if told(request, publication, words):
                Change.record(agent, "adoption", address.d, {"address": str(address)}, None, timezone.now())
    return _back(request, _offer(request, str(address), agent))


@login_required
@require_POST
def reorder(request: HttpRequest) -> HttpResponse:
    """The whole order (`address` several times), or one step of one skill (`move` up or down)."""
    agent = _own_agent(request)
    wanted = [Address.parse(text) for text in request.POST.getlist("address")]
    addresses = [address for address in wanted if address is not None]
    if "move" in request.POST:
        addresses = _moved(agent, addresses, request.POST["move"])
    try:
        publication = publish.reorder(agent.identity, addresses, int(timezone.now().timestamp()))
    except REFUSALS as error:
        messages.error(request, str(error))
    else:
        if publication is not None:
            told(request, publication, "The new order is published.")
    return redirect("agent_skills", agent.slug)


def told(request: HttpRequest, publication: Publication, words: str) -> bool:
    """Say what became of a publication, each refusing relay by name; whether one took it."""
    answers = list(publication.answers.all())
    took = [answer.url for answer in answers if answer.ok]
    if took:
        messages.success(request, f"{words} Taken by {len(took)} of {len(publication.relays)} relays.")
    else:
        messages.error(request, "No relay took it, so nothing changed. You can send the same event again.")
    for answer in answers:
        if not answer.ok:
            messages.warning(request, f"{answer.url} refused: {answer.message or 'without a word'}")
    return bool(took)


def _offer(request: HttpRequest, text: str, agent: Agent | None = None) -> Offer:
    """The skill as its own agent may see it: a public one that is listed, or a private one of the agent's key."""
    address = Address.parse(text)
    if address is None or address.kind not in kinds.SKILLS:
        raise Http404("No such skill.")
    agent = agent or _chosen(request)
    skill = get_object_or_404(Skill, kind=address.kind, pubkey=address.pubkey, d=address.d)
    own = Identity.objects.filter(user=cast(User, request.user), pubkey=skill.pubkey).exists()
    if not own and (skill.kind != kinds.SKILL or not skill.listed):
        raise Http404("No such skill.")
    offer = Offer(skill, agent)
    if agent is not None:
        offer.row = AdoptedSkill.objects.filter(agent=agent, address=text).first()
        offer.trigger = Trigger.objects.filter(agent=agent, address=text).first()
        offer.spec = arming.pinned_spec(agent, skill.event_id)
    return offer


def _chosen(request: HttpRequest) -> Agent | None:
    """The agent named in the form, which must be the user's own, else the one in the header."""
    return _own_agent(request) if request.POST.get("agent") else current_agent(request)


def _own_agent(request: HttpRequest) -> Agent:
    agents = Agent.objects.of(cast(User, request.user)).select_related("identity")
    return get_object_or_404(agents, slug=request.POST.get("agent", ""))


def _posted(request: HttpRequest) -> tuple[Agent, Address]:
    agent, address = _own_agent(request), Address.parse(request.POST.get("address", ""))
    if address is None:
        raise Http404("No such skill.")
    return agent, address


def _moved(agent: Agent, addresses: list[Address], move: str) -> list[Address]:
    """The agent's list as shown, with one skill a step up or down."""
    rows = AdoptedSkill.objects.filter(agent=agent).order_by("position", "pk").values_list("address", flat=True)
    order = [address for address in map(Address.parse, rows) if address is not None]
    if len(addresses) == 1 and addresses[0] in order:
        at = order.index(addresses[0])
        to = min(max(at + (-1 if move == "up" else 1), 0), len(order) - 1)
        order.insert(to, order.pop(at))
    return order


def _back(request: HttpRequest, offer: Offer) -> HttpResponse:
    """The button again with the count beside it for htmx; else where the owner came from."""
    if getattr(request, "htmx", False):
        fresh = _offer(request, str(offer.address), offer.agent)
        context: dict[str, Any] = {"offer": fresh, "after": True}
        return render(request, "agents/_adopt.html", context)
    there = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(there, {request.get_host()}, require_https=request.is_secure()):
        return redirect(there)
    return redirect("skill", offer.naddr)
