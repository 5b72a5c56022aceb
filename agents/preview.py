"""What a model would be sent, before any call: for the editor's preview and for the API alike."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from agents import arming, llm, variables
from agents.engine import costs, fallback, params
from agents.engine.context import ContextInput, SkillText, assemble, names_used
from agents.models import AdoptedSkill, Agent
from agents.tools import TOOLS, ToolContext
from marketplace.protocol import nip19, templates
from marketplace.protocol.events import Draft, Event
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.vocabulary import FROM_THE_RUN, VARIABLES

SAMPLE_KEY = "6e" * 32


def preview(
    spec: SkillSpec,
    agent: Agent | None,
    message: str = "",
    event: Mapping[str, Any] | None = None,
    arguments: Mapping[str, str] | None = None,
    overrides: RunParams | None = None,
) -> dict[str, Any]:
    """Rule, messages, tools, parameters with origins, tokens and warnings; an event makes it a triggered run.

    Nothing is fetched: a variable that a tool resolves stands as [its name] where the agent grants the tool.
    """
    triggered = event is not None
    values = params.resolve(
        agent_params(agent),
        spec.params,
        spec.trigger.params if spec.trigger and triggered else None,
        overrides,
        site_llm=settings.DEFAULT_LLM,
    )
    warnings = [problem.message for problem in spec.problems]
    allowed, refused = params.allowed_tools(agent.grants if agent else (), values["tools"].value, tuple(TOOLS))
    warnings += _refusals(agent, refused)
    if triggered and spec.action == "template":
        shown: dict[str, Any] = _filled(spec, event or {}, warnings)
    else:
        shown = _assembled(spec, agent, message, event, arguments or {}, allowed, warnings)
        shown["tools"] = [TOOLS[name].schema for name in allowed]
        schemas = llm.count(json.dumps(shown["tools"])) if allowed else 0
        shown["parts"].append({"name": "tools", "tokens": schemas})
        shown["tokens"] += schemas
    chain = values["llm"].value or ""
    aliases = agent.aliases if agent else {}
    warnings += [
        f"“{ref}” is neither a model nor an alias here; it is skipped." for ref in fallback.unknown_refs(chain, aliases)
    ]
    models = fallback.candidates(chain, aliases, default_llm(agent))
    return {
        **shown,
        "parameters": {name: value.to_dict() for name, value in values.items()},
        "models": list(models),
        "price": _price(models, agent, shown["tokens"], values["max_tokens"].value),
        "warnings": list(dict.fromkeys(warnings)),
    }


def _price(models: tuple[str, ...], agent: Agent | None, tokens: int, most: int) -> dict[str, str | None]:
    """What one call of the first model costs at most, in US dollars; None where its price is unknown."""
    if not models or not tokens:
        return {"model": models[0] if models else "", "at_most": None}
    # The address without its key: a preview calls nobody.
    own = agent.provider_keys.filter(provider=models[0].partition("/")[0]).first() if agent else None
    endpoint = llm.Endpoint(models[0], own.base_url if own else settings.LLM_BASE_URL)
    worst = costs.worst_case(tokens, most, llm.price_of(endpoint))
    return {"model": models[0], "at_most": None if worst is None else f"{worst:f}"}


def agent_params(agent: Agent | None) -> RunParams:
    """The agent's own defaults as the first layer of a run's parameters."""
    if agent is None:
        return RunParams()
    return RunParams(agent.llm or None, agent.max_tokens, agent.temperature, agent.seed)


def default_llm(agent: Agent | None) -> str:
    return (agent.llm if agent else "") or settings.DEFAULT_LLM


def sample_event(spec: SkillSpec, agent: Agent | None) -> dict[str, Any]:
    """An unsigned event that would fire the skill's subscription, for previews."""
    data = spec.trigger.data if spec.trigger else None
    wanted = next(iter(getattr(data, "filters", ())), None)
    keys = {
        "<admin_pubkey>": (agent.admin_pubkey if agent else "") or SAMPLE_KEY,
        "<agent_pubkey>": agent.identity.pubkey if agent else SAMPLE_KEY,
    }
    kind, author, tags = 1, SAMPLE_KEY, []
    if wanted is not None:
        kind = min(wanted.kinds or {1})
        author = keys.get(found := min(wanted.authors or {SAMPLE_KEY}), found)
        tags = [[name, keys.get(value := min(values), value)] for name, values in sorted(wanted.tags.items())]
    draft = Draft(author, 1_767_225_600, kind, tuple(map(tuple, tags)), "A sample note: could you look at this?")
    return {**draft.to_dict(), "sig": "0" * 128}


