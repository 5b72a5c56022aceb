"""The live triggers as one index and few filters, made anew whenever one of them changes."""

from collections import defaultdict
from dataclasses import dataclass, field, replace

from django.conf import settings
from django.db.models import Count, QuerySet, Sum

from agents.management.merging import merge
from agents.models import Trigger
from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter
from marketplace.protocol.matching import MatchIndex
from marketplace.protocol.triggers import read_trigger

OVERLAP = 600  # seconds before the last complete sync that are asked for again: events are late, clocks differ

Revision = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Armed:
    """What the listener needs of one trigger."""

    pk: int
    armed_at: int
    filters: tuple[Filter, ...]
    relays: frozenset[str]  # its agent's own


@dataclass
class Watch:
    """The triggers of one moment: which of them an event fires, and what to ask each relay for."""

    revision: Revision = (0, 0, 0)
    triggers: dict[int, Armed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index = MatchIndex((one.pk, item) for one in self.triggers.values() for item in one.filters)

    def fired(self, event: Event) -> list[int]:
        """Those it is for; nothing that was signed before a trigger was armed fires it."""
        return sorted(
            pk
            for pk in map(int, map(str, self.index.matches(event)))
            if event.created_at >= self.triggers[pk].armed_at and self._says(pk, event)
        )

    def _says(self, pk: int, event: Event) -> bool:
        """The words of a search (NIP-50), which the index does not know."""
        filters = self.triggers[pk].filters
        if not any(item.search for item in filters):
            return True
        return any(item.timeless().matches(event) and item.says(event.content) for item in filters)

    def filters(self, url: str, synced_until: int) -> list[Filter]:
        """What to ask this relay for: from where it was last read to its end, or from when each was armed.

        Words are asked for only where nothing else narrows: many relays refuse a search, and they are looked for here.
        """
        wanted = []
        for one in self.triggers.values():
            if url in one.relays or url in settings.RELAYS:
                since = max(one.armed_at, synced_until - OVERLAP)
                wanted += [replace(item.timeless(), search=_asked_words(item), since=since) for item in one.filters]
        return merge(wanted)

    @property
    def own_relays(self) -> set[str]:
        return {url for one in self.triggers.values() for url in one.relays}


def _asked_words(item: Filter) -> str | None:
    return None if item.ids or item.authors or item.tags else item.search


def live() -> QuerySet[Trigger]:
    return Trigger.objects.live().filter(kind="nostr-subscription")


def revision() -> Revision:
    """Another value whenever a live trigger came, went or changed; one query."""
    found = live().aggregate(count=Count("pk"), ids=Sum("pk"), revisions=Sum("revision"))
    return found["count"], found["ids"] or 0, found["revisions"] or 0


def look() -> Watch:
    """The live triggers as they stand."""
    seen = revision()  # first: what changes while reading is then read again
    found: dict[int, Armed] = {}
    relays: dict[int, frozenset[str]] = defaultdict(frozenset)
    for trigger in live().select_related("agent"):
        spec = read_trigger([tuple(tag) for tag in trigger.tags])
        if spec is None or spec.data is None:
            continue
        if trigger.agent_id not in relays:
            relays[trigger.agent_id] = frozenset(url.rstrip("/") for url in trigger.agent.relays or ())
        found[trigger.pk] = Armed(trigger.pk, trigger.armed_at, spec.data.filters, relays[trigger.agent_id])
    return Watch(seen, found)
