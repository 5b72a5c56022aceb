"""The editor's form: what an author typed, read into a SkillSpec, with the core's problems beside their fields."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from django import forms

from marketplace import signing
from marketplace.models import ArchivedEvent, Identity, User
from marketplace.models.chains import sources
from marketplace.protocol import chains, kinds, nip19, parameters
from marketplace.protocol.events import Address, Event, Tag
from marketplace.protocol.parameters import NOTHING_SET, RunParams
from marketplace.protocol.problems import Problem
from marketplace.protocol.skills import SkillSpec, problems_of, read_skill
from marketplace.protocol.triggers import KINDS, TriggerSpec, chain, read_trigger
from marketplace.protocol.vocabulary import ACTIONS, CONTEXT_MODES

# The core's names of what the form calls otherwise.
_FIELD_OF = {"param": "params", "content": "template", "base": "template", "soul": "context_mode"}
MODES = [
    ("", "compose: in the order of adoption"),
    *((name, f"{name}: {words}") for name, words in CONTEXT_MODES.items()),
]
TOOLS = [("", "not said: all that the agent grants"), ("all", "all"), ("none", "none"), ("list", "only these")]


def _text(**options: Any) -> forms.CharField:
    return forms.CharField(required=False, strip=False, **options)


def _area(rows: int, **options: Any) -> forms.CharField:
    return _text(widget=forms.Textarea(attrs={"rows": rows, "spellcheck": "false"}), **options)


class SkillForm(forms.Form):
    """Every field is text as typed; `spec` is what it says once `is_valid` was asked."""

    identity = forms.ModelChoiceField(Identity.objects.none(), label="Sign as", empty_label=None, required=False)
    visibility = forms.ChoiceField(choices=[("public", "public"), ("private", "private")], required=False)
    d = _text(label="Name", help_text="Its address for good; another name is another skill.")
    description = _area(2, help_text="One or two sentences: when to use it.")
    topics = _text(help_text="Separated by commas.")
    template = _area(18, help_text="Lines that are just system:, user: or assistant: start a section.")
    context_mode = forms.ChoiceField(choices=MODES, required=False, label="Context")
    llm = _text(label="Model chain", help_text="provider/model, another/model or an alias; the first that answers.")
    max_tokens = _text(label="Max tokens")
    temperature = _text()
    seed = _text()
    tools_choice = forms.ChoiceField(choices=TOOLS, required=False, label="Tools")
    tools = _text(label="Tool names", help_text="Separated by commas, for “only these”.")
    license = _text(label="Licence")
    version = _text()
    trigger = forms.ChoiceField(required=False, label="Starts by itself")
    filter = _area(4, help_text="One NIP-01 filter as JSON. <admin_pubkey> and <agent_pubkey> are filled when armed.")
    schedule = _text(help_text="Five fields: minute hour day month weekday.")
    tz = _text(label="Time zone", help_text="Such as Europe/Berlin; empty is UTC.")
    params = _area(3, label="Parameters", help_text="One a line: name string|number|boolean required|optional.")
    source = _text(label="After the skill", help_text="Its address or naddr.")
    on = forms.ChoiceField(choices=[(name, f"it {words}") for name, words in chain.ENDINGS.items()], required=False)
    action = forms.ChoiceField(choices=[(name, f"{name}: {words}") for name, words in ACTIONS.items()], required=False)
    enabled = forms.BooleanField(required=False, label="Enabled")

    spec: SkillSpec

    def __init__(self, data: Mapping[str, Any] | None, user: User, base: SkillSpec | None = None) -> None:
        super().__init__(cast(Any, data))
        self.base = base or SkillSpec(d="")
        self.warnings: list[Problem] = []
        choices = [("", "no: only when asked"), *((name, kind.LABEL) for name, kind in KINDS.items())]
        if self.base.trigger and self.base.trigger.kind not in KINDS:
            choices.append((self.base.trigger.kind, f"{self.base.trigger.kind} (not usable here, kept as it is)"))
        cast(forms.ChoiceField, self.fields["trigger"]).choices = choices
        keys = Identity.objects.filter(user=user, custody=Identity.Custody.HELD).order_by("label", "pk")
        cast(Any, self.fields["identity"]).queryset = keys
        cast(Any, self.fields["identity"]).label_from_instance = _key_words
        for name, field in self.fields.items():
            field.widget.attrs["aria-describedby"] = f"error-{name}"

    def clean(self) -> dict[str, Any]:
        typed = self.cleaned_data
        found: list[Problem] = []
        self.spec = spec_of(typed, self.base, found)
        found += [*problems_of(self.spec), *self._circle()]
        for problem in dict.fromkeys(found):
            name = _FIELD_OF.get(problem.field, problem.field)
            if problem.level == "warning":
                self.warnings.append(problem)
            else:
                self.add_error(name if name in self.fields else None, problem.message)
        return typed

    def _circle(self) -> list[Problem]:
        """Skills that start each other would never end."""
        identity, trigger = self.cleaned_data.get("identity"), self.spec.trigger
        if identity is None or trigger is None or not isinstance(trigger.data, chain.Chain):
            return []
        own = str(Address(kinds.SKILL if self.spec.public else kinds.PRIVATE_SKILL, identity.pubkey, self.spec.d))
        source = str(trigger.data.source)
        way = chains.cycle({**sources(source), own: source}, own)
        return [Problem("source", f"It would start itself: {chains.words(way)}.")] if way else []


def spec_of(typed: Mapping[str, Any], base: SkillSpec, found: list[Problem]) -> SkillSpec:
    """What the fields say, over a base whose unknown fields and tags stay byte for byte."""
    params, mode = _params(typed, base, found), _one_of(typed, "context_mode") or None
    old = base.trigger.params if base.trigger else NOTHING_SET
    merged = merged_params(base)
    own, at_trigger = (base.params, old) if params == merged else (params, NOTHING_SET)
    trigger, tags = _trigger(typed, base, at_trigger, found)
    return replace(
        base,
        d=_one_of(typed, "d").strip(),
        public=_one_of(typed, "visibility") != "private",
        description=_lines(_one_of(typed, "description")).strip(),
        template=_kept(_lines(_one_of(typed, "template")), base.template),
        context_mode=mode,
        generation="A" if mode else "B",
        soul=base.soul if mode else None,
        params=own,
        topics=tuple(
            dict.fromkeys(word.strip().lstrip("#") for word in _one_of(typed, "topics").split(",") if word.strip())
        ),
        license=_one_of(typed, "license").strip(),
        version=_one_of(typed, "version").strip(),
        trigger=trigger,
        trigger_tags=tags,
        readable=True,
        problems=(),
    )


def merged_params(spec: SkillSpec) -> RunParams:
    """What the form shows as one: the trigger's tags over the content."""
    return RunParams(**{**spec.params.set(), **(spec.trigger.params.set() if spec.trigger else {})})


