"""One skill's version as the page, and the API, show it: read from its signed event, every setting with its origin."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from marketplace.models import ArchivedEvent, Skill
from marketplace.protocol import checks, templates
from marketplace.protocol.checks import Refused
from marketplace.protocol.events import Event
from marketplace.protocol.skills import SkillSpec, read_skill
from marketplace.protocol.triggers import TriggerSpec
from marketplace.protocol.vocabulary import CONTEXT_MODES, VARIABLES

COMPOSE_WORDS = "joins the agent's other skills, in the order of adoption"
ACTION_WORDS = {
    "dm_admin": "Sends a direct message to the agent's admin",
    "dm": "Sends a direct message",
    "post": "Publishes a note",
    "log": "Writes a line to the run's log",
}


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: str
    origin: str


@dataclass(frozen=True)
class Sheet:
    """An event of kind 31123 or 31124 and what it says."""

    event: Event
    spec: SkillSpec

    @classmethod
    def of(cls, row: ArchivedEvent, plaintext: str | None = None) -> "Sheet":
        event = Event.from_dict(json.loads(row.raw))
        return cls(event, read_skill(event, plaintext))

    @cached_property
    def signature(self) -> str:
        """ "" where id and signature are right, checked now and not remembered; else what is wrong."""
        return signature_problem(self.event)

    @property
    def trigger(self) -> TriggerSpec | None:
        return self.spec.trigger

    @property
    def filter_json(self) -> str:
        """The trigger's filter as it stands on the wire, indented where it is JSON."""
        return pretty(self.event.value("filter"))

    @property
    def trigger_tags(self) -> list[tuple[str, str]]:
        """The other tags that say when it fires."""
        return [
            (tag[0], " ".join(tag[1:]))
            for tag in self.spec.trigger_tags
            if tag[0] in {"schedule", "tz", "param", "source", "on"}
        ]

    @property
    def chain(self) -> list[str]:
        """The models it asks for, first choice first; empty where it leaves the choice to the agent."""
        return [ref.strip() for ref in self.spec.llm.split(",") if ref.strip() and ref.strip() != "default"]

    @property
    def llm_origin(self) -> str:
        return next((setting.origin for setting in self.settings if setting.name == "llm"), "the agent's default")

    @property
    def settings(self) -> list[Setting]:
        """What it sets itself: trigger tags win over content. What is not here comes from the agent."""
        content, tags = self.spec.params.set(), self.trigger.params.set() if self.trigger else {}
        return [
            Setting(name, _words(tags.get(name, content.get(name))), "trigger tags" if name in tags else "content")
            for name in ("llm", "max_tokens", "temperature", "seed", "tools")
            if name in tags or name in content
        ]

    @property
    def tools(self) -> list[str]:
        """The tools it names; see `tools_words` where it names none."""
        return list(self.spec.tools) if isinstance(self.spec.tools, tuple) else []

    @property
    def tools_words(self) -> str:
        if self.spec.tools is True:
            return "every tool the agent was granted"
        return "" if self.tools else "none"

    @property
    def rule_words(self) -> str:
        return CONTEXT_MODES.get(self.spec.rule, COMPOSE_WORDS)

    @cached_property
    def sections(self) -> Sequence[templates.Section]:
        return templates.sections(self.spec.template)

    @property
    def variables(self) -> list[tuple[str, str]]:
        names = templates.variables(self.spec.template)
        return [(name, VARIABLES.get(name, "asked for when the skill is run")) for name in names]

    @property
    def action(self) -> tuple[str, str] | None:
        """What a template action does, in words, and to whom (hex, "" where that is not in the template)."""
        if self.spec.action != "template":
            return None
        try:
            action = templates.read_action(self.spec.template)
        except ValueError as error:
            return f"Not usable: {error}", ""
        return ACTION_WORDS[action.kind], action.recipient

    @property
    def event_json(self) -> str:
        return json.dumps(self.event.to_dict(), ensure_ascii=False, indent=2)


def signature_problem(event: Event) -> str:
    try:
        checks.verify(event)
    except Refused as refused:
        return str(refused)
    return ""


def pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def current_version(skill: Skill) -> ArchivedEvent | None:
    return ArchivedEvent.objects.filter(pk=skill.event_id).first()


def _words(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "all granted" if value else "none"
    return str(value)
