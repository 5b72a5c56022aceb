"""Adoption counts of the catalogue: always counted anew from current lists, never added to."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, QuerySet
from django.dispatch import receiver

from marketplace import scoring, signals
from marketplace.ingest import archive, pace, sql
from marketplace.ingest.keys import Key
from marketplace.models import Adoption, CatalogueVersion, Skill
from marketplace.protocol import kinds, nip19
from marketplace.protocol.events import HEX64

BATCH = 500


@receiver(signals.touched)
def follow(addresses: Collection[str], **_: object) -> None:
    """Inside ingest's transaction, so that a page never shows a list without its count."""
    recount(addresses)


def recount(addresses: Iterable[str]) -> int:
    """Count the adopters of these skills ("31123:<pubkey>:<d>"); how many rows changed."""
    inside = trusted_keys()
    changed = 0
    for part in sql.parts(sorted(set(addresses)), most=BATCH):
        changed += _write(part, _counts(part), _counts(part, inside) if inside else {})
    return changed


def recount_all() -> int:
    """Every count anew; how many rows changed."""
    changed, last = 0, 0
    while True:
        rows = list(Skill.objects.filter(pk__gt=last).order_by("pk").values_list("pk", "kind", "pubkey", "d")[:BATCH])
        if not rows:
            return changed
        with pace.write():
            found = recount([Key(*row[1:]).text for row in rows])
            if found:
                CatalogueVersion.bump()
        changed += found
        last = rows[-1][0]


def trusted_keys() -> frozenset[str]:
    """The site's web of trust from JOURNEYMAN_TRUST_SEEDS; empty when none is set."""
    seeds = {key for word in settings.TRUST_SEEDS if (key := _key(word))}
    if not seeds:
        return frozenset()
    follows: dict[str, Collection[str]] = {}
    asked: set[str] = set()
    edge = set(seeds)
    for _ in range(scoring.STEPS):
        found = _named(edge, kinds.FOLLOWS)
        follows |= found
        asked |= edge
        edge = {key for keys in found.values() for key in keys} - asked
    return scoring.trusted(seeds, follows, _named(asked, kinds.MUTES))


def _counts(addresses: Sequence[str], only: Collection[str] | None = None) -> dict[str, int]:
    rows: QuerySet[Adoption] = Adoption.objects.filter(address__in=addresses, counted=True)
    if only is None:
        return dict(rows.values_list("address").annotate(n=Count("adopter")))
    counts: dict[str, int] = {}
    for address, adopter in rows.values_list("address", "adopter"):
        counts[address] = counts.get(address, 0) + (adopter in only)
    return counts


def _write(addresses: Sequence[str], adopters: dict[str, int], trusted: dict[str, int]) -> int:
    statement = sql.text(
        "UPDATE {skills} SET adopters = %s, trusted = %s "
        "WHERE kind = %s AND pubkey = %s AND d = %s AND (adopters <> %s OR trusted <> %s)",
        skills=Skill,
    )
    rows: list[list[Any]] = []
    for address in addresses:
        kind, pubkey, d = address.split(":", 2)
        counts = [adopters.get(address, 0), trusted.get(address, 0)]
        rows.append([*counts, int(kind), pubkey, d, *counts])
    if not rows:
        return 0
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)
        return max(int(cursor.rowcount), 0)


def _named(keys: Iterable[str], kind: int) -> dict[str, Collection[str]]:
    """The `p` tags of each key's current list."""
    heads = archive.heads([Key(kind, key, "") for key in keys])
    events = archive.read([event_id for _, event_id in heads.values()])
    return {event.pubkey: {key for key in event.values("p") if HEX64.match(key)} for event in events}


def _key(word: str) -> str:
    try:
        return nip19.read_key(word)
    except ValueError:
        return ""
