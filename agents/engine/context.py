"""Which messages a model will see: the four context rules, static parts first.

Same input, same bytes. Two runs of one agent share the longest possible prefix, because provider
prompt caches bill it at a fraction: soul, skills, admin's data, catalogue, examples, history, live input.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from agents.engine.fences import fence
from marketplace.protocol import templates
from marketplace.protocol.templates import Section

HISTORY_MESSAGES = 20
HISTORY_TOKENS = 8_000
SKILL_TOKENS = 8_000
ADMIN_PARTS = ("admin_profile", "admin_notes", "admin_relays")
LIVE = frozenset({"message", "triggering_event"})
_ADMIN_TITLES = {
    "admin_profile": "Your admin's profile",
    "admin_notes": "Your admin's recent notes",
    "admin_relays": "Your admin's relays",
}
REASONS = {
    "compose": "The skill names no context mode: adopted skills are composed in their order.",
    "none": "No skill was invoked: adopted skills are composed in their order.",
    "inject": "Context mode inject: the soul first, then the skill's instructions.",
    "override": "Context mode override: the skill stands in place of the soul's instructions.",
    "full": "Context mode full: only the skill's own template.",
}


@dataclass(frozen=True, slots=True)
class SkillText:
    """What the context needs of a skill."""

    name: str
    template: str
    rule: str = "compose"
    action: str = "llm"
    address: str = ""  # tells two skills of one name apart
    foreign: bool = False  # by others, in a version that the owner has not looked at

    def is_same(self, other: "SkillText | None") -> bool:
        return other is not None and (self.address, self.name) == (other.address, other.name)


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str

    def to_dict(self) -> dict[str, str]:
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, slots=True)
class Part:
    name: str  # soul, skill:<name>, admin, history, input, …
    tokens: int


def _characters(text: str) -> int:
    return -(-len(text) // 4)


@dataclass(frozen=True)
class ContextInput:
    """Everything a context is made of; nothing is fetched later."""

    mark: str  # of the fences, unguessable and the same for one run
    soul: str = ""
    invoked: SkillText | None = None
    adopted: tuple[SkillText, ...] = ()  # always on, in list order
    values: Mapping[str, str] = field(default_factory=dict)  # variables that a tool resolved
    arguments: Mapping[str, str] = field(default_factory=dict)  # this run's own {{names}}
    message: str | None = None
    event: str | None = None  # the triggering event as JSON
    history: tuple[Message, ...] = ()
    catalogue: str = ""  # of skills on demand, as it was first told
    replacement: str = ""  # a newer one, after what was said since
    by_name: tuple[tuple[str, str], ...] = ()  # skills that a person's own words invoked: (name, what is handed over)
    remarks: tuple[str, ...] = ()  # warnings from before
    lasting_mark: str = ""  # of fences in what several runs of the agent have in common
    skill_tokens: int = SKILL_TOKENS
    count: Callable[[str], int] = _characters  # tokens of a text

    @property
    def rule(self) -> str:
        return self.invoked.rule if self.invoked else "compose"


@dataclass(frozen=True)
class Context:
    rule: str
    reason: str
    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    warnings: tuple[str, ...]


def names_used(given: ContextInput) -> tuple[str, ...]:
    """The variables that resolving is worth for this context, in order, each once."""
    rule, names = given.rule, list[str]()
    soul = templates.sections(given.soul)
    if rule == "override":
        soul = tuple(section for section in soul if section.role != "system")
    own = templates.variables(given.invoked.template) if given.invoked else ()
    if rule != "full" or "soul" in own:
        names += [name for section in soul for name in templates.variables(section.text)]
    if rule == "compose":
        for skill in given.adopted:
            names += [name for section in _contributed(skill, given) for name in templates.variables(section.text)]
    names += own
    if rule in {"inject", "override"}:
        names += [name for name in ADMIN_PARTS if name not in names]
    return tuple(dict.fromkeys(names))


def assemble(given: ContextInput) -> Context:
    """The messages by the rule of the invoked skill."""
    return _Assembly(given).context()


def _contributed(skill: SkillText, given: ContextInput) -> tuple[Section, ...]:
    """What an adopted skill adds: all of it when invoked, else its system sections at most."""
    if skill.is_same(given.invoked):
        return ()
    if skill.rule in {"full", "override"} or skill.action == "template":
        return ()
    return tuple(section for section in templates.sections(skill.template) if section.role == "system")


class _Assembly:
    """One context in the making."""

    def __init__(self, given: ContextInput) -> None:
        self.given = given
        self.warnings: dict[str, None] = {}
        self.messages: list[Message] = []
        self.parts: list[Part] = []
        self.named: set[str] = set()
        self.values = self._values()
        self.own = self._limited(given.invoked, templates.sections(given.invoked.template)) if given.invoked else ()

    def context(self) -> Context:
        given, rule = self.given, self.given.rule
        self._soul(rule)
        if rule == "compose":
            for skill in given.adopted:
                if skill.is_same(given.invoked):
                    self._head(rule)
                else:
                    self._add(f"skill:{skill.name}", self._limited(skill, _contributed(skill, given)), skill.foreign)
        if given.invoked and not self._placed(rule):
            self._head(rule)
        if rule in {"inject", "override"}:
            self._admin()
        if given.catalogue:
            self._say("catalogue", "user", given.catalogue)
        self._rest()
        for name, text in given.by_name:
            self._say(f"/{name}", "user", text)
        reason = REASONS[rule if given.invoked or rule != "compose" else "none"]
        return Context(rule, reason, tuple(self.messages), tuple(self.parts), tuple(self.warnings))

    def _placed(self, rule: str) -> bool:
        """Whether the invoked skill already stands at its place in the list."""
        return rule == "compose" and any(skill.is_same(self.given.invoked) for skill in self.given.adopted)

    def _values(self) -> dict[str, str]:
        given = self.given
        values = {**given.arguments, **given.values}
        values["message"] = given.message or ""
        values["triggering_event"] = fence("event", given.event, given.mark) if given.event is not None else ""
        values["soul"] = ""
        soul = [self._expand(section.text, values) for section in templates.sections(given.soul)]
        values["soul"] = "\n\n".join(soul)
        self.warnings = dict.fromkeys(given.remarks)  # the soul's own are reported where it is used
        self.named.clear()
        return values

    def _soul(self, rule: str) -> None:
        sections = templates.sections(self.given.soul)
        if rule == "full":
            return
        if rule == "override":
            sections = tuple(section for section in sections if section.role != "system")
            self._add(self._part, _leading(self.own))
        self._add("soul", sections)

    @property
    def _part(self) -> str:
        return f"skill:{self.given.invoked.name}" if self.given.invoked else ""

    def _head(self, rule: str) -> None:
        """The leading system sections; what follows them may hold the live input and comes later."""
        if rule != "override":
            self._add(self._part, _leading(self.own))

    def _rest(self) -> None:
        """The skill's own turns, history and live input, the live one last."""
        given = self.given
        tail = self.own[len(_leading(self.own)) :]
        live = any(LIVE & set(templates.variables(section.text)) for section in tail if section.role == "user")
        if not live:
            self._add(self._part, tail)
        if given.rule != "full":
            self._history()
        if given.replacement:
            self._say("catalogue", "user", given.replacement)
        if live:
            self._add(self._part, tail)
        elif given.rule == "full" and any(section.role == "user" for section in tail):
            if given.message or given.event is not None:
                self._warn("The skill's own user section names neither message nor event: neither is sent.")
        else:
            self._live_input()

    def _live_input(self) -> None:
        given = self.given
        if given.message:
            self._say("input", "user", given.message)
        elif given.event is not None:
            self._say("input", "user", self.values["triggering_event"])

    def _admin(self) -> None:
        for name in ADMIN_PARTS:
            text = self.given.values.get(name, "")
            if text and name not in self.named:
                self._say("admin", "system", f"{_ADMIN_TITLES[name]}:\n{text}")

    def _history(self) -> None:
        kept, total = [], 0
        for message in reversed(self.given.history[-HISTORY_MESSAGES:]):
            total += self.given.count(message.content)
            if total > HISTORY_TOKENS:
                break
            kept.append(message)
        if len(kept) < len(self.given.history):
            self._warn(f"{len(self.given.history) - len(kept)} older messages were left out.")
        for message in reversed(kept):
            self._say("history", message.role, message.content)

    def _add(self, part: str, sections: tuple[Section, ...], foreign: bool = False) -> None:
        for section in sections:
            text = self._expand(section.text, self.values)
            if foreign:
                text = fence("foreign skill", text, self.given.lasting_mark or self.given.mark)
            self._say(part, section.role, text)

    def _expand(self, text: str, values: Mapping[str, str]) -> str:
        names = templates.variables(text)
        self.named.update(names)
        expanded = templates.expand(text, values)
        for name in expanded.unknown:
            self._warn(f"“{name}” is not known here and became empty.")
        live = [name for name in names if name in LIVE]
        if live and not any(values.get(name) for name in live):
            self._warn(f"“{live[0]}” is empty: this run was started without it.")
        return expanded.text

    def _limited(self, skill: SkillText, sections: tuple[Section, ...]) -> tuple[Section, ...]:
        """Its text within the limit. Cut before it is filled in, so that no fence loses its end."""
        left, kept = self.given.skill_tokens, list[Section]()
        total = sum(self.given.count(section.text) for section in sections)
        if total <= left:
            return sections
        for section in sections:
            text = self._shortened(section.text, left)
            left -= self.given.count(text)
            kept.append(Section(section.role, text))
        kept[-1] = Section(kept[-1].role, f"{kept[-1].text}\n[cut here: {total - self.given.skill_tokens} more tokens]")
        self._warn(f"skill:{skill.name} was cut from {total:,} to {self.given.skill_tokens:,} tokens.")
        return tuple(kept)

    def _shortened(self, text: str, most: int) -> str:
        while (tokens := self.given.count(text)) > most:
            text = text[: min(len(text) - 1, len(text) * most // tokens)]
        return text

    def _say(self, part: str, role: str, text: str) -> None:
        if not text.strip():
            return
        self.messages.append(Message(role, text))
        tokens = self.given.count(text)
        for at, known in enumerate(self.parts):
            if known.name == part:
                self.parts[at] = replace(known, tokens=known.tokens + tokens)
                return
        self.parts.append(Part(part, tokens))

    def _warn(self, words: str) -> None:
        self.warnings[words] = None


def _leading(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    """The system sections before the first turn of a conversation."""
    end = next((at for at, section in enumerate(sections) if section.role != "system"), len(sections))
    return sections[:end]
