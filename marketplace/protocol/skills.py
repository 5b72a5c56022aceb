"""Skills of both generations: a tolerant reader, a strict writer, one spec between them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from marketplace.protocol import parameters, templates
from marketplace.protocol.checks import MAX_BYTES, MAX_TAGS, Refused, strict_json
from marketplace.protocol.events import Draft, Event, Tag, Tags
from marketplace.protocol.kinds import PRIVATE_SKILL, SKILL
from marketplace.protocol.parameters import NOTHING_SET, RunParams
from marketplace.protocol.problems import NotWritable, Problem
from marketplace.protocol.triggers import TAG_NAMES, TriggerSpec, read_trigger, write_trigger
from marketplace.protocol.vocabulary import CONTEXT_MODES

MAX_D_BYTES = 184  # longer: relays do not index the address, and adoptions are missed
MAX_PRIVATE_BYTES = 40_000
_FRAME_BYTES = 400  # id, key, signature, kind and time of an event
GENERATION_A = frozenset({"context_mode", "llm", "tools", "soul", "max_tokens", "temperature"})
_KNOWN_CONTENT = GENERATION_A | {"description", "template", "base", "seed"}
_KNOWN_TAGS = TAG_NAMES | {"d", "scope", "description", "t", "license", "version"}


@dataclass(frozen=True)
class SkillSpec:
    """A skill as understood; what was not understood is kept in `extra_*`."""

    d: str
    public: bool = True
    description: str = ""
    template: str = ""
    context_mode: str | None = None  # inject, full, override; None: not given
    params: RunParams = NOTHING_SET  # of the content (A)
    soul: bool | None = None
    base: str | None = None
    topics: tuple[str, ...] = ()
    license: str = ""
    version: str = ""
    trigger: TriggerSpec | None = None
    trigger_tags: Tags = field(
        default=(), compare=False
    )  # as they stand; written back where the trigger is not usable here
    extra_content: tuple[tuple[str, str], ...] = ()  # unknown field -> its JSON, byte for byte
    extra_tags: Tags = ()
    generation: str = "B"
    readable: bool = True  # False: listed nowhere
    problems: tuple[Problem, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        return self.d

    @property
    def rule(self) -> str:
        """The context rule: compose (B), inject, override or full (A)."""
        if self.generation == "B":
            return "compose"
        return self.context_mode or "inject"

    @property
    def action(self) -> str:
        return self.trigger.action if self.trigger else "llm"

    @property
    def runnable(self) -> bool:
        if not self.readable or (self.trigger and self.trigger.action == "template" and not self.template.strip()):
            return False
        return not (self.rule == "full" and not self.template.strip())

    @property
    def tools(self) -> bool | tuple[str, ...]:
        """What it asks for, absent means all granted."""
        asked = self.params.tools
        if self.trigger and self.trigger.params.tools is not None:
            asked = self.trigger.params.tools
        return True if asked is None else asked

    @property
    def llm(self) -> str:
        asked = self.params.llm
        if self.trigger and self.trigger.params.llm is not None:
            asked = self.trigger.params.llm
        return asked or "default"


def read_skill(event: Event | Draft, plaintext: str | None = None) -> SkillSpec:
    """The skill in an event; never raises. `plaintext` is the decrypted content of a private one."""
    problems: list[Problem] = []
    trigger = read_trigger(event.tags)
    text = event.content if plaintext is None else plaintext
    content, raw, readable = _content(text, trigger, problems)
    if trigger:
        problems += trigger.problems
    spec = SkillSpec(
        d=event.value("d"),
        public=event.kind == SKILL,
        description=_text(content, "description", problems) or event.value("description"),
        template=_text(content, "template", problems),
        context_mode=_mode(content, problems),
        params=parameters.from_content(content, problems),
        soul=_soul(content, problems),
        base=_text(content, "base", problems) if "base" in content else None,
        topics=tuple(dict.fromkeys(topic for topic in event.values("t") if topic)),
        license=event.value("license"),
        version=event.value("version"),
        trigger=trigger,
        trigger_tags=tuple(tag for tag in event.tags if tag[0] in TAG_NAMES) if trigger else (),
        extra_content=tuple((key, text) for key, text in raw if key not in _KNOWN_CONTENT),
        extra_tags=_extra_tags(event.tags, trigger),
        generation="A" if GENERATION_A & content.keys() else "B",
        readable=readable,
    )
    found = [problem for problem in _own_problems(spec) if problem not in problems]
    return replace(spec, problems=(*problems, *found))


def problems_of(spec: SkillSpec) -> tuple[Problem, ...]:
    """Everything that stands against publishing this spec; warnings do not."""
    found = list(_own_problems(spec))
    if not spec.d.strip():
        found.append(Problem("d", "Give the skill a name; it becomes its address and cannot change later."))
    if spec.generation == "B" and spec.params and not spec.trigger:
        found.append(Problem("context_mode", "Model, tools and limits need a context mode or a trigger."))
    if spec.trigger:
        found += [problem for problem in spec.trigger.problems if problem not in found]
    content, tags = _written(spec)
    size = len(_json([tags, content]).encode("utf-8", "replace")) + _FRAME_BYTES
    if size > MAX_BYTES:
        found.append(Problem("template", f"The event would have about {size:,} bytes; relays take {MAX_BYTES:,}."))
    if not spec.public and len(content.encode("utf-8", "replace")) > MAX_PRIVATE_BYTES:
        found.append(Problem("template", f"A private skill holds at most {MAX_PRIVATE_BYTES:,} bytes."))
    if len(tags) > MAX_TAGS:
        found.append(Problem("", f"The event would have more than {MAX_TAGS:,} tags."))
    return tuple(found)


def write_skill(spec: SkillSpec) -> tuple[str, Tags]:
    """Content (in clear) and tags of the event. Raises NotWritable with the problems."""
    errors = tuple(problem for problem in problems_of(spec) if problem.level == "error")
    if errors:
        raise NotWritable(errors)
    return _written(spec)


def kind_of(spec: SkillSpec) -> int:
    return SKILL if spec.public else PRIVATE_SKILL


def normalised(spec: SkillSpec) -> SkillSpec:
    """The spec as it reads back after writing."""
    trigger = spec.trigger
    if trigger and trigger.usable:
        merged = {**spec.params.set(), **trigger.params.set()}
        trigger = replace(trigger, params=RunParams(**merged))
    return replace(spec, trigger=trigger)


def _written(spec: SkillSpec) -> tuple[str, Tags]:
    content: dict[str, Any] = {"description": spec.description}
    if spec.context_mode is not None:
        content["context_mode"] = spec.context_mode
    if spec.generation == "A":
        content |= parameters.to_content(spec.params)
    if spec.soul is not None:
        content["soul"] = spec.soul
    if spec.template:
        content["template"] = spec.template
    if spec.base is not None:
        content["base"] = spec.base
    fields = [f"{_json(key)}:{_json(value)}" for key, value in content.items()]
    fields += [f"{_json(key)}:{text}" for key, text in spec.extra_content]
    return "{" + ",".join(fields) + "}", tuple(tuple(tag) for tag in _tags(spec))


def _tags(spec: SkillSpec) -> list[list[str]]:
    tags = [["d", spec.d], ["scope", "public" if spec.public else "private"]]
    if spec.description:
        tags.append(["description", spec.description])
    tags += [["t", topic] for topic in spec.topics]
    trigger = normalised(spec).trigger
    if trigger is not None:
        tags += write_trigger(trigger) if trigger.usable else [list(tag) for tag in spec.trigger_tags]
    if spec.license:
        tags.append(["license", spec.license])
    if spec.version:
        tags.append(["version", spec.version])
    return tags + [list(tag) for tag in spec.extra_tags]


def _own_problems(spec: SkillSpec) -> list[Problem]:
    found = []
    if len(spec.d.encode("utf-8", "replace")) > MAX_D_BYTES:
        found.append(Problem("d", f"The name has more than {MAX_D_BYTES} bytes; relays would not find it."))
    if any(ord(character) < 32 or character == "\x7f" for character in spec.d):
        found.append(Problem("d", "The name holds a control character."))
    if spec.rule == "full" and not spec.template.strip():
        found.append(Problem("template", "The mode “full” needs a template."))
    if spec.action == "template":
        if not spec.template.strip():
            found.append(Problem("template", "A template action needs a text to fill in."))
        try:
            templates.read_action(spec.template)
        except ValueError as error:
            found.append(Problem("template", f"The recipient after DM is not a key. {error}"))
    return found


def _content(
    text: str, trigger: TriggerSpec | None, problems: list[Problem]
) -> tuple[Mapping[str, Any], list[tuple[str, str]], bool]:
    """The content's object, its top level as raw JSON, and whether it can be read."""
    try:
        row = strict_json(text)
    except Refused as error:
        if trigger and trigger.action == "template" and not text.lstrip().startswith("{"):
            return {"template": text}, [], True
        problems.append(Problem("content", f"The content is not a JSON object. {error}"))
        return {}, [], False
    if not isinstance(row, dict):
        problems.append(Problem("content", "The content is JSON, but not an object."))
        return {}, [], False
    return row, _raw_fields(text) if row.keys() - _KNOWN_CONTENT else [], True


