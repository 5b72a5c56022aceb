"""Templates: role sections, {{variables}} and {placeholders}, each expanded in one pass."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from marketplace.protocol import nip19
from marketplace.protocol.events import Event
from marketplace.protocol.vocabulary import PLACEHOLDERS, ROLES

# Bounded, so that a megabyte of braces costs a pass and nothing more.
_VARIABLE = re.compile(r"\{\{[ \t]{0,20}([^\W\d][\w-]{0,99})[ \t]{0,20}\}\}")
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")
_ROLE_LINES = {f"{role}:": role for role in ROLES}
PREVIEW_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Section:
    role: str  # system, user, assistant
    text: str


@dataclass(frozen=True, slots=True)
class Expanded:
    text: str
    unknown: tuple[str, ...] = ()  # named, but without a value: became empty


@dataclass(frozen=True, slots=True)
class Action:
    """What a template action does; read before expansion, so events cannot change it."""

    kind: str  # dm_admin, dm, post, log
    recipient: str  # hex key for dm, "" otherwise
    body: str  # the text still to expand


def sections(template: str) -> tuple[Section, ...]:
    """The template by role; text before the first role line is system, empty sections are left out."""
    found: list[Section] = []
    role, lines = "system", list[str]()
    for line in [*template.replace("\r\n", "\n").split("\n"), None]:
        start = None if line is None else _ROLE_LINES.get(line.rstrip(" \t\r"))
        if line is not None and start is None:
            lines.append(line)
            continue
        text = "\n".join(lines).strip("\n")
        if text.strip():
            found.append(Section(role, text))
        role, lines = start or role, []
    return tuple(found)


def variables(template: str) -> tuple[str, ...]:
    """The names of its {{variables}}, each once, in order."""
    return tuple(dict.fromkeys(_VARIABLE.findall(template)))


def expand(text: str, values: Mapping[str, str]) -> Expanded:
    """One pass: a value is never expanded again; an unknown name becomes empty and is reported."""
    return expand_with(text, lambda name: values.get(name))


def expand_with(text: str, value_of: Callable[[str], str | None]) -> Expanded:
    unknown: dict[str, None] = {}

    def value(match: re.Match[str]) -> str:
        found = value_of(match[1])
        if found is None:
            unknown[match[1]] = None
            return ""
        return found

    return Expanded(_VARIABLE.sub(value, text), tuple(unknown))


def expand_placeholders(text: str, values: Mapping[str, str]) -> str:
    """The eight {placeholders} of template actions, once and literally; others stay as they are."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def placeholders(event: Event, relay_url: str, display_name: str) -> dict[str, str]:
    """Their values for one event; a missing name becomes the short npub."""
    return {
        "event_id": event.id,
        "pubkey": event.pubkey,
        "author_display_name": display_name or nip19.short_npub(event.pubkey),
        "kind": str(event.kind),
        "content": event.content,
        "content_preview": " ".join(event.content.split())[:PREVIEW_LENGTH],
        "created_at": iso_time(event.created_at),
        "relay_url": relay_url,
    }


def iso_time(seconds: int) -> str:
    """ISO 8601 in UTC; times beyond the calendar stay numbers."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return str(seconds)


def read_action(template: str) -> Action:
    """The prefix of a template action. Raises ValueError for a recipient that is not a key."""
    text = template.lstrip()
    head, colon, body = text.partition(":")
    word = head.strip()
    if colon and word in {"POST", "LOG"}:
        return Action(word.lower(), "", body.strip())
    if colon and word == "DM admin":
        return Action("dm_admin", "", body.strip())
    if colon and word.split(" ")[0] == "DM" and "\n" not in word:
        return Action("dm", nip19.read_key(word[3:]), body.strip())
    return Action("log", "", text.strip())
