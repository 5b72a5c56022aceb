"""The ordered list of an agent's skills: what each costs in every context, its trigger, its place."""

import json
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from agents import arming
from agents.engine import disclosure
from agents.engine.context import SKILL_TOKENS
from agents.models import AdoptedSkill, Agent, Change, Trigger
from agents.sources import sources_for
from agents.sources.adopted import entry_of
from agents.sources.carrying import Carried, carried, catalogue
from agents.sources.disclosing import TOOL, description_length
from agents.views.current import own_agent
from marketplace.models import ArchivedEvent, Author, Skill
from marketplace.protocol import kinds, nip19
from marketplace.protocol.events import Address, Event
from marketplace.protocol.skills import SkillSpec, read_skill


@dataclass
class Line:
    """One adopted skill as the list shows it."""

    row: AdoptedSkill
    address: Address
    author: str
    spec: SkillSpec | None
    skill: Skill | None
    trigger: Trigger | None
    name: str  # it goes by, for a model
    cost: Carried

    @property
    def naddr(self) -> str:
        return nip19.encode_naddr(self.address)

    @property
    def update(self) -> bool:
        """Whether a version waits that its owner has not seen."""
        return bool(self.skill and self.row.pinned_event and self.skill.event_id != self.row.pinned_event)


@dataclass(frozen=True, slots=True)
class Totals:
    """Tokens per request of all adopted skills: as they are set, and as they could be."""

    now: int
    always: int
    on_demand: int
    folders: int  # skills in folders among them


@login_required
@require_GET
def agent_skills(request: HttpRequest, slug: str) -> HttpResponse:
    agent = own_agent(request, slug)
    lines = lines_of(agent)
    context = {
        "agent": agent,
        "tab": "agent_skills",
        "lines": lines,
        "totals": totals_of(agent, lines),
        "unseen": TOOL not in agent.grants and any(line.row.on_demand for line in lines),
    }
    return render(request, "agents/agent_skills.html", context)


@login_required
@require_POST
def skill_demand(request: HttpRequest, slug: str) -> HttpResponse:
    """Always on or on demand, for one skill (`address`) or for all; on demand grants the tool that loads skills."""
    agent = own_agent(request, slug)
    rows = AdoptedSkill.objects.filter(agent=agent)
    if "address" in request.POST:
        rows = rows.filter(pk=get_object_or_404(rows, address=request.POST["address"].replace("\x00", "")).pk)
    carry(agent, rows, request.POST.get("carry") == "demand")
    return redirect("agent_skills", agent.slug)


@transaction.atomic
def carry(agent: Agent, rows: QuerySet[AdoptedSkill], on_demand: bool) -> None:
    """These of the agent's skills are on demand, or always on, from its next run on."""
    rows.update(on_demand=on_demand)
    if on_demand:
        grant_loading(agent)


def grant_loading(agent: Agent) -> None:
    """Skills on demand are seen only with the tool that loads them."""
    if TOOL not in agent.grants:
        agent.grants = sorted([*agent.grants, TOOL])
        agent.save(update_fields=["grants"])


@login_required
@require_POST
def skill_pin(request: HttpRequest, slug: str) -> HttpResponse:
    """Accept the version the owner looked at; it runs from now on, with the rights it had."""
    agent = own_agent(request, slug)
    row = get_object_or_404(AdoptedSkill, agent=agent, address=request.POST.get("address", ""))
    seen = request.POST.get("event", "")
    if seen and arming.current_versions({row.address}).get(row.address) == seen:
        now = timezone.now()
        arming.pin(agent, row.address, seen, now)
        name = row.address.split(":", 2)[-1]
        Change.record(agent, "adoption", name, {"event": row.pinned_event}, {"event": seen}, now)
    return redirect("agent_skills", agent.slug)


def lines_of(agent: Agent) -> list[Line]:
    rows = list(AdoptedSkill.objects.filter(agent=agent).order_by("position", "pk"))
    addresses = {row.pk: address for row in rows if (address := Address.parse(row.address))}
    authors = {address.pubkey for address in addresses.values()}
    names = dict(Author.objects.filter(pubkey__in=authors).values_list("pubkey", "name"))
    skills = {skill.address: skill for skill in Skill.objects.filter(pubkey__in=authors)}
    triggers = {trigger.address: trigger for trigger in Trigger.objects.filter(agent=agent)}
    specs = _specs(agent, [row.pinned_event for row in rows])
    called = disclosure.names((address.d, address.pubkey) for address in addresses.values())
    lines = []
    for row, name in zip((row for row in rows if row.pk in addresses), called, strict=True):
        address, spec = addresses[row.pk], specs.get(row.pinned_event)
        author = names.get(address.pubkey) or nip19.short_npub(address.pubkey)
        skill, trigger = skills.get(row.address), triggers.get(row.address)
        cost = cost_of(agent, spec, name) if spec else Carried()
        lines.append(Line(row, address, author, spec, skill, trigger, name, cost))
    return lines


def cost_of(agent: Agent, spec: SkillSpec, name: str) -> Carried:
    most = agent.limits.get("skill_tokens") if isinstance(agent.limits, dict) else None
    most = most if type(most) is int and most > 0 else SKILL_TOKENS
    return carried(spec, name, most, description_length(agent))


def totals_of(agent: Agent, lines: list[Line]) -> Totals:
    """The list of skills on demand is counted with the words around it, and with the skills in folders."""
    adopted = {line.name: entry_of(line.name, line.spec) for line in lines if line.spec and line.cost.load}
    loading = TOOL in agent.grants
    folders = [entry for entry in sources_for(agent).list_skills().entries if entry.name not in adopted]
    now = [adopted[line.name] for line in lines if line.row.on_demand and line.name in adopted]
    length, rules = description_length(agent), agent.usage_rules
    kept = sum(line.cost.always for line in lines if not line.row.on_demand)
    listed = folders if loading else []
    return Totals(
        kept + (catalogue([*now, *folders], rules, length) if loading else 0),
        sum(line.cost.always for line in lines) + catalogue(listed, rules, length),
        catalogue([*adopted.values(), *folders], rules, length),
        sum(entry.by_model for entry in listed),
    )


def _specs(agent: Agent, ids: list[str]) -> dict[str, SkillSpec]:
    """The pinned versions in one query; the rare private one is opened by itself."""
    found = {}
    for row in ArchivedEvent.objects.filter(pk__in=ids):
        if row.kind == kinds.SKILL:
            found[row.pk] = read_skill(Event.from_dict(json.loads(row.raw)))
        elif own := arming.pinned_spec(agent, row.pk):
            found[row.pk] = own
    return found
