"""NIP-01 filters: read strictly, since a filter that lost a word would match everything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from marketplace.protocol import nip19
from marketplace.protocol.events import HEX64, Event

MAX_FILTERS = 20
MAX_VALUES = 1_000
# Filled when a trigger is armed; legal wherever a key is (protocol of Didactyl's skills).
KEY_PLACEHOLDERS = frozenset({"<admin_pubkey>", "<agent_pubkey>"})
_LISTS = frozenset({"ids", "authors", "kinds"})
_NUMBERS = frozenset({"since", "until", "limit"})
_HEX_TAGS = frozenset({"#e", "#p"})


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter; None means that the field was not given."""

    ids: frozenset[str] | None = None
    authors: frozenset[str] | None = None
    kinds: frozenset[int] | None = None
    tags: Mapping[str, frozenset[str]] = field(default_factory=dict)  # "p" -> values
    since: int | None = None
    until: int | None = None
    limit: int | None = None
    search: str | None = None

    def __hash__(self) -> int:
        return hash((self.ids, self.authors, self.kinds, self.since, self.until, tuple(sorted(self.tags))))

    @property
    def unfilled(self) -> frozenset[str]:
        """The key placeholders still in it; such a filter is not ready to subscribe."""
        keys = self.tags.get("p", frozenset()) | (self.authors or frozenset())
        return keys & KEY_PLACEHOLDERS

    @property
    def narrows(self) -> bool:
        """Whether anything but time and number limits it: the rest never subscribe."""
        return bool(self.ids or self.authors or self.kinds or self.tags)

    def matches(self, event: Event) -> bool:
        """Whether the event fits by everything but `limit` and `search`."""
        if self.kinds is not None and event.kind not in self.kinds:
            return False
        if self.authors is not None and event.pubkey not in self.authors:
            return False
        if self.ids is not None and event.id not in self.ids:
            return False
        if self.since is not None and event.created_at < self.since:
            return False
        if self.until is not None and event.created_at > self.until:
            return False
        for name, wanted in self.tags.items():
            # Only the first value of a single-letter tag counts (NIP-01).
            if not any(len(tag) > 1 and tag[0] == name and tag[1] in wanted for tag in event.tags):
                return False
        return True

    def says(self, content: str) -> bool:
        """Whether a text holds every word of the search (NIP-50), in any case."""
        text = content.lower()
        return all(word in text for word in (self.search or "").lower().split())

    def timeless(self) -> "Filter":
        """The same for live events: since, until and limit apply to stored events only."""
        return Filter(self.ids, self.authors, self.kinds, self.tags)

    def to_dict(self) -> dict[str, Any]:
        """The filter as NIP-01's JSON object, in a stable order."""
        row: dict[str, Any] = {}
        for name in ("ids", "authors", "kinds"):
            values = getattr(self, name)
            if values is not None:
                row[name] = sorted(values)
        row |= {f"#{name}": sorted(values) for name, values in sorted(self.tags.items())}
        for name in ("since", "until", "limit", "search"):
            if getattr(self, name) is not None:
                row[name] = getattr(self, name)
        return row


def read_filter(row: object, *, own_input: bool = False) -> tuple[Filter | None, list[str]]:
    """The filter and what is wrong with it in words; with problems there is no filter.

    `own_input`: what a person typed into our form: hex is lowered and npub or note converted.
    """
    if not isinstance(row, dict):
        return None, ["A filter is a JSON object."]
    problems: list[str] = []
    fields: dict[str, Any] = {}
    tags: dict[str, frozenset[str]] = {}
    for key, value in row.items():
        if key in _NUMBERS:
            fields[key] = _number(key, value, problems)
        elif key == "search":
            fields[key] = value
            if not isinstance(value, str):
                problems.append("search is a text.")
        elif key in _LISTS or _is_tag(key):
            values = _values(key, value, own_input, problems)
            if _is_tag(key):
                tags[key[1:]] = values
            else:
                fields[key] = values
        else:
            problems.append(f"{str(key)[:40]!r} is not a field of a filter.")
    if problems:
        return None, problems
    found = Filter(tags=tags, **fields)
    if not found.narrows:
        return None, ["Nothing narrows this filter: it would match every event. Add kinds, authors, ids or a tag."]
    return found, []


def fill_placeholders(filters: Iterable[Filter], admin: str, agent: str) -> tuple[Filter, ...]:
    """With <admin_pubkey> and <agent_pubkey> replaced by hex keys; an empty key leaves its placeholder."""
    keys = {"<admin_pubkey>": admin or "<admin_pubkey>", "<agent_pubkey>": agent or "<agent_pubkey>"}

    def filled(values: frozenset[str]) -> frozenset[str]:
        return frozenset(keys.get(value, value) for value in values)

    return tuple(
        replace(
            wanted,
            authors=None if wanted.authors is None else filled(wanted.authors),
            tags={name: filled(values) if name == "p" else values for name, values in wanted.tags.items()},
        )
        for wanted in filters
    )


def _is_tag(key: str) -> bool:
    return len(key) == 2 and key[0] == "#" and key[1].isascii() and key[1].isalpha()


def _number(key: str, value: object, problems: list[str]) -> int | None:
    low = 1 if key == "limit" else 0
    if type(value) is int and low <= value < 2**53:
        return value
    problems.append(f"{key} is a whole number of at least {low}.")
    return None


def _values(key: str, value: object, own_input: bool, problems: list[str]) -> frozenset[Any]:
    if not isinstance(value, list):
        problems.append(f"{key} is a list.")
        return frozenset()
    if not value:
        problems.append(f"{key} is an empty list, which matches nothing. Leave it out or fill it.")
    if len(value) > MAX_VALUES:
        problems.append(f"{key} has more than {MAX_VALUES} values.")
        return frozenset()
    found = set()
    for item in value:
        if key == "kinds":
            if type(item) is not int or not 0 <= item <= 65_535:
                problems.append(f"kinds holds {str(item)[:40]!r}, which is not a number from 0 to 65535.")
                continue
        elif type(item) is not str:
            problems.append(f"{key} holds {str(item)[:40]!r}, which is not a text.")
            continue
        elif key in _HEX_TAGS or key in {"ids", "authors"}:
            item = _hex(key, item, own_input, problems)
        found.add(item)
    return frozenset(found)


def _hex(key: str, item: str, own_input: bool, problems: list[str]) -> str:
    if HEX64.match(item) or (item in KEY_PLACEHOLDERS and key in {"authors", "#p"}):
        return item
    if own_input:
        try:
            return _named(key, item)
        except ValueError as error:
            problems.append(f"{key} holds {item[:40]!r}: {error}")
            return item
    hint = "upper-case hex" if HEX64.match(item.lower()) else "not 64 lower-case hex digits"
    problems.append(f"{key} holds {item[:40]!r}, which is {hint}.")
    return item


def _named(key: str, item: str) -> str:
    if key in {"authors", "#p"}:
        return nip19.read_key(item)
    if HEX64.match(item.lower()):
        return item.lower()
    found = nip19.decode(item)
    if isinstance(found, nip19.Note | nip19.Nevent):
        return found.id
    raise ValueError("this names a key, not an event.")
