"""Keeps adopted skills and triggers in step with the agent's current list and the versions its owner saw."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from agents.models import AdoptedSkill, Agent, Trigger
from agents.tools import TOOLS
from marketplace import signals, signing
from marketplace.models import Adoption, ArchivedEvent, Skill
from marketplace.protocol import chains, kinds
from marketplace.protocol.events import Address, Event
from marketplace.protocol.filters import fill_placeholders
from marketplace.protocol.skills import SkillSpec, read_skill
from marketplace.protocol.templates import read_action
from marketplace.protocol.triggers import TriggerSpec, read_trigger, subscription
from marketplace.protocol.triggers.chain import Chain
from marketplace.protocol.triggers.cron import next_times
from marketplace.protocol.triggers.subscription import Subscription

GONE = "Its author deleted this skill."
UNADOPTED = "Its skill is not adopted any more."
NO_TRIGGER = "The accepted version of its skill has no trigger, or cannot be read."
ROWS_AT_ONCE = 500  # names in one query


def connect() -> None:
    """Follow what the marketplace stores."""
    signals.stored.connect(follow, dispatch_uid="agents.arming")


def follow(outcomes: Iterable[Any] = (), **_: Any) -> None:
    """Arm the agents that these stored events concern: by their list, or by a skill they adopted."""
    lists, addresses, authors = set(), set(), set()
    for outcome in outcomes:
        event: Event | None = outcome.event
        if event is None:
            continue
        if event.kind == kinds.ADOPTIONS:
            lists.add(event.pubkey)
        elif event.kind in kinds.SKILLS:
            addresses.add(str(event.address))
        elif event.kind in {kinds.DELETION, kinds.VANISH}:
            authors.add(event.pubkey)
            lists.add(event.pubkey)
    # Most of what relays say concerns no agent here, and many sites have few or none.
    if (lists or addresses or authors) and Agent.objects.exists():
        now = timezone.now()
        for agent in Agent.objects.filter(pk__in=_concerned(lists, addresses, authors)).select_related("identity"):
            arm(agent, now)


def _concerned(lists: set[str], addresses: set[str], authors: set[str]) -> set[int]:
    found: set[int] = set()
    for some in _portions(lists):
        found.update(Agent.objects.filter(identity__pubkey__in=some).values_list("pk", flat=True))
    rows = AdoptedSkill.objects.order_by().values_list("agent", "address")
    if not authors and len(addresses) <= ROWS_AT_ONCE:
        rows = rows.filter(address__in=addresses)  # else read whole: asking for each name costs more
    for agent, address in rows.iterator(chunk_size=ROWS_AT_ONCE) if addresses or authors else ():
        if address in addresses or address.split(":", 2)[1] in authors:
            found.add(agent)
    return found


def _portions(values: set[str]) -> Iterable[list[str]]:
    ordered = sorted(values)
    return (ordered[at : at + ROWS_AT_ONCE] for at in range(0, len(ordered), ROWS_AT_ONCE))


def arm_all(now: datetime, every: bool = False) -> int:
    """Arm each agent whose rows are out of step (or every one); how many. Reads in five queries when none is."""
    agents = {agent.pk: agent for agent in Agent.objects.select_related("identity")}
    listed = _listed({agent.identity.pubkey for agent in agents.values()})
    versions = current_versions({address for addresses in listed.values() for address in addresses})
    adopted: dict[int, dict[str, AdoptedSkill]] = {}
    for row in AdoptedSkill.objects.all():
        adopted.setdefault(row.agent_id, {})[row.address] = row
    armed = {
        (row.agent_id, row.address): row.event_id for row in Trigger.objects.only("agent_id", "address", "event_id")
    }
    changed = 0
    for pk, agent in agents.items():
        rows, wanted = adopted.get(pk, {}), listed.get(agent.identity.pubkey, [])
        same_list = [row.address for row in sorted(rows.values(), key=lambda row: row.position)] == wanted
        if every or not same_list or any(_moved(row, versions, armed) for row in rows.values()):
            arm(agent, now)
            changed += 1
    return changed


def _moved(row: AdoptedSkill, versions: dict[str, str], armed: dict[tuple[int, str], str]) -> bool:
    """Whether the version to run is another than the one armed (a skill without trigger has none armed)."""
    newest = versions.get(row.address, "")
    unseen = bool(newest) and (not row.pinned_event or (row.follow and row.pinned_event != newest))
    return unseen or armed.get((row.agent_id, row.address), row.pinned_event) != row.pinned_event


def _listed(pubkeys: set[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for some in _portions(pubkeys):
        rows = Adoption.objects.filter(adopter__in=some).order_by("adopter", "position", "pk")
        for adopter, address in rows.values_list("adopter", "address"):
            found.setdefault(adopter, []).append(address)
    return found


def current_versions(addresses: set[str]) -> dict[str, str]:
    """Address -> event id of its current version, where there is one."""
    wanted = {address for address in addresses if Address.parse(address)}
    found: dict[str, str] = {}
    for some in _portions({address.split(":", 2)[1] for address in wanted}):
        for skill in Skill.objects.filter(pubkey__in=some).exclude(state__in=["deleted", "expired"]):
            if skill.address in wanted:
                found[skill.address] = skill.event_id
    return found


@transaction.atomic
def arm(agent: Agent, now: datetime) -> None:
    """Bring the agent's adopted skills and triggers in step with its current list and its owner's pins."""
    Agent.objects.select_for_update().get(pk=agent.pk)  # one at a time per agent
    wanted = _listed({agent.identity.pubkey}).get(agent.identity.pubkey, [])
    versions = current_versions(set(wanted))
    rows = {row.address: row for row in AdoptedSkill.objects.filter(agent=agent)}
    AdoptedSkill.objects.filter(agent=agent).exclude(address__in=wanted).delete()
    _disarm(Trigger.objects.filter(agent=agent).exclude(address__in=wanted), UNADOPTED)
    for position, address in enumerate(wanted):
        newest = versions.get(address, "")
        row = rows.get(address)
        if row is None:
            row = AdoptedSkill.objects.create(agent=agent, address=address, position=position, pinned_event=newest)
        pinned = newest if newest and (row.follow or not row.pinned_event) else row.pinned_event
        if (row.position, row.pinned_event) != (position, pinned):
            row.position, row.pinned_event = position, pinned
            row.save(update_fields=["position", "pinned_event"])
        _arm_one(agent, row, gone=not newest, now=now)


def pin(agent: Agent, address: str, event_id: str, now: datetime, follow: bool | None = None) -> None:
    """The owner saw this version and accepts it: it runs from now on."""
    changes: dict[str, Any] = {"pinned_event": event_id} | ({} if follow is None else {"follow": follow})
    AdoptedSkill.objects.filter(agent=agent, address=address).update(**changes)
    arm(agent, now)


def switch(trigger: Trigger, enabled: bool, now: datetime) -> None:
    """The owner's switch; what happened while it was off does not fire later."""
    changes: dict[str, Any] = {"enabled": enabled, "revision": trigger.revision + 1}
    if enabled:
        changes |= {"armed_at": int(now.timestamp()), "next_run_at": _next_slot(trigger.tags, trigger.kind, now)}
    Trigger.objects.filter(pk=trigger.pk).update(**changes)
    trigger.refresh_from_db()


