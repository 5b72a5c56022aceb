"""Kind 10123 -> Adoption: an adopter's rows are those of their current list, replaced as a whole."""

from collections.abc import Collection, Sequence

from marketplace.ingest import sql
from marketplace.ingest.keys import storable
from marketplace.models import Adoption
from marketplace.protocol.adoptions import read_adoptions
from marketplace.protocol.events import Event

_COLUMNS = ("adopter", "address", "position", "event_id", "listed_at", "counted")


def project(lists: Sequence[Event]) -> set[str]:
    """Replace the rows of these adopters; the addresses whose adopters changed."""
    before = _addresses({event.pubkey for event in lists})
    rows = [row for event in lists for row in _rows(event)]
    _delete({event.pubkey for event in lists})
    sql.insert(Adoption, _COLUMNS, rows)
    after = {(row[0], row[1]) for row in rows}
    return {str(address) for _, address in before ^ after}


def remove(adopters: Collection[str]) -> set[str]:
    """These keys have no current list; the addresses they had on one."""
    before = _addresses(adopters)
    _delete(adopters)
    return {address for _, address in before}


def _rows(event: Event) -> list[tuple[str, str, int, str, int, bool]]:
    """An own adoption is shown but not counted. Names that cannot be a column name no skill here."""
    entries = [entry.address for entry in read_adoptions(event).entries if storable(entry.address.d)]
    return [
        (event.pubkey, str(address), position, event.id, event.created_at, address.pubkey != event.pubkey)
        for position, address in enumerate(entries)
    ]


def _addresses(adopters: Collection[str]) -> set[tuple[str, str]]:
    return set(Adoption.objects.filter(adopter__in=adopters).values_list("adopter", "address"))


def _delete(adopters: Collection[str]) -> None:
    stale = Adoption.objects.filter(adopter__in=adopters)
    stale._raw_delete(stale.db)
