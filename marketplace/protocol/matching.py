"""Many filters against one event, by index: only filters that can match are asked."""

from collections import defaultdict
from collections.abc import Hashable, Iterable

from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter


class MatchIndex:
    """Filters under keys; a key may hold several, any of which makes it match.

    Each filter is filed under every value of its most selective field (ids, authors, a tag, else
    kinds), split by kind where it names kinds: an event looks up its own id, key, tags and kind.
    """

    def __init__(self, items: Iterable[tuple[Hashable, Filter]] = ()) -> None:
        self._filed: dict[Hashable, dict[Hashable, list[Filter]]] = defaultdict(dict)
        self._places: dict[Hashable, list[Hashable]] = defaultdict(list)
        for key, wanted in items:
            self.add(key, wanted)

    def add(self, key: Hashable, wanted: Filter) -> None:
        wanted = wanted.timeless()
        for place in _places(wanted):
            self._filed[place].setdefault(key, []).append(wanted)
            self._places[key].append(place)

    def remove(self, key: Hashable) -> None:
        """Every filter under this key."""
        for place in self._places.pop(key, ()):
            filed = self._filed.get(place)
            if filed is not None:
                filed.pop(key, None)
                if not filed:
                    del self._filed[place]

    def matches(self, event: Event) -> set[Hashable]:
        """The keys of which at least one filter matches."""
        found: set[Hashable] = set()
        for place in self._lookups(event):
            for key, filters in self._filed.get(place, {}).items():
                if key not in found and any(wanted.matches(event) for wanted in filters):
                    found.add(key)
        return found

    def _lookups(self, event: Event) -> Iterable[Hashable]:
        values = [("id", event.id), ("author", event.pubkey)]
        values += {(tag[0], tag[1]) for tag in event.tags if len(tag) > 1 and len(tag[0]) == 1}
        for value in values:
            yield (value, None)
            yield (value, event.kind)
        yield (None, event.kind)


def _places(wanted: Filter) -> Iterable[Hashable]:
    """Where a filter is filed: (value, kind), None for "any"."""
    candidates: list[list[tuple[str, str]]] = []
    if wanted.ids is not None:
        candidates.append([("id", value) for value in wanted.ids])
    if wanted.authors is not None:
        candidates.append([("author", value) for value in wanted.authors])
    candidates += [[(name, value) for value in values] for name, values in wanted.tags.items()]
    kinds: list[int | None] = [None] if wanted.kinds is None else [*wanted.kinds]
    if not candidates:
        return [(None, kind) for kind in kinds]
    # Fewest values is a good guess at fewest events; ids and authors come first on a tie.
    best = min(candidates, key=len)
    return [(value, kind) for value in best for kind in kinds]


def reference(items: Iterable[tuple[Hashable, Filter]], event: Event) -> set[Hashable]:
    """The same answer the slow way: ask each filter. Tests hold the two together."""
    return {key for key, wanted in items if wanted.timeless().matches(event)}
