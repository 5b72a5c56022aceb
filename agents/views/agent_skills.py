"""The ordered list of an agent's skills: what each costs in every context, its trigger, its place."""

import json
from dataclasses import dataclass
from typing import cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from agents import arming, llm
from agents.models import AdoptedSkill, Agent, Trigger
from marketplace.models import ArchivedEvent, Author, Skill, User
from marketplace.protocol import kinds, nip19, templates
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
    tokens: int

    @property
    def naddr(self) -> str:
        return nip19.encode_naddr(self.address)

    @property
    def update(self) -> bool:
        """Whether a version waits that its owner has not seen."""
        return bool(self.skill and self.row.pinned_event and self.skill.event_id != self.row.pinned_event)


@login_required
@require_GET
def agent_skills(request: HttpRequest, slug: str) -> HttpResponse:
    agent = _own(request, slug)
    lines = _lines(agent)
    return render(
        request,
        "agents/agent_skills.html",
        {"agent": agent, "lines": lines, "tokens": sum(line.tokens for line in lines)},
    )


@login_required
@require_POST
def skill_pin(request: HttpRequest, slug: str) -> HttpResponse:
    """Accept the version the owner looked at; it runs from now on, with the rights it had."""
    agent = _own(request, slug)
    row = get_object_or_404(AdoptedSkill, agent=agent, address=request.POST.get("address", ""))
    seen = request.POST.get("event", "")
    if seen and arming.current_versions({row.address}).get(row.address) == seen:
        arming.pin(agent, row.address, seen, timezone.now())
    return redirect("agent_skills", agent.slug)


def _own(request: HttpRequest, slug: str) -> Agent:
    agents = Agent.objects.of(cast(User, request.user)).select_related("identity")
    return get_object_or_404(agents, slug=slug)


def _lines(agent: Agent) -> list[Line]:
    rows = list(AdoptedSkill.objects.filter(agent=agent).order_by("position", "pk"))
    addresses = {row.pk: address for row in rows if (address := Address.parse(row.address))}
    authors = {address.pubkey for address in addresses.values()}
    names = dict(Author.objects.filter(pubkey__in=authors).values_list("pubkey", "name"))
    skills = {skill.address: skill for skill in Skill.objects.filter(pubkey__in=authors)}
    triggers = {trigger.address: trigger for trigger in Trigger.objects.filter(agent=agent)}
    specs = _specs(agent, [row.pinned_event for row in rows])
    lines = []
    for row in rows:
        if row.pk not in addresses:
            continue
        address, spec = addresses[row.pk], specs.get(row.pinned_event)
        lines.append(
            Line(
                row,
                address,
                names.get(address.pubkey) or nip19.short_npub(address.pubkey),
                spec,
                skills.get(row.address),
                triggers.get(row.address),
                _carried(spec) if spec and not row.on_demand else 0,
            )
        )
    return lines


def _specs(agent: Agent, ids: list[str]) -> dict[str, SkillSpec]:
    """The pinned versions in one query; the rare private one is opened by itself."""
    found = {}
    for row in ArchivedEvent.objects.filter(pk__in=ids):
        if row.kind == kinds.SKILL:
            found[row.pk] = read_skill(Event.from_dict(json.loads(row.raw)))
        elif own := arming.pinned_spec(agent, row.pk):
            found[row.pk] = own
    return found


def _carried(spec: SkillSpec) -> int:
    """Tokens it adds to every context that composes: its system sections (engine rule), none for its own modes."""
    if spec.rule in {"full", "override"} or spec.action == "template":
        return 0
    texts = [section.text for section in templates.sections(spec.template) if section.role == "system"]
    return sum(map(llm.count, texts))