def switch_agent(agent: Agent, enabled: bool, now: datetime) -> None:
    """The kill switch of an agent: all its triggers at once, each keeping its own switch."""
    # What was written to it while it was off is not answered afterwards.
    agent.enabled, agent.dm_since = enabled, int(now.timestamp()) if enabled else agent.dm_since
    Agent.objects.filter(pk=agent.pk).update(enabled=enabled, dm_since=agent.dm_since)
    for trigger in Trigger.objects.filter(agent=agent, enabled=True):
        switch(trigger, True, now)


def pinned_spec(agent: Agent, event_id: str) -> SkillSpec | None:
    """The skill in this version, decrypted where it is the agent's own; None when it is not in the archive."""
    row = ArchivedEvent.objects.filter(pk=event_id).first()
    if row is None:
        return None
    event = Event.from_dict(json.loads(row.raw))
    if event.kind != kinds.PRIVATE_SKILL:
        return read_skill(event)
    try:
        return read_skill(event, signing.decrypt(agent.identity, event.content))
    except (ValueError, signing.NotHeld, signing.VaultError):
        return read_skill(event)  # its content is then no JSON, and the spec says so


@dataclass(frozen=True, slots=True)
class _Armed:
    """What a trigger row is to say."""

    kind: str
    tags: list[list[str]]
    action: str
    words: str
    problem: str  # "" = usable


