"""Adoption counts of the catalogue: always counted anew from current lists, never added to."""

from collections.abc import Collection, Iterable, Sequence

from django.conf import settings
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
    # In order, so that neighbours in the index come after each other.
    wanted = sorted(set(addresses))
    counts = sql.text(
        "SELECT v.column1, (SELECT count(*) FROM {adoptions} a WHERE a.address = v.column1 AND a.counted) "
        "FROM {values}",
        adoptions=Adoption,
    )
    adopters = dict(sql.join(counts, [(address,) for address in wanted]))
    trusted = _trusted(wanted, trusted_keys())
    rows = []
    for address in wanted:
        kind, pubkey, d = address.split(":", 2)
        now = (adopters[address], trusted.get(address, 0))
        rows.append((*now, pubkey, int(kind), d, *now))
    update = sql.text(
        "UPDATE {skills} SET adopters = %s, trusted = %s WHERE pubkey = %s AND kind = %s AND d = %s "
        "AND (adopters <> %s OR trusted <> %s)",
        skills=Skill,
    )
    return sql.many(update, rows)


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


def _trusted(addresses: Sequence[str], inside: Collection[str]) -> dict[str, int]:
    """How many adopters of each are inside the web of trust."""
    counts: dict[str, int] = {}
    for part in sql.parts(addresses if inside else []):
        rows = Adoption.objects.filter(address__in=part, counted=True).values_list("address", "adopter")
        for address, adopter in rows:
            counts[address] = counts.get(address, 0) + (adopter in inside)
    return counts


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
