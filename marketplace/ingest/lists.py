"""Kind 10123 -> Adoption: an adopter's rows are those of their current list."""

from collections.abc import Collection, Sequence

from marketplace.ingest import sql
from marketplace.ingest.keys import storable
from marketplace.models import Adoption
from marketplace.protocol.adoptions import named_skills
from marketplace.protocol.events import Event

_COLUMNS = ("adopter", "address", "position", "event_id", "listed_at", "counted")
Entry = tuple[str, bool]  # address, counted
Row = tuple[object, ...]


def project(lists: Sequence[Event]) -> set[str]:
    """Make these the current lists of their adopters; the addresses whose adopters changed.

    What stays on a list keeps its row, and what left it hands its row to what came: an index entry is then
    moved once, where a row that goes and a row that comes would cost two in each.
    """
    before = _rows({event.pubkey for event in lists})
    kept: list[tuple[int, str, int, int]] = []
    reused: list[tuple[str, bool, int, str, int, int]] = []
    fresh: list[tuple[str, str, int, str, int, bool]] = []
    stale: list[tuple[int]] = []
    touched: set[str] = set()
    for event in lists:
        rows, wanted = before.get(event.pubkey, {}), _entries(event)
        left = [entry for entry in rows if entry not in wanted]
        touched.update([address for address, _ in left])
        for entry, position in wanted.items():
            row = rows.get(entry)
            if row is not None:
                kept.append((position, event.id, event.created_at, row))
                continue
            touched.add(entry[0])
            if left:
                reused.append((*entry, position, event.id, event.created_at, rows[left.pop()]))
            else:
                fresh.append((event.pubkey, entry[0], position, event.id, event.created_at, entry[1]))
        stale += [(rows[entry],) for entry in left]
    _write(kept, reused, stale)
    sql.insert(Adoption, _COLUMNS, fresh)
    return touched


def remove(adopters: Collection[str]) -> set[str]:
    """These keys have no current list; the addresses they had on one."""
    before = _rows(adopters)
    _write([], [], [(pk,) for rows in before.values() for pk in rows.values()])
    return {address for rows in before.values() for address, _ in rows}


def adopted(addresses: Sequence[str]) -> set[str]:
    """Those of these addresses that stand on somebody's list."""
    statement = sql.text(
        "SELECT v.column1 FROM {values} WHERE EXISTS (SELECT 1 FROM {adoptions} a WHERE a.address = v.column1)",
        adoptions=Adoption,
    )
    return {row[0] for row in sql.join(statement, [(address,) for address in addresses])}


def _entries(event: Event) -> dict[Entry, int]:
    """Each with its place. An own adoption is shown but not counted; a name that cannot be a column names nothing."""
    named = [(address, author != event.pubkey) for address, author, d in named_skills(event) if storable(d)]
    return {entry: position for position, entry in enumerate(named)}


def _rows(adopters: Collection[str]) -> dict[str, dict[Entry, int]]:
    statement = sql.text(
        "SELECT a.adopter, a.address, a.counted, a.id FROM {values} CROSS JOIN {adoptions} a "
        "WHERE a.adopter = v.column1",
        adoptions=Adoption,
    )
    found: dict[str, dict[Entry, int]] = {}
    for adopter, address, counted, pk in sql.join(statement, [(adopter,) for adopter in adopters]):
        found.setdefault(adopter, {})[address, bool(counted)] = pk
    return found


def _write(kept: Sequence[Row], reused: Sequence[Row], stale: Sequence[Row]) -> None:
    def write(statement: str, rows: Sequence[Row]) -> None:
        sql.many(sql.text(statement, adoptions=Adoption), rows)

    write("DELETE FROM {adoptions} WHERE id = %s", stale)
    write("UPDATE {adoptions} SET position = %s, event_id = %s, listed_at = %s WHERE id = %s", kept)
    write(
        "UPDATE {adoptions} SET address = %s, counted = %s, position = %s, event_id = %s, listed_at = %s WHERE id = %s",
        reused,
    )