def _raw_fields(text: str) -> list[tuple[str, str]]:
    """Each top-level key with the exact text of its value; the text is known to be an object."""
    decoder, at = json.JSONDecoder(), text.index("{") + 1
    found: list[tuple[str, str]] = []
    while True:
        at = _skip(text, at, " \t\r\n,")
        if text[at] == "}":
            return found
        key, at = scanstring(text, at + 1)
        start = _skip(text, _skip(text, at, " \t\r\n") + 1, " \t\r\n")
        _, at = decoder.raw_decode(text, start)
        found.append((key, text[start:at]))


def _skip(text: str, at: int, characters: str) -> int:
    while text[at] in characters:
        at += 1
    return at


def _text(content: Mapping[str, Any], name: str, problems: list[Problem]) -> str:
    value = content.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    problems.append(Problem(name, f"{name} is not a text."))
    return ""


def _mode(content: Mapping[str, Any], problems: list[Problem]) -> str | None:
    mode = content.get("context_mode")
    if mode is None or (isinstance(mode, str) and mode in CONTEXT_MODES):
        return mode
    problems.append(Problem("context_mode", "context_mode is neither inject, full nor override; inject applies."))
    return None


def _soul(content: Mapping[str, Any], problems: list[Problem]) -> bool | None:
    soul = content.get("soul")
    if soul is None or isinstance(soul, bool):
        return soul
    problems.append(Problem("soul", "soul is neither true nor false."))
    return None


def _extra_tags(tags: Tags, trigger: TriggerSpec | None) -> Tags:
    """What the writer does not write itself: unknown names, and known ones with more than it reads."""
    seen: set[str] = set()
    extra: list[Tag] = []
    for tag in tags:
        known = tag[0] in _KNOWN_TAGS and (trigger is not None or tag[0] not in TAG_NAMES)
        if not known or (tag[0] in {"d", "scope", "description", "license", "version"} and tag[0] in seen):
            extra.append(tag)
        seen.add(tag[0])
    return tuple(extra)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


__all__ = [
    "NotWritable",
    "Problem",
    "RunParams",
    "SkillSpec",
    "kind_of",
    "normalised",
    "problems_of",
    "read_skill",
    "write_skill",
]
