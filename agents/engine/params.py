"""Which value each parameter of a run has, and where it came from (agent, skill, trigger, this run)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from marketplace.protocol.parameters import NAMES, RunParams

DEFAULT_MAX_TOKENS = 4_096  # sent where nothing is set, so that the worst case of a call is finite


@dataclass(frozen=True, slots=True)
class Resolved:
    value: Any
    origin: str  # default, agent, skill, trigger, run

    def to_dict(self) -> dict[str, Any]:
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {"value": value, "origin": self.origin}


def resolve(
    agent: RunParams,
    skill: RunParams | None = None,
    trigger: RunParams | None = None,
    run: RunParams | None = None,
    *,
    site_llm: str = "",
) -> dict[str, Resolved]:
    """Each parameter from the last layer that sets it. Trigger tags only where a trigger invoked the run."""
    defaults = RunParams(llm=site_llm or None, max_tokens=DEFAULT_MAX_TOKENS, tools=True)
    layers = [("default", defaults), ("agent", agent), ("skill", skill), ("trigger", trigger), ("run", run)]
    found: dict[str, Resolved] = {name: Resolved(None, "default") for name in NAMES}
    for origin, layer in layers:
        for name, value in (layer.set() if layer else {}).items():
            found[name] = Resolved(value, origin)
    return found


def allowed_tools(
    granted: Iterable[str], asked: bool | Collection[str] | None, known: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The owner's grants narrowed to what was asked for, and what was asked for in vain.

    A skill can narrow, never widen: `asked` True or None is all granted, False none.
    """
    rights = [name for name in known if name in set(granted)]
    if asked is None or asked is True:
        return tuple(rights), ()
    if asked is False:
        return (), ()
    wanted = set(asked)
    return tuple(name for name in rights if name in wanted), tuple(sorted(wanted - set(rights)))
