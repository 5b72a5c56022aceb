"""What a run is made of, read from rows: the pinned skill, the adopted ones, parameters, rights."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from agents import llm
from agents.engine import params
from agents.engine.context import SKILL_TOKENS, Context, ContextInput, Message, SkillText
from agents.models import AdoptedSkill, Agent, Run
from agents.runner.errors import Fails
from agents.sources import NOTHING, Disclosed, disclose
from agents.sources.adopted import foreign, skill_of
from agents.tools import TOOLS
from marketplace.models import ArchivedEvent
from marketplace.protocol.events import Event
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skills import SkillSpec

PER_MESSAGE = 4  # tokens that a message costs beside its text, about
MOST_TURNS = 100  # of a conversation that are read for the next one


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

    @property
    def schema_tokens(self) -> int:
        return sum(llm.count(json.dumps(schema)) for schema in self.schemas)


def parts_of(context: Context, loaded: Loaded) -> list[dict[str, Any]]:
    """Every part of a first request with its tokens; together they are what is reserved for it."""
    parts: list[dict[str, Any]] = [{"name": part.name, "tokens": part.tokens} for part in context.parts]
    frames = PER_MESSAGE * len(context.messages)
    return [*parts, {"name": "tools", "tokens": loaded.schema_tokens}, {"name": "message frames", "tokens": frames}]


def load(run: Run) -> Loaded:
    """Raises Fails where the pinned version cannot be read."""
    spec = load_skill(run.agent, run.skill_event) if run.skill_event else None
    if run.skill_event and spec is None:
        raise Fails("unusable", "The pinned version of the skill is not in the archive, or cannot be read.")
    if spec is not None and isinstance(edited := run.overrides.get("template"), str):
        spec = replace(spec, template=edited)  # for this run alone; the version stays pinned
    return prepared(run.agent, spec, overrides(run.overrides), triggered=run.trigger_kind != "manual")


def prepared(agent: Agent | None, spec: SkillSpec | None, own: RunParams, *, triggered: bool) -> Loaded:
    """What a run of this skill would be made of; without an agent nothing is granted and nothing adopted."""
    resolved = params.resolve(
        agent_params(agent),
        spec.params if spec else None,
        spec.trigger.params if spec and spec.trigger and triggered else None,
        own,
        site_llm=settings.DEFAULT_LLM,
    )
    if spec is not None and spec.rule == "full" and resolved["tools"].origin == "default":
        resolved["tools"] = params.Resolved(False, "default")  # such a template has the tools it names, and no others
    grants, limits = (agent.grants, agent.limits) if agent else ((), {})
    granted, in_vain = params.allowed_tools(grants, resolved["tools"].value, tuple(TOOLS))
    most = limits.get("skill_tokens") if isinstance(limits, dict) else None
    most = most if type(most) is int and most > 0 else SKILL_TOKENS
    return Loaded(spec, resolved, granted, in_vain, adopted(agent) if agent else (), most)


def context_input(
    agent: Agent | None,
    loaded: Loaded,
    address: str,
    mark: str,
    *,
    message: str | None,
    event: str | None,
    arguments: Mapping[str, str],
    history: tuple[Message, ...] = (),
    disclosed: Disclosed | None = None,
) -> ContextInput:
    """All that a context is made of, apart from what tools say for its variables: for a run and a preview alike.

    Without `disclosed` it is what a run by hand, in no conversation, would be told of skills on demand; nothing where
    there is no message either, since nobody asks then.
    """
    if disclosed is None:
        disclosed = NOTHING if message is None else disclose(agent, loaded.granted, message, mark)
    return ContextInput(
        mark=mark,
        lasting_mark=lasting_mark(agent) if agent else "",
        soul=agent.soul if agent else "",
        invoked=skill_text(loaded.spec, address) if loaded.spec else None,
        adopted=loaded.adopted,
        arguments=arguments,
        message=message,
        event=event,
        history=history,
        catalogue=disclosed.catalogue,
        replacement=disclosed.replacement,
        by_name=tuple((one.name, one.text) for one in disclosed.invoked),
        remarks=disclosed.warnings,
        skill_tokens=loaded.skill_tokens,
        count=llm.count,
    )


def agent_params(agent: Agent | None) -> RunParams:
    """The agent's own defaults: the first layer of a run's parameters."""
    if agent is None:
        return RunParams()
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


def adopted(agent: Agent) -> tuple[SkillText, ...]:
    """The always-on skills in list order, each in its pinned version; two queries."""
    rows = list(AdoptedSkill.objects.filter(agent=agent, on_demand=False).exclude(pinned_event=""))
    events = ArchivedEvent.objects.in_bulk([row.pinned_event for row in rows])
    others = foreign(agent, rows)
    texts = []
    for row in rows:
        archived = events.get(row.pinned_event)
        spec = skill_of(agent, Event.from_dict(json.loads(archived.raw))) if archived else None
        if spec is not None:
            texts.append(replace(skill_text(spec, row.address), foreign=row.address in others))
    return tuple(texts)


def skill_text(spec: SkillSpec, address: str) -> SkillText:
    return SkillText(spec.name or address, spec.template, spec.rule, spec.action, address)


def history(run: Run) -> tuple[Message, ...]:
    """Earlier turns of the conversation that got an answer, in order; the context keeps the newest that fit.

    Only turns before this one, which have all ended: a run that is taken up again is composed the same.
    """
    if run.conversation_id is None:
        return tuple(Message(row["role"], row["content"]) for row in run.input.get("history", ()))
    turns = Run.objects.filter(conversation=run.conversation_id, turn__lt=run.turn, status=Run.Status.SUCCEEDED)
    said = turns.order_by("-turn").values_list("input__message", "output")[:MOST_TURNS]
    pairs = ((Message("user", asked or ""), Message("assistant", answer)) for asked, answer in reversed(said) if answer)
    return tuple(message for pair in pairs for message in pair)


def told_before(run: Run) -> dict[str, Any] | None:
    """What the newest earlier turn of the conversation told of skills on demand; None for a single run."""
    if run.conversation_id is None:
        return None
    turns = Run.objects.filter(conversation=run.conversation_id, turn__lt=run.turn).exclude(disclosure={})
    found: dict[str, Any] | None = turns.order_by("-turn").values_list("disclosure", flat=True).first()
    return found


def typed(run: Run) -> str | None:
    """The words that a person wrote to this very run: not an event's, a webhook's, or those of another run."""
    direct = run.trigger_kind == "manual" and run.parent_id is None and run.depth == 0
    return run.input.get("message") if direct else None


def mark(run: Run) -> str:
    """Of the fences: the same for every attempt of one run, and unguessable from outside."""
    return _mark(f"run:{run.pk}")


def lasting_mark(agent: Agent) -> str:
    """Of fences in what several runs have in common."""
    return _mark(f"agent:{agent.pk}")


def _mark(text: str) -> str:
    return hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:16]
