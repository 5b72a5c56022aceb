"""Skills on demand: a line each in a catalogue until the model, or its user, asks for one.

names(skills)                      -> the name each goes by, one of a kind
update(entries, ...)               -> the catalogue message to add now, or None
refusal(name, entry)               -> why the tool `skill` does not hand it out, if so
render(entry), handed(entry, ...)  -> what it hands out, bare and between marks
asked_for(text, entries)           -> the skills that a person's own words invoke as /name
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape

from marketplace.protocol.hidden import marked

DESCRIPTION_LENGTH = 500  # characters of a line's description, unless the owner says otherwise
SHORTEST_DESCRIPTION = 3
LONGEST = 100_000  # characters that either tool hands to a model
_CUT_WORDS = 60  # characters of the words that say what was cut
_EXTRA_LENGTH = 120  # characters of what else an author says of a skill, in its line
_LONGEST_NAME = 100
_OTHER = re.compile(" +")
_GESTURE = re.compile(rf"(?<!\S)/(\S{{1,{_LONGEST_NAME}}})(?!\S)")
USAGE_RULES = (
    "If the user names a skill, or the task clearly matches a skill's description, call the `skill` tool with the exact"
    " skill name before taking task actions. Load all applicable skills, then follow their full instructions. This"
    " catalog contains summaries only; do not infer or follow a skill's instructions until it has been loaded."
)
_INVOKED = (
    "A user may also invoke a skill directly; its <skill_content> block then appears in this conversation. Follow it,"
    " and do not call the `skill` tool again for that skill."
)
_FIRST = "A skill is a reusable set of task-specific instructions. The following skills are available in this session:"
_AGAIN = "The available skills have changed. This list replaces every earlier one:"
_GONE = "No skills are available any more. Do not use any name from an earlier list."


@dataclass(frozen=True, slots=True)
class Resources:
    """Where what a skill refers to can be found. kind: provider, directory, url, opaque."""

    kind: str = "provider"
    where: str = "this site"

    @property
    def words(self) -> str:
        if self.kind == "directory":
            return f"Base directory for this skill: {self.where}\n{_RELATIVE.format('paths', 'directory')}"
        if self.kind == "url":
            return f"Base URL for this skill: {self.where}\n{_RELATIVE.format('URLs', 'URL')}"
        if self.kind == "opaque":
            return f"Resources for this skill: {self.where}\nLoad referenced resources only as needed."
        return (
            f'Resources for this skill are managed by provider "{self.where}".\n'
            "Load referenced resources only as needed."
        )


_RELATIVE = (
    "Resolve relative {0} mentioned by this skill against the base {1} before using them."
    " Load referenced resources only as needed."
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One skill on demand, by the name it goes by here."""

    name: str
    description: str
    body: str = ""
    resources: Resources = Resources()
    by_model: bool = True  # False: `disable-model-invocation`
    by_user: bool = True
    version: str = ""  # of its text: an event id, or a digest of its file
    foreign: bool = False  # by others, in a version that the owner has not pinned
    extra: tuple[tuple[str, str], ...] = ()  # what else its author says of it: (key, one line)


@dataclass(frozen=True, slots=True)
class Update:
    """A message to append, and the digest to remember with it."""

    text: str
    digest: str


