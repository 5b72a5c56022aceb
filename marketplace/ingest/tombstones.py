"""Deletions (NIP-09) and vanish requests (NIP-62): kept, and consulted for every event that comes."""

from collections.abc import Iterable, Sequence

from django.conf import settings
from django.db.models import Q

from marketplace.ingest import sql
from marketplace.ingest.keys import Key, key_of, stored_d
from marketplace.models import ArchivedEvent, Sighting, Tombstone
from marketplace.protocol.events import HEX64, Address, Event
from marketplace.protocol.kinds import DELETION, VANISH

# A deletion of these does nothing: neither can be taken back.
FINAL = frozenset({DELETION, VANISH})
Row = tuple[str, str, str, int, str]  # pubkey, what, target, until, by_event
_COLUMNS = ("pubkey", "what", "target", "until", "by_event")


class Tombstones:
    """Those that concern some events, in memory."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], int] = {}

    @classmethod
    def concerning(cls, events: Sequence[Event]) -> "Tombstones":
        found = cls()
        some = sql.text(
            "SELECT v.column1 FROM {values} WHERE EXISTS (SELECT 1 FROM {tombstones} t WHERE t.pubkey = v.column1)",
            tombstones=Tombstone,
        )
        dead = {row[0] for row in sql.join(some, [(pubkey,) for pubkey in {event.pubkey for event in events}])}
        probes = [probe for event in events if event.pubkey in dead for probe in _probes(event)]
        statement = sql.text(
            "SELECT t.pubkey, t.what, t.target, t.until, t.by_event FROM {values} CROSS JOIN {tombstones} t "
            "WHERE t.pubkey = v.column1 AND t.what = v.column2 AND t.target = v.column3",
            tombstones=Tombstone,
        )
        found.add(sql.join(statement, list(dict.fromkeys(probes))))
        return found

    def add(self, rows: Iterable[Row]) -> None:
        for pubkey, what, target, until, _ in rows:
            key = (pubkey, what, target)
            self._rows[key] = max(until, self._rows.get(key, -1))

    def cover(self, event: Event) -> bool:
        """Whether the event is deleted; one named by id is so whatever its time."""
        if not self._rows or event.kind == VANISH:
            return False
        if self._until(event.pubkey, "*", "") >= event.created_at:
            return True
        if event.kind == DELETION:
            return False
        if (event.pubkey, "e", event.id) in self._rows:
            return True
        key = key_of(event)
        return key is not None and self._until(event.pubkey, "a", key.text) >= event.created_at

    def _until(self, pubkey: str, what: str, target: str) -> int:
        return self._rows.get((pubkey, what, target), -1)


def _probes(event: Event) -> list[tuple[str, str, str]]:
    key = key_of(event)
    probes = [(event.pubkey, "*", ""), (event.pubkey, "e", event.id)]
    return [*probes, (event.pubkey, "a", key.text)] if key else probes


def rows_of(event: Event) -> list[Row]:
    """What a kind 5 or 62 covers; an empty or foreign target covers nothing."""
    if event.kind == VANISH:
        return [(event.pubkey, "*", "", event.created_at, event.id)] if _meant_for_us(event) else []
    targets = dict.fromkeys(("e", target) for target in event.values("e") if HEX64.match(target))
    for text in event.values("a"):
        address = Address.parse(text)
        if address and address.pubkey == event.pubkey and address.kind not in FINAL:
            targets["a", Key(address.kind, address.pubkey, stored_d(address.d)).text] = None
    return [(event.pubkey, what, target, event.created_at, event.id) for what, target in targets]


def write(rows: Sequence[Row]) -> None:
    sql.insert(Tombstone, _COLUMNS, rows)


def bury(event: Event, rows: Sequence[Row]) -> list[Key]:
    """Write the tombstones and mark or purge what they cover; the addresses to look at again."""
    write(rows)
    if event.kind == VANISH:
        return _purge(event) if rows else []
    keys: dict[Key, None] = {}
    for part in sql.parts([target for _, what, target, _, _ in rows if what == "e"]):
        named = ArchivedEvent.objects.filter(pk__in=part, pubkey=event.pubkey, gone=False).exclude(kind__in=FINAL)
        keys |= dict.fromkeys(Key(*row) for row in named.values_list("kind", "pubkey", "d"))
        named.update(gone=True)
    statement = sql.text(
        "UPDATE {archive} SET gone = %s WHERE kind = %s AND pubkey = %s AND d = %s AND created_at <= %s AND NOT gone",
        archive=ArchivedEvent,
    )
    for _, what, target, until, _ in rows:
        if what == "a":
            kind, pubkey, d = target.split(":", 2)
            if sql.many(statement, [(True, int(kind), pubkey, d, until)]):
                keys[Key(int(kind), pubkey, d)] = None
    return list(keys)


def _purge(event: Event) -> list[Key]:
    """Vanish: everything of the key up to that second leaves the archive too."""
    doomed = ArchivedEvent.objects.filter(pubkey=event.pubkey, created_at__lte=event.created_at).exclude(kind=VANISH)
    keys = [Key(*row) for row in doomed.exclude(kind=DELETION).values_list("kind", "pubkey", "d").distinct()]
    Sighting.objects.filter(event_id__in=doomed.values("pk")).delete()
    doomed._raw_delete(doomed.db)  # the sightings are gone already
    marks = Q(what=Tombstone.What.EVENT) | Q(what=Tombstone.What.ADDRESS)
    Tombstone.objects.filter(marks, pubkey=event.pubkey, until__lte=event.created_at).delete()
    return keys


def _meant_for_us(event: Event) -> bool:
    """NIP-62 names relays; one that names only others asks nothing of us."""
    named = {url.rstrip("/") for url in event.values("relay")}
    ours = {"ALL_RELAYS", settings.SITE_URL, settings.EMBEDDED_RELAY_URL, *settings.RELAYS}
    return not named or bool(named & ours)
