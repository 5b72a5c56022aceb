"""Skills as SKILL.md and back: Didactyl's fields stand under `metadata`, keys of others stay with the skill."""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from marketplace.protocol import contents, parameters
from marketplace.protocol.events import Tags
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.problems import Problem
from marketplace.protocol.skillmd.reading import MAX_DESCRIPTION, MAX_NAME, SkillFile, body_of, flat
from marketplace.protocol.skills import SkillSpec, normalised
from marketplace.protocol.triggers import read_trigger, write_trigger
from marketplace.protocol.vocabulary import CONTEXT_MODES

PREFIX = "didactyl-"  # of the metadata keys that hold what the format has no place for
FOREIGN = "skill_md"  # the content field that keeps a SKILL.md's other keys
MAX_COMPATIBILITY = 500
_NATIVE = frozenset({"name", "description", "license", "allowed-tools"})
_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9_ .,;()/'!?+-]*[A-Za-z0-9_.,;()/'!?+])?")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})  # not texts for every reader
_ESCAPED = re.compile('[\\\\"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]')
_HALF = re.compile("[\ud800-\udfff]")


def from_spec(spec: SkillSpec) -> str:
    """The skill as SKILL.md. Its name and description are made to fit the format; the exact ones stand beside."""
    spec = normalised(spec)
    name, foreign = plain_name(spec.d), others(spec)
    fields: dict[str, str] = {"name": name, "description": _short(spec.description, name)}
    if spec.license:
        fields["license"] = spec.license
    compatibility = foreign.get("compatibility")
    if isinstance(compatibility, str) and 0 < len(compatibility) <= MAX_COMPATIBILITY:
        fields["compatibility"] = foreign.pop("compatibility")
    if spec.tools is not True:
        fields["allowed-tools"] = " ".join(spec.tools or ())  # present and empty: none
    metadata = _plain_metadata(foreign)
    if spec.version:
        metadata["version"] = spec.version
    own = _own(spec) | ({"front-matter": _json(foreign)} if foreign else {})
    metadata |= {PREFIX + key: text for key, text in own.items()}
    lines = [f"{key}: {_scalar(text)}" for key, text in fields.items()]
    if metadata:
        lines += ["metadata:", *(f"  {_scalar(key)}: {_scalar(text)}" for key, text in metadata.items())]
    front = "\n".join(lines)
    return f"---\n{front}\n---\n\n{_shown(spec.template)}\n"


def to_spec(file: SkillFile) -> SkillSpec:
    """The skill it describes: its body are the instructions. Raises ValueError for an unusable file."""
    if not file.usable:
        raise ValueError("; ".join(problem.message for problem in file.problems))
    metadata = file.fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    own = _Own({key[len(PREFIX) :]: text for key, text in metadata.items() if key.startswith(PREFIX)})
    mode = own.text("context-mode")
    spec = SkillSpec(
        d=own.unless_edited("name", file.name, plain_name),
        public=own.text("scope") != "private",
        description=own.unless_edited("description", file.description, lambda text: _short(text, file.name)),
        template=own.unless_edited("template", file.body, _shown),
        context_mode=mode if mode in CONTEXT_MODES else None,
        params=own.params(),
        soul={"true": True, "false": False}.get(own.text("soul")),
        base=own.text("base") if "base" in own.values else None,
        topics=tuple(topic for topic in own.listed("topics") if isinstance(topic, str) and topic),
        license=_text(file.fields.get("license")),
        version=_text(metadata.get("version")) or _text(file.fields.get("version")),
        trigger_tags=own.tags("trigger"),
        extra_content=own.content(),
        extra_tags=own.tags("tags"),
    )
    spec = _with_tools(replace(spec, trigger=read_trigger(spec.trigger_tags)), file)
    marked = spec.context_mode is not None or spec.soul is not None or bool(spec.params)
    foreign = _json(_foreign(file, own))
    extra = ((FOREIGN, foreign),) if foreign != "{}" else ()
    return replace(
        spec,
        generation="A" if marked else "B",
        extra_content=extra + spec.extra_content,
        problems=file.problems + tuple(own.problems),
    )


def plain_name(d: str) -> str:
    """A name that the format takes: small letters, digits and single hyphens, at most 64."""
    text = d
    for _ in range(3):  # small letters of some alphabets are composed differently
        text = unicodedata.normalize("NFKC", text).lower()
    words = "".join(character if character.isalnum() else " " for character in text).split()
    return "-".join(words)[:MAX_NAME].strip("-") or "skill"


def _own(spec: SkillSpec) -> dict[str, str]:
    """What the format has no place for, as texts."""
    name, own = plain_name(spec.d), dict[str, str]()
    if name != spec.d:
        own["name"] = spec.d
    if spec.description != _short(spec.description, name):
        own["description"] = spec.description
    if spec.template != _shown(spec.template):
        own["template"] = spec.template
    if not spec.public:
        own["scope"] = "private"
    if spec.context_mode is not None:
        own["context-mode"] = spec.context_mode
    if spec.soul is not None:
        own["soul"] = str(spec.soul).lower()
    if spec.base is not None:
        own["base"] = spec.base
    for key, value in parameters.to_content(spec.params).items():
        own[key.replace("_", "-")] = value if isinstance(value, str) else _json(value)
    if spec.topics:
        own["topics"] = _json(spec.topics)
    if spec.trigger is not None:
        own["trigger"] = _json(write_trigger(spec.trigger) if spec.trigger.usable else spec.trigger_tags)
    if rest := [(key, raw) for key, raw in spec.extra_content if key != FOREIGN or not _object(raw)]:
        own["content"] = "{" + ",".join(f"{_json(key)}:{raw}" for key, raw in rest) + "}"
    if spec.extra_tags:
        own["tags"] = _json(spec.extra_tags)
    return own


