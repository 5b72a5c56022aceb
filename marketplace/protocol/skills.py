"""Skills of both generations: a tolerant reader, a strict writer, one spec between them."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from marketplace.protocol import contents, hidden, parameters, templates, triggers
from marketplace.protocol.checks import MAX_BYTES, MAX_TAGS
from marketplace.protocol.events import Draft, Event, Tag, Tags
from marketplace.protocol.kinds import PRIVATE_SKILL, SKILL
from marketplace.protocol.parameters import NOTHING_SET, RunParams
from marketplace.protocol.problems import NotWritable, Problem
from marketplace.protocol.storable import is_storable, storable
from marketplace.protocol.triggers import TriggerSpec, read_trigger, tag_names, write_trigger

MAX_D_BYTES = 184  # longer: relays do not index the address, and adoptions are missed
MAX_PRIVATE_BYTES = 40_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FRAME_BYTES = 400  # id, key, signature, kind and time of an event
# The id of an event with other control characters is not the same everywhere (NIP-01 and JSON differ).
UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
_KNOWN_TAGS = frozenset({"d", "scope", "description", "t", "license", "version"})


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
    tags = _storable_tags(event.tags)
    trigger = read_trigger(tags)
    text = event.content if plaintext is None else plaintext
    sealed = event.kind == PRIVATE_SKILL and plaintext is None and text.lstrip()[:1] != "{"
    if sealed:
        problems.append(Problem("content", "The content is encrypted; only its author can read it."))
    content, raw, readable = ({}, [], False) if sealed else contents.read_content(text, trigger, problems)
    generation = "A" if contents.GENERATION_A & content.keys() else "B"
    if trigger:
        problems += trigger.problems
    spec = SkillSpec(
        d=event.value("d"),
        public=event.kind == SKILL,
        description=contents.text(content, "description", problems) or storable(event.value("description")),
        template=contents.text(content, "template", problems),
        context_mode=contents.mode(content, problems),
        params=parameters.from_content(content, problems) if generation == "A" else NOTHING_SET,
        soul=contents.soul(content, problems),
        base=contents.text(content, "base", problems) if content.get("base") is not None else None,
        topics=tuple(dict.fromkeys(filter(None, storable(event.values("t"))))),
        license=storable(event.value("license")),
        version=storable(event.value("version")),
        trigger=trigger,
        trigger_tags=_trigger_tags(tags, trigger) if trigger else (),
        extra_content=tuple((key, text) for key, text in raw if key not in contents.KNOWN[generation]) if raw else (),
        extra_tags=_extra_tags(tags, trigger),
        generation=generation,
        readable=readable,
    )
    if readable:
        problems += [problem for problem in _own_problems(spec) if problem not in problems]
    return replace(spec, problems=tuple(problems)) if problems else spec


def problems_of(spec: SkillSpec) -> tuple[Problem, ...]:
    """Everything that stands against publishing this spec; warnings do not."""
    found = list(_own_problems(spec))
    if not spec.readable:
        found.append(Problem("content", "The content it has cannot be read here, and would be lost."))
    if not spec.d.strip():
        found.append(Problem("d", "Give the skill a name; it becomes its address and cannot change later."))
    if spec.generation == "B" and spec.params and not spec.trigger:
        found.append(Problem("context_mode", "Model, tools and limits need a context mode or a trigger."))
    if spec.trigger:
        found += [problem for problem in triggers.problems_of(spec.trigger) if problem not in found]
    found += parameters.problems_of(parameters.tidy(spec.params))
    content, tags = _written(normalised(spec))
    if any(UNSAFE.search(value) for tag in tags for value in tag) or UNSAFE.search(content):
        found.append(
            Problem("", "A text holds a control character or half a character, which others read differently.")
        )
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
    return _written(normalised(spec))


def kind_of(spec: SkillSpec) -> int:
    return SKILL if spec.public else PRIVATE_SKILL


def normalised(spec: SkillSpec) -> SkillSpec:
    """The spec as it reads back after writing: parameters in both places where both generations look."""
    mode, soul = spec.context_mode, spec.soul
    trigger, params = spec.trigger, parameters.tidy(spec.params)
    if spec.generation == "A" and mode is None and soul is None and not params.set().keys() - {"seed"}:
        mode = "inject"  # said aloud, or the content would read as generation B
    generation = "A" if mode is not None or soul is not None else spec.generation
    if trigger and trigger.usable:
        merged = RunParams(**{**params.set(), **parameters.tidy(trigger.params).set()})
        trigger = replace(trigger, params=merged, problems=())
        params = params if generation == "A" else NOTHING_SET
    return replace(
        spec,
        context_mode=mode,
        generation=generation,
        trigger=trigger,
        params=params,
        topics=tuple(dict.fromkeys(topic for topic in spec.topics if topic)),
        extra_content=tuple((key, text) for key, text in spec.extra_content if key not in contents.KNOWN[generation]),
        extra_tags=_still_extra(spec),
    )


def _still_extra(spec: SkillSpec) -> Tags:
    """Without tags that, where they stand now, would be read as the skill's own."""
    own = tag_names(spec.trigger.kind) if spec.trigger else frozenset()
    own |= {name for name in ("description", "license", "version") if not getattr(spec, name)}
    return tuple(tag for tag in spec.extra_tags if tag[0] not in own)


