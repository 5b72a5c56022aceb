"""Every projection anew from the archive, address by address, while the catalogue stays up."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db import connection

from marketplace.ingest import pace, sql, tombstones
from marketplace.ingest.keys import Key
from marketplace.ingest.projecting import reproject
from marketplace.ingest.storing import announce
from marketplace.ingest.tombstones import FINAL, Tombstones
from marketplace.models import Adoption, ArchivedEvent, Author, Skill, Tombstone
from marketplace.protocol.events import Event

# Projections without anything in the archive; looking at their addresses again removes them.
_ORPHANS = tuple(
    sql.text(statement, archive=ArchivedEvent, skills=Skill, adoptions=Adoption, authors=Author)
    for statement in (
        "SELECT p.kind, p.pubkey, p.d FROM {skills} p WHERE NOT EXISTS (SELECT 1 FROM {archive} a "
        "WHERE a.kind = p.kind AND a.pubkey = p.pubkey AND a.d = p.d) LIMIT 200",
        "SELECT DISTINCT 10123, p.adopter, '' FROM {adoptions} p WHERE NOT EXISTS (SELECT 1 FROM {archive} a "
        "WHERE a.kind = 10123 AND a.pubkey = p.adopter) LIMIT 200",
        "SELECT 0, p.pubkey, '' FROM {authors} p WHERE (p.profile_id <> '' OR p.name <> '') AND NOT EXISTS "
        "(SELECT 1 FROM {archive} a WHERE a.kind = 0 AND a.pubkey = p.pubkey) LIMIT 200",
        "SELECT 10002, p.pubkey, '' FROM {authors} p WHERE p.relays_id <> '' AND NOT EXISTS (SELECT 1 FROM {archive} a "
        "WHERE a.kind = 10002 AND a.pubkey = p.pubkey) LIMIT 200",
    )
)


def rebuild(now: int, progress: Callable[[int], None] = lambda done: None) -> int:
    """Recreate tombstones, skills, adoptions, authors and counts; how many addresses there are.

    `progress` is told how many are done after each batch.
    """
    _tombstones()
    done = 0
    for keys in _archived_keys():
        with pace.write():
            _mark(keys, now)
            announce(reproject(keys), [])
        done += len(keys)
        progress(done)
    for statement in _ORPHANS:
        while orphans := _rows(statement, []):
            with pace.write():
                announce(reproject(orphans), [])
    return done


def _tombstones() -> None:
    with pace.write():
        Tombstone.objects.all().delete()
        for raw in ArchivedEvent.objects.filter(kind__in=FINAL).values_list("raw", flat=True).iterator(chunk_size=500):
            tombstones.write(tombstones.rows_of(Event.from_dict(json.loads(raw))))


def _mark(keys: Sequence[Key], now: int) -> None:
    """Whether each version counts, anew from tombstones and time."""
    statement = sql.text(
        "SELECT a.id, a.pubkey, a.created_at, a.kind, a.d, a.gone, a.expires_at FROM {values} "
        "CROSS JOIN {archive} a WHERE a.kind = v.column1 AND a.pubkey = v.column2 AND a.d = v.column3",
        archive=ArchivedEvent,
    )
    rows = sql.join(statement, keys)
    # Enough of an event to know whether it is deleted; its text need not be read.
    events = [Event(pk, pubkey, at, kind, (("d", d),), "", "") for pk, pubkey, at, kind, d, _, _ in rows]
    deleted = Tombstones.concerning(events)
    changed: dict[bool, list[str]] = {True: [], False: []}
    for event, (*_, was_gone, expires_at) in zip(events, rows, strict=True):
        gone = deleted.cover(event) or (expires_at is not None and expires_at <= now)
        if gone != bool(was_gone):
            changed[gone].append(event.id)
    for gone, ids in changed.items():
        for part in sql.parts(ids):
            ArchivedEvent.objects.filter(pk__in=part).update(gone=gone)


def _archived_keys() -> Iterator[list[Key]]:
    """All addresses in batches, by keyset: an open cursor would pin a snapshot and block our own writes."""
    statement = sql.text(
        "SELECT DISTINCT kind, pubkey, d FROM {archive} WHERE (kind, pubkey, d) > (%s, %s, %s) "
        "AND kind NOT IN (5, 62) ORDER BY kind, pubkey, d LIMIT 200",
        archive=ArchivedEvent,
    )
    last: tuple[int, str, str] = (-1, "", "")
    while keys := _rows(statement, last):
        yield keys
        last = keys[-1]


def _rows(statement: str, values: Sequence[Any]) -> list[Key]:
    with connection.cursor() as cursor:
        cursor.execute(statement, list(values))
        return [Key(*row) for row in cursor.fetchall()]