def fields_of(spec: SkillSpec) -> dict[str, str]:
    """The form's fields for a skill that exists."""
    params, trigger = merged_params(spec), spec.trigger
    fields = {
        "visibility": "public" if spec.public else "private",
        "d": spec.d,
        "description": spec.description,
        "topics": ", ".join(spec.topics),
        "template": spec.template,
        "context_mode": spec.rule if spec.generation == "A" else "",
        "license": spec.license,
        "version": spec.version,
        "trigger": trigger.kind if trigger else "",
        "action": trigger.action if trigger else "llm",
        "enabled": "on" if trigger is None or trigger.enabled else "",
        "tools_choice": "",
    }
    for name in ("llm", "max_tokens", "temperature", "seed"):
        value = getattr(params, name)
        fields[name] = "" if value is None else str(value)
    if isinstance(params.tools, bool):
        fields["tools_choice"] = "all" if params.tools else "none"
    elif params.tools is not None:
        fields |= {"tools_choice": "list", "tools": ", ".join(params.tools)}
    return fields | _trigger_fields(spec.trigger_tags)


def _trigger_fields(tags: tuple[Tag, ...]) -> dict[str, str]:
    first = {tag[0]: tag[1] for tag in reversed(tags) if len(tag) > 1}
    fields = {name: first[name] for name in ("filter", "schedule", "tz", "source", "on") if name in first}
    params = [" ".join(tag[1:]) for tag in tags if tag[0] == "param"]
    return fields | {"params": "\n".join(params)}