def _written(spec: SkillSpec) -> tuple[str, Tags]:
    """Content and tags of a normalised spec."""
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
    if spec.trigger is not None:
        tags += write_trigger(spec.trigger) if spec.trigger.usable else [list(tag) for tag in spec.trigger_tags]
    if spec.license:
        tags.append(["license", spec.license])
    if spec.version:
        tags.append(["version", spec.version])
    return tags + [list(tag) for tag in spec.extra_tags]


def _own_problems(spec: SkillSpec) -> list[Problem]:
    found = []
    if len(spec.d.encode("utf-8", "replace")) > MAX_D_BYTES:
        found.append(Problem("d", f"The name has more than {MAX_D_BYTES} bytes; relays would not find it."))
    if _CONTROL.search(spec.d):
        found.append(Problem("d", "The name holds a control character."))
    found += _looks(spec)
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


def _looks(spec: SkillSpec) -> list[Problem]:
    """What a reader would not notice: said beside the skill, never removed."""
    found = []
    for name, text in (("d", spec.d), ("description", spec.description), ("template", spec.template)):
        if places := hidden.hidden(text):
            codes = ", ".join(dict.fromkeys(code for _, code in places[:200]))[:80]
            found.append(Problem(name, f"Holds characters that are not seen: {codes}.", "warning"))
    if scripts := hidden.mixed_scripts(spec.d):
        found.append(Problem("d", f"The name mixes {' and '.join(scripts)} letters that look alike.", "warning"))
    return found


def _storable_tags(tags: Tags) -> Tags:
    """All but the name, which is the address and stays what it is."""
    if is_storable("".join(map("".join, tags))):
        return tags
    return tuple(tag if tag[0] == "d" else tuple(storable(tag)) for tag in tags)


def _trigger_tags(tags: Tags, trigger: TriggerSpec) -> Tags:
    own = tag_names(trigger.kind)
    return tuple([tag for tag in tags if tag[0] in own])


def _extra_tags(tags: Tags, trigger: TriggerSpec | None) -> Tags:
    """What the writer does not write itself: unknown names, and what stands a second time."""
    known = _KNOWN_TAGS | tag_names(trigger.kind) if trigger else _KNOWN_TAGS
    seen: set[str] = set()
    extra: list[Tag] = []
    for tag in tags:
        name = tag[0]
        if name not in known or (name in seen and name != "t" and name in _KNOWN_TAGS):
            extra.append(tag)
        seen.add(name)
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
