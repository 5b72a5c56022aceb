"""Whom direct messages may be for, and what to ask relays for: gift wraps carry dates of up to two days before."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings

from agents.dispatch import hearing
from agents.management.merging import merge
from agents.management.watching import OVERLAP
from agents.models import Agent
from marketplace.models import Identity
from marketplace.protocol import kinds
from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter
from marketplace.relays import normal_url

BACKDATED = 2 * 86_400  # seconds; NIP-59: a wrap's date is drawn from the last two days
MOST_NAMED = 5  # relays of an agent's own list that are read
REMEMBERED = 20_000
MESSAGES = frozenset({kinds.GIFT_WRAP, kinds.ENCRYPTED_DM})
KINDS = MESSAGES | {kinds.DM_RELAYS}


@dataclass(frozen=True, slots=True)
class Inbox:
    """What the listener needs of one agent that can be talked to."""

    pk: int
    pubkey: str
    since: int
    relays: frozenset[str]  # its own; empty: the site's


@dataclass
class Inboxes:
    """The agents of one moment, and the relays that their own lists (kind 10050) name."""

    state: list[tuple[Any, ...]] = field(default_factory=list)
    inboxes: list[Inbox] = field(default_factory=list)
    named: dict[str, tuple[int, str, frozenset[str]]] = field(default_factory=dict)
    moved: bool = False  # whether a list of relays changed since the last look
    heard: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def look(self) -> bool:
        """Whether anything is to be asked for that was not, or no more; one query."""
        columns = ("pk", "identity__pubkey", "admin_pubkey", "talkers", "relays", "dm_since", "created_at")
        rows = Agent.objects.filter(enabled=True, identity__custody=Identity.Custody.HELD).order_by("pk")
        state = list(rows.values_list(*columns))
        changed, self.moved = self.moved or state != self.state, False
        if state != self.state:
            self.state = state
            self.inboxes = [
                Inbox(pk, pubkey, max(since, int(made.timestamp())), frozenset(_normal(relays or ())))
                for pk, pubkey, admin, talkers, relays, since, made in state
                if admin or talkers
            ]
        return changed

    def relays_of(self, inbox: Inbox) -> frozenset[str]:
        named = self.named.get(inbox.pubkey)
        return (inbox.relays or frozenset(settings.RELAYS)) | (named[2] if named else frozenset())

    @property
    def relays(self) -> set[str]:
        return {url for inbox in self.inboxes for url in self.relays_of(inbox)}

    def filters(self, url: str, synced_until: int) -> list[Filter]:
        """What to ask this relay for: messages to its agents, and their lists of relays."""
        found = []
        for inbox in self.inboxes:
            to = {"p": frozenset({inbox.pubkey})}
            if url in settings.RELAYS or url in self.relays_of(inbox):
                since = max(inbox.since, synced_until - OVERLAP)
                wraps = max(0, since - BACKDATED - OVERLAP)
                found.append(Filter(kinds=MESSAGES, tags=to, since=wraps))
                own = frozenset({inbox.pubkey})
                found.append(Filter(kinds=frozenset({kinds.DM_RELAYS}), authors=own, since=0))
        return merge(found)

    def take(self, event: Event, relay: str, now: datetime) -> None:
        """A message for each agent that it names; a list of relays is followed from the next look on."""
        if event.id in self.heard:
            return
        if event.kind == kinds.DM_RELAYS:
            self._follow(event)
        else:
            receivers = set(event.values("p"))
            wanted = [inbox.pk for inbox in self.inboxes if inbox.pubkey in receivers]
            for agent in Agent.objects.filter(pk__in=wanted).select_related("identity") if wanted else ():
                hearing.hear(agent, event, now, relay)
        self.heard[event.id] = None
        if len(self.heard) > REMEMBERED:
            self.heard.popitem(last=False)

    def _follow(self, event: Event) -> None:
        """NIP-01: the newest list counts, of equal ones that with the lowest id."""
        known = self.named.get(event.pubkey)
        newer = known is None or (event.created_at, known[1]) > (known[0], event.id)
        if newer and any(inbox.pubkey == event.pubkey for inbox in self.inboxes):
            urls = frozenset(_normal(event.values("relay"))[:MOST_NAMED])
            self.named[event.pubkey] = (event.created_at, event.id, urls)
            self.moved = self.moved or known is None or known[2] != urls


def _normal(urls: Iterable[str]) -> list[str]:
    """Addresses as readers know them, without those that are none."""
    found: dict[str, None] = {}
    for url in urls:
        try:
            found[normal_url(str(url))] = None
        except ValueError:
            continue
    return list(found)
