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

    LABEL: str
    TAGS: tuple[str, ...]

    def from_tags(self, tags: Sequence[Tag], *, own_input: bool = False) -> tuple[Any, list[Problem]]: ...
    def to_tags(self, data: Any) -> list[list[str]]: ...
    def in_words(self, data: Any) -> str: ...


KINDS: dict[str, Any] = {
    "nostr-subscription": subscription,
    "cron": cron,
    "webhook": webhook,
    "chain": chain,
}
COMMON_TAGS = ("trigger", "action", "enabled", *parameters.NAMES)
TAG_NAMES = frozenset(COMMON_TAGS).union(*(kind.TAGS for kind in KINDS.values()))


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
        return str(KINDS[self.kind].in_words(self.data))


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
    problems: list[Problem] = []
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


def slot_key(text: str) -> str:
    """A short unique key for long or foreign delivery ids."""
    return text if len(text) <= 200 else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _first(tags: Sequence[Tag], name: str) -> str | None:
    return next((tag[1] for tag in tags if tag[0] == name and len(tag) > 1), None)