def names(skills: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """For each (d, author's hex key) its name: letters of any alphabet, digits, - and _.

    A name that another author's skill already has gets `-` and four digits of the key, more if it must.
    """
    taken: set[str] = set()
    found = []
    for d, pubkey in skills:
        letters = "".join(one if _fits(one) else " " for one in marked(unicodedata.normalize("NFC", d)))
        name = plain = _OTHER.sub("-", letters).strip("-")[:80] or "skill"
        digits = 4
        while name in taken:
            name = f"{plain}-{pubkey[:digits]}" if digits <= 16 else f"{plain}-{pubkey[:4]}-{digits}"
            digits += 4
        taken.add(name)
        found.append(name)
    return tuple(found)


def digest(entries: Iterable[Entry], length: int = DESCRIPTION_LENGTH) -> str:
    """Of what the lines say, not of the prose around them; "" for none."""
    rows = _lines(entries, length)
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest() if rows else ""


def update(
    entries: Iterable[Entry],
    *,
    last: str | None,
    visible: bool = True,
    complete: bool = True,
    usage_rules: str | None = None,
    length: int = DESCRIPTION_LENGTH,
) -> Update | None:
    """The catalogue message this conversation needs now; None where the last one still holds.

    `last`: digest of the newest catalogue in the conversation, None when there is none. `visible`: whether the run has
    the tool `skill`. `complete`: False when a source did not answer; the last good view then stays. `usage_rules`: the
    owner's in place of ours, "" for none.
    """
    if not complete:
        return None
    entries = list(entries) if visible else []
    now = digest(entries, length)
    if now == (last or "") or (last is None and not now):
        return None
    if not now:
        return Update(_reminder(_GONE, "<available_skills>\n</available_skills>", "", _INVOKED), now)
    lines = "\n".join(_lines(entries, length))
    rules = USAGE_RULES if usage_rules is None else usage_rules
    head = _FIRST if last is None else _AGAIN
    return Update(_reminder(head, f"<available_skills>\n{lines}\n</available_skills>", rules, _INVOKED), now)


def refusal(name: str, entry: Entry | None) -> str:
    """Why the model does not get what stands under this name, "" when it does; after “Error: ”."""
    if not 0 < len(name) <= _LONGEST_NAME or not all(map(_fits, name)):
        return f'invalid skill name "{name[:200]}"'
    if entry is None:
        return f'skill "{name}" is unknown or no longer available'
    return "" if entry.by_model else f'skill "{name}" is not available for model invocation'


def load(name: str, entries: Sequence[Entry]) -> str:
    """What the tool `skill` answers: the skill, or an error in the model's words."""
    entry = next((entry for entry in entries if entry.name == name), None)
    wrong = refusal(name, entry)
    return f"Error: {wrong}" if wrong or entry is None else render(entry)


def render(entry: Entry) -> str:
    """One shape, whoever asked for it."""
    return (
        f'<skill_content name="{escape(entry.name)}">\n<skill_resources>\n{entry.resources.words}\n</skill_resources>\n'
        f"<skill_instructions>\n{entry.body}\n</skill_instructions>\n</skill_content>"
    )


def handed(entry: Entry, fenced: Callable[[str, str], str], most: int = LONGEST) -> str:
    """What a model reads of it, whoever asked: between marks, cut inside them so that their end is never lost."""
    source = "foreign skill" if entry.foreign else "skill"
    return _within(most, entry.body, lambda body: fenced(source, render(replace(entry, body=body))))


def handed_file(text: str, foreign: bool, fenced: Callable[[str, str], str], most: int = LONGEST) -> str:
    """A file of a skill, between marks."""
    return _within(most, text, lambda part: fenced("foreign skill file" if foreign else "skill file", part))


def _within(most: int, text: str, wrap: Callable[[str], str]) -> str:
    """Wrapped, in `most` characters at most."""
    room = most - len(wrap(""))
    if len(text) <= room:
        return wrap(text)
    kept = max(0, room - _CUT_WORDS)
    return wrap(f"{text[:kept]}\n[cut here: {len(text) - kept} more characters]")


def asked_for(text: str, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The skills a person invokes as /name, anywhere between spaces, each once; other words stay prose.

    Only for what a person typed: events, webhooks and tool results are never scanned.
    """
    known = {entry.name: entry for entry in entries if entry.by_user}
    named = dict.fromkeys(match[1] for match in _GESTURE.finditer(unicodedata.normalize("NFC", text)))
    return tuple(known[name] for name in named if name in known)


def _fits(character: str) -> bool:
    """Whether a name may hold it: letters and digits of any alphabet, the marks that belong to them, - and _."""
    return character.isalnum() or character in "-_" or unicodedata.category(character).startswith("M")


def line(entry: Entry, length: int = DESCRIPTION_LENGTH) -> str:
    """What the catalogue says of one skill, which is all that it costs until it is loaded."""
    return f"- `{entry.name}`: {_flat(_said(entry), length)}"


def _lines(entries: Iterable[Entry], length: int) -> list[str]:
    rows = {entry.name: line(entry, length) for entry in entries if entry.by_model}
    return [rows[name] for name in sorted(rows)]


def _said(entry: Entry) -> str:
    """Its description, and after it what else its author wrote in front."""
    extra = _flat("; ".join(f"{key}: {value}" for key, value in entry.extra), _EXTRA_LENGTH)
    return f"{entry.description} ({extra})" if entry.extra else entry.description


def _flat(text: str, length: int) -> str:
    """One line, so that a description cannot add lines of its own, nothing hidden in it; capped with a sign of that."""
    length = max(length, SHORTEST_DESCRIPTION)
    flat = " ".join(marked(text).split()).replace("<", "‹").replace(">", "›")
    return flat if len(flat) <= length else f"{flat[: length - 1]}…"


def _reminder(*parts: str) -> str:
    return "<system-reminder>\n" + "\n\n".join(part for part in parts if part) + "\n</system-reminder>"
