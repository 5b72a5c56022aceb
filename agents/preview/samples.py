"""What stands in a preview for what only a run would have: a sample event, and values that tools would fetch."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db.models import Max

from agents import variables
from agents.engine.context import LIVE
from agents.engine.fences import fence
from agents.models import Agent, Conversation, Run
from agents.runner.loading import lasting_mark
from agents.tools import ToolContext
from marketplace.protocol.events import Draft
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.vocabulary import VARIABLES

SAMPLE_KEY = "6e" * 32


@dataclass
class Filled:
    """Values of variables, and why some are empty."""

    values: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def filled(
    wanted: Collection[str],
    agent: Agent | None,
    named: Collection[str],
    arguments: Mapping[str, str],
    fetch_at: datetime | None,
) -> Filled:
    """What a run would read of the agent itself; [what it is] for what a granted tool asks relays for.

    `named`: by the skill's own text; only those are missed. `fetch_at`: a time, to ask the tools as a run would.
    """
    found = Filled()
    known = [name for name in wanted if name in variables.VARIABLES and name not in arguments]
    if agent is not None:
        asked = [name for name in known if fetch_at is not None or variables.VARIABLES[name] in variables.OWN]
        ctx = ToolContext(
            agent,
            fetch_at or datetime.fromtimestamp(0, UTC),  # nothing that is not fetched reads it
            frozenset(agent.grants),
            fence=partial(fence, mark=lasting_mark(agent)),
        )
        resolved = variables.resolve(asked, ctx)
        found = Filled(dict(resolved.values), list(resolved.warnings))
        nothing = [name for name, text in found.values.items() if not text.strip()]
        said = "\n".join(found.warnings)
        found.warnings += [
            f"“{name}” is empty: there is nothing to say." for name in nothing if f"“{name}”" not in said
        ]
    for name in known:
        tool = variables.VARIABLES[name]
        if name in found.values:
            continue
        if agent is not None and tool in agent.grants:
            found.values[name] = f"[{VARIABLES[name]}, filled when it runs]"
        elif name in named:
            why = f"{agent.name} does not grant {tool}" if agent else "no agent is chosen"
            found.warnings.append(f"“{name}” stays empty: {why}.")
            found.values[name] = ""
    for name in wanted:
        if name not in LIVE and name in arguments and not arguments[name].strip():
            found.warnings.append(f"“{name}” is empty: nothing was given for it.")
    return found


def next_turn(talk: Conversation) -> Run:
    """The turn that a message to this conversation would become; it is not saved."""
    last = Run.objects.filter(conversation=talk).aggregate(last=Max("turn"))["last"] or 0
    return Run(agent=talk.agent, conversation=talk, turn=last + 1)


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


def edited(spec: SkillSpec, template: str | None) -> SkillSpec:
    """The skill with another template, as a run with an edited one has it."""
    return spec if template is None else replace(spec, template=template)