class _Own:
    """The metadata that `_own` wrote, read tolerantly: what cannot be read is said and left out."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = {key: text for key, text in values.items() if isinstance(text, str)}
        self.problems: list[Problem] = []

    def text(self, key: str) -> str:
        return self.values.get(key, "")

    def unless_edited(self, key: str, shown: str, shorten: Any) -> str:
        """The exact text, as long as what the format shows of it was not edited since."""
        exact = self.values.get(key)
        return exact if exact is not None and shorten(exact) == shown else shown

    def read(self, key: str, kind: type) -> Any:
        if key not in self.values:
            return kind()
        try:
            found = json.loads(self.values[key])
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, kind):
            self.problems.append(Problem("", f"metadata {PREFIX}{key} cannot be read and was left out.", "warning"))
            return kind()
        return found

    def listed(self, key: str) -> list[Any]:
        found: list[Any] = self.read(key, list)
        return found

    def tags(self, key: str) -> Tags:
        tags = self.listed(key)
        if not all(isinstance(tag, list) and tag and all(isinstance(part, str) for part in tag) for tag in tags):
            self.problems.append(Problem("", f"metadata {PREFIX}{key} is not a list of tags.", "warning"))
            return ()
        return tuple(tuple(tag) for tag in tags)

    def params(self) -> RunParams:
        given: dict[str, Any] = {}
        for name in parameters.NAMES:
            text = self.values.get(name.replace("_", "-"))
            if text is not None:
                given[name] = text if name == "llm" else _parsed(text)
        return parameters.from_content(given, self.problems)

    def content(self) -> tuple[tuple[str, str], ...]:
        """Unknown fields of the content with the bytes they had."""
        raw = tuple(contents.raw_fields(self.values["content"])) if self.read("content", dict) else ()
        known = contents.KNOWN["A"] | {FOREIGN}
        return tuple((key, text) for key, text in raw if key not in known)


def _with_tools(spec: SkillSpec, file: SkillFile) -> SkillSpec:
    """`allowed-tools` is what counts: where it was edited, the exact list beside it is forgotten."""
    kept = () if spec.tools is False else spec.tools
    written = None if kept is True else tuple(dict.fromkeys(" ".join(kept or ()).replace(",", " ").split()))
    if file.tools == written:
        return spec
    if spec.trigger is None:
        return replace(spec, params=replace(spec.params, tools=file.tools))
    tags = tuple(tag for tag in spec.trigger_tags if tag[0] != "tools")
    if file.tools is not None:  # as an array, since a tool may be called "true"
        tags += (("tools", _json(file.tools)),)
    return replace(spec, params=replace(spec.params, tools=None), trigger_tags=tags, trigger=read_trigger(tags))


def _foreign(file: SkillFile, own: _Own) -> dict[str, Any]:
    """Keys of the front matter that are neither the format's own nor ours, as they were."""
    found = {key: value for key, value in file.fields.items() if key not in _NATIVE}
    if isinstance(found.get("metadata"), dict):
        metadata = found.pop("metadata")
        others = {key: text for key, text in metadata.items() if not key.startswith(PREFIX) and key != "version"}
        found |= {"metadata": others} if others else {}
    for key, value in own.read("front-matter", dict).items():
        if key == "metadata" and isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = {**found[key], **value}
        elif key not in found:
            found[key] = value
    return found


def others(spec: SkillSpec) -> dict[str, Any]:
    """The keys of a SKILL.md that are neither the format's own nor ours, as the skill keeps them."""
    return next((_object(raw) for key, raw in spec.extra_content if key == FOREIGN), {})


def _plain_metadata(foreign: dict[str, Any]) -> dict[str, str]:
    """Takes the metadata that the format can hold out of `foreign`."""
    metadata = foreign.get("metadata")
    if not isinstance(metadata, dict):
        return {}
    fit = {key: text for key, text in metadata.items() if isinstance(text, str) and key and key != "version"}
    fit = {key: text for key, text in fit.items() if not key.startswith(PREFIX) and key == flat(key)}
    rest = {key: value for key, value in metadata.items() if key not in fit}
    if rest:
        foreign["metadata"] = rest
    else:
        del foreign["metadata"]
    return fit


def _short(description: str, name: str) -> str:
    """The description as the format takes it: one line, never empty."""
    return _HALF.sub("\ufffd", flat(description))[:MAX_DESCRIPTION].strip() or f"The skill {name}."


def _shown(template: str) -> str:
    return body_of(_HALF.sub("\ufffd", template))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if len(text) < 100_000 else text
    except (ValueError, RecursionError):
        return text


def _object(raw: str) -> dict[str, Any]:
    found = _parsed(raw)
    return found if isinstance(found, dict) else {}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _scalar(text: str) -> str:
    """A text for YAML on one line. Three hyphens in a row never stand in it: the reference reader splits there."""
    if _PLAIN.fullmatch(text) and "---" not in text and text.lower() not in _WORDS:
        return text
    if "---" not in text and not _ESCAPED.search(text.replace("\\", "").replace('"', "")):
        return "'" + text.replace("'", "''") + "'"
    return '"' + _ESCAPED.sub(_escape, text).replace("---", "-\\x2d-") + '"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return f"\\{character}" if character in '\\"' else f"\\u{ord(character):04x}"