def _arm_one(agent: Agent, row: AdoptedSkill, gone: bool, now: datetime) -> None:
    spec = pinned_spec(agent, row.pinned_event) if row.pinned_event else None
    if spec is None or spec.trigger is None:
        _disarm(Trigger.objects.filter(agent=agent, address=row.address), NO_TRIGGER)
        return
    armed = _read(agent, row.address, spec, spec.trigger, gone)
    at = int(now.timestamp())
    values: dict[str, Any] = {
        "event_id": row.pinned_event,
        "kind": armed.kind[:40],
        "tags": armed.tags,
        "action": armed.action,
        "words": armed.words[:400],
        "usable": not armed.problem,
        "problem": armed.problem[:300],
    }
    trigger = Trigger.objects.filter(agent=agent, address=row.address).first()
    writes = writing_tools(agent, spec)
    if trigger is None:
        autonomy = Trigger.Autonomy.SUGGEST if writes else Trigger.Autonomy.AUTO
        slot = _next_slot(armed.tags, armed.kind, now)
        Trigger.objects.create(
            agent=agent, address=row.address, autonomy=autonomy, armed_at=at, next_run_at=slot, **values
        )
        return
    changed = {name: value for name, value in values.items() if getattr(trigger, name) != value}
    if not changed:
        return
    if "event_id" in changed:
        before = pinned_spec(agent, trigger.event_id)
        # A newer version never gains rights by itself: more writing tools ask again.
        if before is None or writes - writing_tools(agent, before):
            changed["autonomy"] = Trigger.Autonomy.SUGGEST
    if {"tags", "kind", "usable"} & changed.keys():
        changed |= {"armed_at": at, "next_run_at": _next_slot(armed.tags, armed.kind, now)}
    Trigger.objects.filter(pk=trigger.pk).update(revision=trigger.revision + 1, **changed)


def _disarm(triggers: QuerySet[Trigger], problem: str) -> None:
    """One with a web address stays, unable to fire: its deliveries are on record, and adopted again it goes on."""
    known = triggers.filter(hook__isnull=False).exclude(problem=problem)
    known.update(usable=False, problem=problem, autonomy=Trigger.Autonomy.SUGGEST, revision=F("revision") + 1)
    triggers.filter(hook__isnull=True).delete()


def _read(agent: Agent, address: str, spec: SkillSpec, trigger: TriggerSpec, gone: bool) -> _Armed:
    """The trigger of this version, its placeholders filled, and why it cannot be used if so."""
    tags, words, problem = [list(tag) for tag in spec.trigger_tags], trigger.words, ""
    if isinstance(trigger.data, Subscription):
        filters = fill_placeholders(trigger.data.filters, agent.admin_pubkey, agent.identity.pubkey)
        tags = [tag for tag in tags if tag[0] != "filter"] + subscription.to_tags(Subscription(filters))
        if any(wanted.unfilled for wanted in filters):
            problem = "The filter names your admin key, and the agent has none."
    if isinstance(trigger.data, Chain):
        way = chains.cycle({**_sources(agent), address: str(trigger.data.source)}, address)
        problem = f"It would start itself: {chains.words(way)}." if way else ""
    if gone:
        problem = GONE
    elif not trigger.usable:
        problem = next((one.message for one in trigger.problems), "This trigger is not usable here.")
    elif not trigger.enabled:
        problem = "Its author switched the trigger off."
    elif not spec.runnable:
        problem = next((one.message for one in spec.problems), "This skill cannot run.")
    return _Armed(trigger.kind, tags, trigger.action, words, problem)


def _sources(agent: Agent) -> dict[str, str]:
    """The agent's chains as they are armed: skill -> the skill whose end starts it."""
    found = {}
    for address, tags in Trigger.objects.filter(agent=agent, kind="chain").values_list("address", "tags"):
        spec = read_trigger([tuple(tag) for tag in tags])
        if spec and isinstance(spec.data, Chain):
            found[address] = str(spec.data.source)
    return found


def _next_slot(tags: list[list[str]], kind: str, now: datetime) -> datetime | None:
    if kind != "cron":
        return None
    spec = read_trigger([tuple(tag) for tag in tags])
    slots = next_times(spec.data, now, 1) if spec and spec.data else []
    return slots[0] if slots else None


def writing_tools(agent: Agent, spec: SkillSpec) -> frozenset[str]:
    """Names of the granted tools that others would notice, of those this skill asks for."""
    if spec.action == "template":
        try:
            action = read_action(spec.template)
        except ValueError:
            return frozenset()
        return frozenset({"post": {"nostr_post"}, "log": set()}.get(action.kind, {"nostr_dm_send"}))
    asked = set(agent.grants) if spec.tools is True else set(spec.tools or ())
    return frozenset(name for name in asked & set(agent.grants) if name in TOOLS and TOOLS[name].risk != "reads")
