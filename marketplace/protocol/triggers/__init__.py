"""Triggers as tags: the KINDS table, reading and writing them, and what an occasion is."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from marketplace.protocol import parameters
from marketplace.protocol.events import Event, Tag
from marketplace.protocol.parameters import NOTHING_SET, RunParams
from marketplace.protocol.problems import Problem
from marketplace.protocol.triggers import chain, cron, subscription, webhook
from marketplace.protocol.vocabulary import ACTIONS


class TriggerKind(Protocol):
    """What each file of this package offers; `Data` is its own frozen dataclass."""

    @property
    def LABEL(self) -> str: ...
    @property
    def TAGS(self) -> tuple[str, ...]: ...

    def from_tags(self, tags: Sequence[Tag], *, own_input: bool = False) -> tuple[Any, list[Problem]]: ...
    def to_tags(self, data: Any) -> list[list[str]]: ...
    def in_words(self, data: Any) -> str: ...
    def problems(self, data: Any) -> list[Problem]: ...


KINDS: dict[str, TriggerKind] = {
    "nostr-subscription": subscription,
    "cron": cron,
    "webhook": webhook,
    "chain": chain,
}
_COMMON_TAGS = frozenset({"trigger", "action", "enabled", *parameters.NAMES})
_TAGS = {name: _COMMON_TAGS.union(kind.TAGS) for name, kind in KINDS.items()}


@dataclass(frozen=True, slots=True)
class TriggerSpec:
    """A skill's trigger. `data` is None where it cannot be used here."""

    kind: str
    data: Any = None
    action: str = "llm"  # llm, template
    enabled: bool = True
    params: RunParams = NOTHING_SET
    problems: tuple[Problem, ...] = ()

    @property
    def usable(self) -> bool:
        return self.data is not None

    @property
    def words(self) -> str:
        """What fires it, as a sentence."""
        if self.kind not in KINDS:
            return f"“{self.kind[:60]}” triggers are not usable here"
        if self.data is None:
            return f"{KINDS[self.kind].LABEL}, not usable: {self.problems[0].message if self.problems else ''}"
        return KINDS[self.kind].in_words(self.data)


@dataclass(frozen=True, slots=True)
class Occasion:
    """Something that happened and may start runs; `key` is unique per trigger."""

    kind: str  # a key of KINDS
    key: str  # event id, slot in UTC, delivery id, or parent run id
    at: int  # unix seconds
    event: Event | None = None
    relay: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    depth: int = 0  # of chains and of agents answering each other


def read_trigger(tags: Sequence[Tag], *, own_input: bool = False) -> TriggerSpec | None:
    """The trigger of these tags (the first `trigger` tag counts), None where there is none."""
    kind = next((tag[1] if len(tag) > 1 else "" for tag in tags if tag[0] == "trigger"), None)
    if kind is None:
        return None
    problems = _repeated(tags, kind)
    action = _first(tags, "action") or "llm"
    if action not in ACTIONS:
        problems.append(Problem("action", f"The action is neither llm nor template but “{action[:40]}”."))
    enabled = _first(tags, "enabled")
    if enabled not in {None, "true", "false"}:
        problems.append(Problem("enabled", "enabled is neither true nor false; it counts as false."))
    params = parameters.from_tags(tags, problems)
    data = None
    if kind in KINDS:
        data, found = KINDS[kind].from_tags(tags, own_input=own_input)
        problems += found
    else:
        # Kept intact and publishable: another implementation may know it.
        problems.append(Problem("trigger", f"“{kind[:60]}” triggers are not usable here.", "warning"))
    if any(problem.field == "action" for problem in problems):
        data = None
    return TriggerSpec(kind, data, action, enabled in {None, "true"}, params, tuple(problems))


def write_trigger(spec: TriggerSpec) -> list[list[str]]:
    """Its tags, parameters included. The spec must be usable."""
    tags = [["trigger", spec.kind], *KINDS[spec.kind].to_tags(spec.data)]
    tags += [["action", spec.action], ["enabled", str(spec.enabled).lower()]]
    return tags + parameters.to_tags(spec.params)


def problems_of(spec: TriggerSpec) -> list[Problem]:
    """What stands against writing it: what the reader found, and what its data holds now."""
    found = list(spec.problems)
    if spec.action not in ACTIONS and "action" not in {problem.field for problem in found}:
        found.append(Problem("action", "The action is neither llm nor template."))
    if spec.kind in KINDS and spec.data is None and not found:
        found.append(Problem("trigger", "The trigger is not complete."))
    if spec.kind in KINDS and spec.data is not None:
        found += [problem for problem in KINDS[spec.kind].problems(spec.data) if problem not in found]
    return found + parameters.problems_of(parameters.tidy(spec.params))


def tag_names(kind: str) -> frozenset[str]:
    """The tags that a trigger of this kind reads and writes; others in the event are not its own."""
    return _TAGS.get(kind, _COMMON_TAGS)


def delivery_key(text: str) -> str:
    """The occasion's key for a delivery id that somebody else chose: short, whatever its length."""
    return text if len(text) <= 200 else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _repeated(tags: Sequence[Tag], kind: str) -> list[Problem]:
    """Every tag but `param` counts once; the first is read, the others are not kept by an edit."""
    names = [tag[0] for tag in tags]
    twice = sorted(name for name in tag_names(kind) - {"param"} if names.count(name) > 1)
    return [Problem(name, f"There is more than one `{name}` tag; the first counts.", "warning") for name in twice]


def _first(tags: Sequence[Tag], name: str) -> str | None:
    return next((tag[1] for tag in tags if tag[0] == name and len(tag) > 1), None)
