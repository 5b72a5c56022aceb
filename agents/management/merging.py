"""Many triggers' filters as few subscriptions: relays allow tens of filters, a site may have thousands of triggers."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

from marketplace.protocol.filters import Filter

MOST_VALUES = 500  # of one field in one filter; relays refuse longer lists


def merge(filters: Iterable[Filter]) -> list[Filter]:
    """Filters that together let through all that these do, and little more than that.

    Two filters become one where they differ in a single field: its values are joined, and the earlier `since` stays.
    """
    merged = list(filters)
    for name in ("kinds", "ids", "authors", *sorted({f"#{tag}" for item in merged for tag in item.tags})):
        merged = _joined(merged, name)
    return merged


def _joined(filters: list[Filter], name: str) -> list[Filter]:
    groups: dict[Hashable, list[Filter]] = defaultdict(list)
    for item in filters:
        groups[_rest(item, name)].append(item)
    joined: list[Filter] = []
    for group in groups.values():
        joined += _union(group, name)
    return joined


def _union(group: list[Filter], name: str) -> list[Filter]:
    if _values(group[0], name) is None:  # none of them names it, so they are the same but for time
        return [replace(group[0], since=_earliest(group))]
    found: list[Filter] = []
    values: set[str | int] = set()
    part: list[Filter] = []
    for item in group:
        own = _values(item, name) or frozenset()
        if part and len(values | own) > MOST_VALUES:
            found.append(_with(part, name, values))
            values, part = set(), []
        values |= own
        part.append(item)
    found.append(_with(part, name, values))
    return found


def _rest(item: Filter, name: str) -> Hashable:
    """Everything but this field and the time; whether it is given at all counts."""
    fields = ("kinds", "ids", "authors", *(f"#{tag}" for tag in sorted(item.tags)))
    others = tuple((field, _values(item, field)) for field in fields if field != name)
    return others, item.search, item.until, _values(item, name) is None


def _values(item: Filter, name: str) -> frozenset[str] | frozenset[int] | None:
    if name.startswith("#"):
        return item.tags.get(name[1:])
    found: frozenset[str] | frozenset[int] | None = getattr(item, name)
    return found


def _with(part: list[Filter], name: str, values: set[str | int]) -> Filter:
    first, since = part[0], _earliest(part)
    if name.startswith("#"):
        return replace(first, tags={**first.tags, name[1:]: frozenset(map(str, values))}, since=since)
    changes: dict[str, Any] = {name: frozenset(values)}
    return replace(first, since=since, **changes)


def _earliest(group: list[Filter]) -> int | None:
    times = [item.since for item in group]
    return None if None in times else min(time for time in times if time is not None)
