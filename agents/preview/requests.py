"""The exact request: messages, tools and parameters as a run would send them, with what they would cost."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from django.conf import settings

from agents.engine import fallback
from agents.engine.context import assemble, names_used
from agents.models import Agent, Run
from agents.preview.actions import filled_in
from agents.preview.estimates import estimates, too_long
from agents.preview.samples import edited, filled
from agents.runner.loading import Loaded, context_input, history, parts_of, prepared, told_before
from agents.sources import disclose
from agents.tools import TOOLS
from marketplace.protocol import templates
from marketplace.protocol.parameters import NOTHING_SET, RunParams
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.storable import storable
from marketplace.protocol.vocabulary import FROM_THE_RUN, VARIABLES


def preview(
    spec: SkillSpec | None,
    agent: Agent | None,
    message: str = "",
    event: Mapping[str, Any] | None = None,
    arguments: Mapping[str, str] | None = None,
    overrides: RunParams = NOTHING_SET,
    address: str = "",
    fetch_at: datetime | None = None,
    turn: Run | None = None,
) -> dict[str, Any]:
    """Rule, messages, tools, parameters with origins, tokens, prices and warnings; an event makes it a triggered run.

    Nothing is fetched: a variable that a tool resolves stands as [its name] where the agent grants the tool, unless
    `fetch_at` is given, the time at which tools are asked as a run would ask them. `spec` None: a message alone.
    `turn`: the next one of a conversation, not saved, which brings what was said before.
    """
    triggered = event is not None
    loaded = prepared(agent, spec, overrides, triggered=triggered)
    warnings = [problem.message for problem in spec.problems] if spec else []
    warnings += _refusals(agent, loaded.in_vain)
    if spec is not None and triggered and spec.action == "template":
        shown = filled_in(spec, event or {}, warnings)
    else:
        shown = _assembled(agent, loaded, _place(loaded, address), message, event, arguments or {}, fetch_at, turn)
        warnings += shown.pop("warnings")
    chain, aliases = loaded.parameters["llm"].value or "", agent.aliases if agent else {}
    warnings += [
        f"“{ref}” is neither a model nor an alias here; it is skipped." for ref in fallback.unknown_refs(chain, aliases)
    ]
    models = fallback.candidates(chain, aliases, default_llm(agent)) if shown["messages"] else ()
    prices = estimates(agent, models, shown["tokens"], loaded.parameters["max_tokens"].value)
    warnings += too_long(prices, shown["tokens"])
    result: dict[str, Any] = {
        **shown,
        "parameters": {name: value.to_dict() for name, value in loaded.parameters.items()},
        "models": list(models),
        **_prices(prices),
        "warnings": list(dict.fromkeys(warnings)),
    }
    return cast(dict[str, Any], storable(result))  # as a run keeps it


def of_run(run: Run) -> dict[str, Any]:
    """What a run sent first, in the shape of a preview; its prices are today's."""
    said = run.request if isinstance(run.request, dict) else {}
    messages, tools = said.get("messages", []), said.get("tools", [])
    parts = said.get("parts", [])
    tokens = sum(part["tokens"] for part in parts)
    values = run.parameters if isinstance(run.parameters, dict) else {}
    chain = str(values.get("llm", {}).get("value") or "")
    models = fallback.candidates(chain, run.agent.aliases, default_llm(run.agent)) if messages else ()
    most = values.get("max_tokens", {}).get("value") or 0
    return {
        "rule": run.rule,
        "reason": said.get("reason", ""),
        "messages": messages,
        "tools": tools,
        "tokens": tokens,
        "parts": parts,
        "parameters": values,
        "models": list(models),
        **_prices(estimates(run.agent, models, tokens, most)),
        "warnings": run.warnings,
    }


def own_names(
    agent: Agent | None, spec: SkillSpec | None, address: str = "", templates_typed: Iterable[str | None] = (None,)
) -> tuple[str, ...]:
    """What a run can be given besides its message: names of no variable, in the skill, the soul, adopted skills.

    `templates_typed`: those that would stand in place of the skill's own.
    """
    loaded = prepared(agent, spec, NOTHING_SET, triggered=False)
    variants = [replace(loaded, spec=edited(spec, text)) for text in templates_typed] if spec else [loaded]
    names: dict[str, None] = {}
    for one in variants:
        given = context_input(agent, one, _place(one, address), "", message=None, event=None, arguments={})
        names |= dict.fromkeys(_own(given))
    return tuple(names)


def _own(given: Any) -> tuple[str, ...]:
    return tuple(name for name in names_used(given) if name not in VARIABLES)


def _place(loaded: Loaded, address: str) -> str:
    """The skill's address; one not yet published counts as the adopted skill of its name."""
    if address or loaded.spec is None:
        return address
    return next((text.address for text in loaded.adopted if text.name == loaded.spec.name), "")


def _assembled(
    agent: Agent | None,
    loaded: Loaded,
    address: str,
    message: str,
    event: Mapping[str, Any] | None,
    arguments: Mapping[str, str],
    fetch_at: datetime | None,
    turn: Run | None,
) -> dict[str, Any]:
    text = None if event is None else json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    template = loaded.spec.template if loaded.spec else ""
    # The same for the same input; a run draws its own.
    mark = hashlib.sha256(f"{template}\0{message}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]
    told = disclose(agent, loaded.granted, message, mark, told_before(turn)) if turn else None
    given = context_input(
        agent,
        loaded,
        address,
        mark,
        message=message,
        event=text,
        arguments=arguments,
        history=history(turn) if turn else (),
        disclosed=told,
    )
    wanted = [name for name in names_used(given) if name not in FROM_THE_RUN]
    found = filled(wanted, agent, templates.variables(template), arguments, fetch_at)
    context = assemble(replace(given, values=found.values))
    messages = [said.to_dict() for said in context.messages]
    parts = parts_of(context, loaded)
    return {
        "rule": context.rule,
        "reason": context.reason,
        "messages": messages,
        "tools": loaded.schemas,
        "tokens": sum(part["tokens"] for part in parts),
        "parts": parts,
        "arguments": list(_own(given)),
        "warnings": [*found.warnings, *context.warnings],
    }


def default_llm(agent: Agent | None) -> str:
    """The model that stands at the end of every chain."""
    return (agent.llm if agent else "") or settings.DEFAULT_LLM


def _prices(found: list[Any]) -> dict[str, Any]:
    """`price` is of the first model alone."""
    rows = [one.to_dict() for one in found]
    first = rows[0] if rows else {"model": "", "at_most": None}
    return {"price": {"model": first["model"], "at_most": first["at_most"]}, "prices": rows}


def _refusals(agent: Agent | None, refused: tuple[str, ...]) -> list[str]:
    unknown = [name for name in refused if name not in TOOLS]
    known = [name for name in refused if name in TOOLS]
    words = [f"There is no tool “{name}” here." for name in unknown]
    if known:
        who = f"{agent.name} does not grant it" if agent else "no agent is chosen to grant it"
        words.append(f"It asks for {', '.join(known)}, and {who}.")
    return words