def typed_fields(data: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """What to keep of a request, and what had to be taken out of it, in words."""
    fields = {name: _lines(str(data[name])) for name in (*SkillForm.base_fields, "remix_of") if name in data}
    taken_out = []
    if any("\0" in value for value in fields.values()):
        taken_out.append("A NUL character was taken out (shown as ␀): relays and databases cannot keep it.")
        fields = {name: value.replace("\0", "␀") for name, value in fields.items()}
    if any(nip19.holds_nsec(value) for value in fields.values()):
        taken_out.append("A secret key (nsec) was taken out: what stands here goes to relays. Nothing of it was kept.")
        fields = {name: nip19.without_nsec(value) for name, value in fields.items()}
    return fields, taken_out


def known_version(event_id: str, user: User) -> tuple[Event, SkillSpec] | None:
    """A version the archive holds, if this user may read it: a public one, or a private one by an own key."""
    row = ArchivedEvent.objects.filter(pk=event_id, kind__in=kinds.SKILLS).first() if event_id else None
    if row is None:
        return None
    event = Event.from_dict(json.loads(row.raw))
    if event.kind == kinds.SKILL:
        return event, read_skill(event)
    identity = Identity.objects.filter(user=user, pubkey=event.pubkey, custody=Identity.Custody.HELD).first()
    if identity is None:
        return None
    try:
        return event, read_skill(event, signing.decrypt(identity, event.content))
    except ValueError:
        return event, read_skill(event)  # unreadable, and its problem says so


def _params(typed: Mapping[str, Any], base: SkillSpec, found: list[Problem]) -> RunParams:
    values = {name: _one_of(typed, name).strip() for name in ("llm", "max_tokens", "temperature", "seed")}
    tags: list[Tag] = [(name, value) for name, value in values.items() if value]
    choice = _one_of(typed, "tools_choice")
    names = tuple(word for word in _one_of(typed, "tools").replace(",", " ").split() if word)
    if choice in {"all", "none"}:
        tags.append(("tools", "true" if choice == "all" else "false"))
    elif choice == "list":
        if not names:
            found.append(Problem("tools", "Name the tools, or choose “none”."))
        if {"true", "false"} & set(names):
            found.append(Problem("tools", "true and false are no tools: choose “all” or “none” instead."))
        return replace(parameters.from_tags(tags, found), tools=tuple(dict.fromkeys(names)))
    elif names:
        found.append(Problem("tools_choice", "Choose “only these” for the names to count."))
    return parameters.from_tags(tags, found)


def _trigger(
    typed: Mapping[str, Any], base: SkillSpec, params: RunParams, found: list[Problem]
) -> tuple[TriggerSpec | None, tuple[Tag, ...]]:
    kind = _one_of(typed, "trigger")
    if not kind:
        return None, ()
    if kind not in KINDS:
        return base.trigger, base.trigger_tags
    tags: list[Tag] = [("trigger", kind), ("action", _one_of(typed, "action") or "llm")]
    tags.append(("enabled", str(bool(typed.get("enabled"))).lower()))
    for name in ("filter", "schedule", "tz", "source", "on"):
        value = _one_of(typed, name).strip()
        if name in KINDS[kind].TAGS and value:
            tags.append((name, _address(value) if name == "source" else value))
    if kind == "webhook":
        tags += [("param", *line.split()) for line in _lines(_one_of(typed, "params")).split("\n") if line.strip()]
    trigger = read_trigger(tags, own_input=True)
    return (replace(trigger, params=params) if trigger else None), tuple(tags)


def _address(text: str) -> str:
    """An address also from an naddr; what is neither stays, and is a problem of its field."""
    try:
        found = nip19.decode(text)
    except ValueError:
        return text
    return str(found.address) if isinstance(found, nip19.Naddr) else text


def _one_of(typed: Mapping[str, Any], name: str) -> str:
    value = typed.get(name)
    return value if isinstance(value, str) else ""


def _lines(text: str) -> str:
    """Browsers send CRLF whatever was there."""
    return text.replace("\r\n", "\n")


def _kept(text: str, old: str) -> str:
    """The old bytes where nothing but the browser's line ends changed."""
    return old if text == _lines(old) else text


def _key_words(identity: Any) -> str:
    return f"{identity.label or 'key'} ({nip19.short_npub(identity.pubkey)})"