def _assembled(
    spec: SkillSpec,
    agent: Agent | None,
    message: str,
    event: Mapping[str, Any] | None,
    arguments: Mapping[str, str],
    allowed: tuple[str, ...],
    warnings: list[str],
) -> dict[str, Any]:
    text = None if event is None else json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    mark = hashlib.sha256(f"{spec.template}\0{message}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]
    given = ContextInput(
        mark=mark,  # the same for the same input; a run draws its own
        soul=agent.soul if agent else "",
        invoked=SkillText(spec.d, spec.template, spec.rule, spec.action),
        adopted=_adopted(agent),
        arguments=arguments,
        message=message,
        event=text,
        count=llm.count,
    )
    names = [name for name in names_used(given) if name not in FROM_THE_RUN and name not in arguments]
    values = _samples(names, agent, spec, allowed, warnings)
    context = assemble(replace(given, values=values))
    warnings += context.warnings
    return {
        "rule": context.rule,
        "reason": context.reason,
        "messages": [said.to_dict() for said in context.messages],
        "tokens": sum(part.tokens for part in context.parts),
        "parts": [{"name": part.name, "tokens": part.tokens} for part in context.parts],
    }


def _samples(
    names: Iterable[str], agent: Agent | None, spec: SkillSpec, allowed: tuple[str, ...], warnings: list[str]
) -> dict[str, str]:
    """What the agent knows of itself as a run would read it; [what it is] for what a granted tool asks relays for."""
    values: dict[str, str] = {}
    named = templates.variables(spec.template)
    known = [name for name in names if name in variables.VARIABLES]
    if agent is not None:
        own = [name for name in known if variables.VARIABLES[name] in variables.OWN]
        now = datetime.fromtimestamp(0, UTC)  # nothing here reads it
        values |= variables.resolve(own, ToolContext(agent=agent, now=now, granted=frozenset(allowed))).values
    for name in known:
        tool = variables.VARIABLES[name]
        if name in values:
            continue
        if agent is not None and tool in agent.grants:
            values[name] = f"[{VARIABLES[name]}, filled when it runs]"
        elif name in named:
            why = f"{agent.name} does not grant {tool}" if agent else "no agent is chosen"
            warnings.append(f"“{name}” stays empty: {why}.")
            values[name] = ""
    return values


def _adopted(agent: Agent | None) -> tuple[SkillText, ...]:
    """The agent's skills that are always on, in list order, each in the version its owner saw."""
    if agent is None:
        return ()
    found = []
    for row in AdoptedSkill.objects.filter(agent=agent, on_demand=False).order_by("position", "pk"):
        spec = arming.pinned_spec(agent, row.pinned_event)
        if spec is not None and spec.readable:
            found.append(SkillText(spec.d, spec.template, spec.rule, spec.action))
    return tuple(found)


def _filled(spec: SkillSpec, event: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    """A template action: no model, the text as it would be sent."""
    try:
        action = templates.read_action(spec.template)
    except ValueError as error:
        warnings.append(f"The recipient after DM is not a key. {error}")
        action = templates.Action("log", "", spec.template)
    values = templates.placeholders(_event(event), "wss://relay.example", "")
    text = templates.expand_placeholders(action.body, values)
    return {
        "rule": "template",
        "reason": "Template action: the text is filled in and sent without a model.",
        "messages": [],
        "tools": [],
        "tokens": 0,
        "parts": [],
        "action": {
            "kind": action.kind,
            "recipient": nip19.encode_npub(action.recipient) if action.recipient else "",
            "text": text,
        },
    }


def _event(row: Mapping[str, Any]) -> Event:
    """An event of a preview may be half typed: what is missing or of a wrong type becomes empty."""

    def text(name: str, default: str) -> str:
        value = row.get(name)
        return value if isinstance(value, str) else default

    created, kind = row.get("created_at"), row.get("kind")
    return Event(
        text("id", "0" * 64),
        text("pubkey", SAMPLE_KEY),
        created if isinstance(created, int) else 0,
        kind if isinstance(kind, int) else 1,
        (),
        text("content", ""),
        "",
    )


def _refusals(agent: Agent | None, refused: tuple[str, ...]) -> list[str]:
    unknown = [name for name in refused if name not in TOOLS]
    known = [name for name in refused if name in TOOLS]
    words = [f"There is no tool “{name}” here." for name in unknown]
    if known:
        who = f"{agent.name} does not grant it" if agent else "no agent is chosen to grant it"
        words.append(f"It asks for {', '.join(known)}, and {who}.")
    return words
