"""What a run is made of, read from rows: the pinned skill, the adopted ones, parameters, rights."""

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from agents.engine import params
from agents.engine.context import SKILL_TOKENS, Message, SkillText
from agents.models import AdoptedSkill, Agent, Run
from agents.runner.errors import Fails
from agents.tools import TOOLS
from marketplace import signing
from marketplace.models import ArchivedEvent
from marketplace.protocol import kinds
from marketplace.protocol.events import Event
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skills import SkillSpec, read_skill


@dataclass(frozen=True)
class Loaded:
    """Everything that is settled before the first step."""

    spec: SkillSpec | None  # the invoked skill; None: none was
    parameters: dict[str, params.Resolved]
    granted: tuple[str, ...]  # tool names this run may call
    in_vain: tuple[str, ...]  # asked for, but not granted
    adopted: tuple[SkillText, ...]
    skill_tokens: int  # of one skill's text at most

    @property
    def schemas(self) -> list[dict[str, Any]]:
        return [TOOLS[name].schema for name in self.granted]


def load(run: Run) -> Loaded:
    """Raises Fails where the pinned version cannot be read."""
    spec = load_skill(run.agent, run.skill_event) if run.skill_event else None
    if run.skill_event and spec is None:
        raise Fails("unusable", "The pinned version of the skill is not in the archive, or cannot be read.")
    triggered = run.trigger_kind != "manual"
    trigger = spec.trigger.params if spec and spec.trigger and triggered else None
    resolved = params.resolve(
        agent_params(run.agent),
        spec.params if spec else None,
        trigger,
        overrides(run.overrides),
        site_llm=settings.DEFAULT_LLM,
    )
    granted, in_vain = params.allowed_tools(run.agent.grants, resolved["tools"].value, tuple(TOOLS))
    own = run.agent.limits.get("skill_tokens") if isinstance(run.agent.limits, dict) else None
    most = own if type(own) is int and own > 0 else SKILL_TOKENS
    return Loaded(spec, resolved, granted, in_vain, adopted(run.agent), most)


def agent_params(agent: Agent) -> RunParams:
    return RunParams(agent.llm or None, agent.max_tokens, agent.temperature, agent.seed)


def overrides(raw: dict[str, Any]) -> RunParams:
    """This run's own parameters, as they were checked when it was started."""
    tools = raw.get("tools")
    return RunParams(
        raw.get("llm") or None,
        raw.get("max_tokens"),
        raw.get("temperature"),
        raw.get("seed"),
        tuple(tools) if isinstance(tools, list) else tools,
    )


def load_skill(agent: Agent, event_id: str) -> SkillSpec | None:
    """The skill in one archived version, private ones opened with the agent's key."""
    row = ArchivedEvent.objects.filter(pk=event_id).first()
    return skill_of(agent, Event.from_dict(json.loads(row.raw))) if row else None


def skill_of(agent: Agent, event: Event) -> SkillSpec | None:
    """None for a private skill of another key, and for one that cannot be read."""
    plaintext = None
    if event.kind == kinds.PRIVATE_SKILL:
        if event.pubkey != agent.identity.pubkey:
            return None
        try:
            plaintext = signing.decrypt(agent.identity, event.content)
        except (ValueError, signing.NotHeld):
            return None
    spec = read_skill(event, plaintext)
    return spec if spec.readable else None


def adopted(agent: Agent) -> tuple[SkillText, ...]:
    """The always-on skills in list order, each in its pinned version; two queries."""
    rows = list(AdoptedSkill.objects.filter(agent=agent, on_demand=False).exclude(pinned_event=""))
    events = ArchivedEvent.objects.in_bulk([row.pinned_event for row in rows])
    texts = []
    for row in rows:
        archived = events.get(row.pinned_event)
        spec = skill_of(agent, Event.from_dict(json.loads(archived.raw))) if archived else None
        if spec is not None:
            texts.append(skill_text(spec, row.address))
    return tuple(texts)


def skill_text(spec: SkillSpec, address: str) -> SkillText:
    return SkillText(spec.name or address, spec.template, spec.rule, spec.action, address)


def history(run: Run) -> tuple[Message, ...]:
    """The conversation the run belongs to; a single run has none."""
    return tuple(Message(row["role"], row["content"]) for row in run.input.get("history", ()))


def mark(run: Run) -> str:
    """Of the fences: the same for every attempt of one run, and unguessable from outside."""
    return _mark(f"run:{run.pk}")


def lasting_mark(agent: Agent) -> str:
    """Of fences in what several runs have in common."""
    return _mark(f"agent:{agent.pk}")


def _mark(text: str) -> str:
    return hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:16]
