"""Statements over many rows at once, the same on SQLite and PostgreSQL: the ORM costs five times as much per row."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from django.db import connection, models

ROWS = 1_000  # per statement, fewer where rows are wide
PARAMETERS = 30_000  # SQLite takes 32,766
# SQLite's parser costs as much as its inserts: statements of one length are prepared once and used again.
PREPARED_ROWS = 32
# Serialises ingest on PostgreSQL, where writers do not exclude each other: a deletion and its target
# arriving at once in two processes must see each other.
INGEST_LOCK = 0x4A4D494E


def table(model: type[models.Model]) -> str:
    return model._meta.db_table


def text(statement: str, **tables: type[models.Model]) -> str:
    """The statement with `{name}` replaced by that model's table."""
    for name, model in tables.items():
        statement = statement.replace("{" + name + "}", table(model))
    return statement


def take_ingest_lock() -> None:
    """Inside a transaction; SQLite's immediate transactions exclude each other anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [INGEST_LOCK])


def insert(
    model: type[models.Model],
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    conflict: str = "ON CONFLICT DO NOTHING",
    returning: str = "",
) -> list[tuple[Any, ...]]:
    """Insert rows; what RETURNING gave, in no certain order."""
    found: list[tuple[Any, ...]] = []
    one = "(" + ",".join(["%s"] * len(columns)) + ")"
    head = f"INSERT INTO {table(model)} ({','.join(columns)}) VALUES "  # noqa: S608
    tail = f" {conflict}" + (f" RETURNING {returning}" if returning else "")
    with connection.cursor() as cursor:
        for size, groups in _groups(rows, len(columns)):
            statement = head + ",".join([one] * size) + tail
            if returning or connection.vendor != "sqlite":
                for values in groups:
                    cursor.execute(statement, values)
                    found += cursor.fetchall() if returning else ()
            else:
                cursor.executemany(statement, groups)
    return found


def join(select: str, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows of a SELECT that names `{values}`, a table v(column1, column2, …) of the rows given and some of NULL.

    Write `FROM {values} CROSS JOIN t WHERE …`: SQLite then starts from the values and not with a walk over t.
    """
    found: list[tuple[Any, ...]] = []
    if not rows:
        return found
    one = "(" + ",".join(["%s"] * len(rows[0])) + ")"
    with connection.cursor() as cursor:
        for size, groups in _groups(_filled(rows), len(rows[0])):
            statement = select.replace("{values}", f"(VALUES {','.join([one] * size)}) AS v")
            for values in groups:
                cursor.execute(statement, values)
                found += cursor.fetchall()
    return found


def _groups(rows: Sequence[Sequence[Any]], width: int) -> Iterator[tuple[int, list[list[Any]]]]:
    """How many rows a statement takes, and the values of each such statement."""
    if connection.vendor != "sqlite":
        for part in parts(rows, width):
            yield len(part), [list(chain.from_iterable(part))]
        return
    start = 0
    for size in (PREPARED_ROWS, PREPARED_ROWS // 8, 1):
        end = len(rows) - (len(rows) - start) % size
        if start < end:
            yield size, [list(chain.from_iterable(rows[at : at + size])) for at in range(start, end, size)]
        start = end


def _filled(rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """With rows of NULL at the end, which equal nothing, so that the last statement is as long as the others."""
    missing = -len(rows) % PREPARED_ROWS if connection.vendor == "sqlite" else 0
    return [*rows, *[(None,) * len(rows[0])] * missing]


def parts(rows: Sequence[Any], width: int = 1, most: int = ROWS) -> Iterator[Sequence[Any]]:
    """The rows in pieces that fit into one statement."""
    size = max(1, min(most, PARAMETERS // max(width, 1)))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def many(statement: str, rows: Iterable[Sequence[Any]]) -> int:
    """Run it once with each row's values; how many rows of the table it changed."""
    values = list(rows)
    if not values:
        return 0
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)
        return int(cursor.rowcount)
