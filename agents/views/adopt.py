"""Adopt for an agent: what is asked and what will fire stands before the click, what was seen is pinned after it."""

from datetime import datetime
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
from agents.forms.adopting import AdoptForm
from agents.models import AdoptedSkill, Agent, Budget, Change, Trigger
from agents.views.agent_skills import grant_loading
from agents.views.current import current_agent
from agents.views.offers import Offer
from marketplace import publish, signing
from marketplace.models import Identity, Publication, Skill, User
from marketplace.protocol import kinds
from marketplace.protocol.events import Address

REFUSALS = (publish.PublishError, signing.NotHeld, signing.VaultError)


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
    form = offer.form = AdoptForm(request.POST)
    if not form.is_valid():
        template = "agents/_adopt.html" if getattr(request, "htmx", False) else "agents/adopt.html"
        return render(request, template, {"offer": offer}, status=422)
    place = (offer.agent, Budget.Scope.TRIGGER, str(offer.address), Budget.Period.DAY)
    limits, before = Budget.objects.in_words(offer.agent), Budget.objects.limit(*place)
    limit = form.cleaned_data["budget"] if offer.arms else None
    if limit is not None:
        Budget.objects.put(*place, limit)  # before it can fire
    if _adopt(request, offer, offer.agent, seen):
        _decide(offer, offer.agent, form, limits, timezone.now())
    elif limit is not None:
        Budget.objects.put(*place, before)
    return _back(request, offer)


def _decide(offer: Offer, agent: Agent, form: AdoptForm, limits: dict[str, str], now: datetime) -> None:
    """What the owner said of the trigger; it was armed to ask first where it writes."""
    Change.record(agent, "budgets", "", limits, Budget.objects.in_words(agent), now)
    trigger = Trigger.objects.filter(agent=agent, address=str(offer.address)).first()
    if trigger is not None and offer.writes and form.cleaned_data["autonomy"] == Trigger.Autonomy.AUTO:
        before = trigger.in_words()
        Trigger.objects.filter(pk=trigger.pk).update(autonomy=Trigger.Autonomy.AUTO)
        trigger.refresh_from_db()
        Change.record(agent, "trigger", trigger.name, before, trigger.in_words(), now)


def _adopt(request: HttpRequest, offer: Offer, agent: Agent, seen: str) -> bool:
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
        return False
    if publication is None:
        messages.info(request, f"{agent.name} has adopted {offer.skill} already.")
    arming.pin(agent, address, seen, now)
    was = None if made else {"event": row.pinned_event}
    Change.record(agent, "adoption", offer.address.d, was, {"event": seen}, now)
    Change.record(agent, "grants", "", before, agent.grants, now)
    return True


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
        offer.form = AdoptForm(grants=[tool.name for tool, _ in offer.tools if tool.risk == "reads"])
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
