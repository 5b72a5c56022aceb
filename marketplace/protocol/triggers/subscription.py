"""`nostr-subscription`: an event on a relay that fits a filter."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from marketplace.protocol.checks import Refused, strict_json
from marketplace.protocol.events import Event, Tag
from marketplace.protocol.filters import KEY_PLACEHOLDERS, MAX_FILTERS, Filter, read_filter
from marketplace.protocol.nip19 import short_npub
from marketplace.protocol.problems import Problem
from marketplace.protocol.storable import storable

LABEL = "An event on a relay"
TAGS = ("filter",)

_KIND_WORDS = {
    0: "a profile",
    1: "a note",
    3: "a follow list",
    6: "a repost",
    7: "a reaction",
    1111: "a comment",
    9735: "a zap",
    30023: "an article",
    31123: "a skill",
    10123: "an adoption list",
}
_TAG_WORDS = {"p": "mentioning", "e": "about the event", "t": "tagged", "a": "about", "r": "linking to"}


@dataclass(frozen=True, slots=True)
class Subscription:
    """Any of the filters fires it."""

    filters: tuple[Filter, ...]

    def matches(self, event: Event) -> bool:
        return any(wanted.timeless().matches(event) and wanted.says(event.content) for wanted in self.filters)


def from_tags(tags: Sequence[Tag], *, own_input: bool = False) -> tuple[Subscription | None, list[Problem]]:
    """One NIP-01 filter, or an array of up to 20, as JSON in the `filter` tag."""
    text = next((tag[1] for tag in tags if tag[0] == "filter" and len(tag) > 1), None)
    if text is None:
        return None, [Problem("filter", "The filter is missing.")]
    try:
        rows = strict_json(text)
    except Refused as error:
        return None, [Problem("filter", str(error))]
    if storable(rows) != rows:
        return None, [Problem("filter", "The filter holds NUL or half a character.")]
    rows = rows if isinstance(rows, list) else [rows]
    if not 1 <= len(rows) <= MAX_FILTERS:
        return None, [Problem("filter", f"Give one filter, or a list of up to {MAX_FILTERS}.")]
    read = [read_filter(row, own_input=own_input) for row in rows]
    found = [Problem("filter", message) for _, messages in read for message in messages]
    filters = tuple(wanted for wanted, _ in read if wanted is not None)
    return (None, found) if found else (Subscription(filters), [])


def to_tags(data: Subscription) -> list[list[str]]:
    rows = [found.to_dict() for found in data.filters]
    text = json.dumps(rows[0] if len(rows) == 1 else rows, ensure_ascii=False, separators=(",", ":"))
    return [["filter", text]]


def problems(data: Subscription) -> list[Problem]:
    return from_tags([tuple(tag) for tag in to_tags(data)])[1]


def in_words(data: Subscription) -> str:
    return "When there is " + ", or ".join(_filter_words(found) for found in data.filters)


def _filter_words(wanted: Filter) -> str:
    if wanted.kinds is None:
        words = "any event"
    else:
        words = _or([_KIND_WORDS.get(kind, f"an event of kind {kind}") for kind in sorted(wanted.kinds)])
    if wanted.authors is not None:
        words += " by " + _or(sorted(_key_words(key) for key in wanted.authors))
    for name, values in sorted(wanted.tags.items()):
        shown = [_key_words(value) if name in {"p", "e"} else _shown(name, value) for value in values]
        words += f" {_TAG_WORDS.get(name, f'with {name}')} {_or(sorted(shown))}"
    if wanted.ids is not None:
        words += " with the id " + _or(sorted(found[:8] + "…" for found in wanted.ids))
    return words


def _shown(name: str, value: str) -> str:
    return f"#{value}" if name == "t" else value


def _key_words(key: str) -> str:
    if key in KEY_PLACEHOLDERS:
        return "you" if "admin" in key else "the agent"
    try:
        return short_npub(key)
    except ValueError:
        return key[:12]


def _or(words: Sequence[str]) -> str:
    if len(words) > 4:
        return f"{', '.join(words[:3])} or {len(words) - 3} more"
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
