"""Rows of the archive: what relays said, where it was seen, and which version stands at an address."""

import json
from collections.abc import Iterable, Mapping, Sequence

from marketplace.ingest import sql
from marketplace.ingest.checking import expires_at
from marketplace.ingest.keys import Key, key_of
from marketplace.models import ArchivedEvent, HeldEvent, Relay, Sighting
from marketplace.protocol.checks import FUTURE_SECONDS
from marketplace.protocol.events import Event

Head = tuple[int, str]  # created_at, id
_COLUMNS = ("id", "kind", "pubkey", "d", "created_at", "raw", "received_at", "problem", "expires_at", "gone")
MOST_HELD = 10_000


def write(
    events: Sequence[Event], problems: Mapping[str, str], now: int, keys: Mapping[str, Key | None] | None = None
) -> set[str]:
    """Archive events; the ids that were new. `problems`: event id -> what is wrong with its content.

    `keys`: event id -> address, where the caller has them already.
    """
    rows = []
    for event in events:
        key = key_of(event) if keys is None else keys[event.id]
        rows.append(
            (
                event.id,
                event.kind,
                event.pubkey,
                key.d if key else "",
                event.created_at,
                event.to_json(),
                now,
                problems.get(event.id, ""),
                expires_at(event),
                False,
            )
        )
    return {row[0] for row in sql.insert(ArchivedEvent, _COLUMNS, rows, returning="id")}


def heads(keys: Iterable[Key]) -> dict[Key, Head]:
    """The version that stands at each address; addresses without one are left out."""
    statement = sql.text(
        "SELECT a.kind, a.pubkey, a.d, a.created_at, a.id FROM {values} CROSS JOIN {archive} a WHERE a.id = "
        "(SELECT x.id FROM {archive} x WHERE x.kind = v.column1 AND x.pubkey = v.column2 AND x.d = v.column3 "
        "AND NOT x.gone ORDER BY x.created_at DESC, x.id LIMIT 1)",
        archive=ArchivedEvent,
    )
    rows = sql.join(statement, list(dict.fromkeys(keys)))
    return {Key(kind, pubkey, d): (created_at, event_id) for kind, pubkey, d, created_at, event_id in rows}


def first_published(keys: Iterable[Key]) -> dict[Key, int]:
    """The time of the oldest version at each address that still counts."""
    statement = sql.text(
        "SELECT v.column1, v.column2, v.column3, (SELECT min(x.created_at) FROM {archive} x WHERE "
        "x.kind = v.column1 AND x.pubkey = v.column2 AND x.d = v.column3 AND NOT x.gone) FROM {values}",
        archive=ArchivedEvent,
    )
    return {Key(*row[:3]): row[3] for row in sql.join(statement, list(keys)) if row[3] is not None}


def read(ids: Sequence[str]) -> list[Event]:
    rows = ArchivedEvent.objects.filter(pk__in=ids).values_list("raw", flat=True)
    return [Event.from_dict(json.loads(raw)) for raw in rows]


def sight(seen: Iterable[tuple[str, str]]) -> None:
    """Note which relay (by address) gave which event."""
    pairs = list(dict.fromkeys((event_id, url) for event_id, url in seen if url))
    if not pairs:
        return
    urls = {url for _, url in pairs}
    known = dict(Relay.objects.filter(url__in=urls).values_list("url", "pk"))
    for url in urls - known.keys():
        # Seen on, not read from: the operator decides what the listener reads.
        known[url] = Relay.objects.get_or_create(url=url[:300], defaults={"reads": False})[0].pk
    sql.insert(Sighting, ("event_id", "relay_id"), [(event_id, known[url]) for event_id, url in pairs])


def hold(events: Sequence[tuple[Event, str]]) -> None:
    """Put events aside until due; the table is bounded, the one furthest ahead makes room."""
    rows = [(event.id, event.created_at - FUTURE_SECONDS, event.to_json(), relay[:300]) for event, relay in events]
    sql.insert(HeldEvent, ("id", "due_at", "raw", "relay_url"), rows)
    surplus = HeldEvent.objects.count() - MOST_HELD
    if surplus > 0:
        last = HeldEvent.objects.order_by("-due_at", "-id").values_list("pk", flat=True)[:surplus]
        HeldEvent.objects.filter(pk__in=list(last)).delete()
