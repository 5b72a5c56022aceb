"""Statements over many rows at once, the same on SQLite and PostgreSQL: the ORM costs five times as much per row."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import connection, models

ROWS = 1_000  # per statement, fewer where rows are wide
PARAMETERS = 30_000  # SQLite takes 32,766
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
        for part in parts(rows, len(columns)):
            cursor.execute(head + ",".join([one] * len(part)) + tail, [value for row in part for value in row])
            if returning:
                found += cursor.fetchall()
    return found


def join(select: str, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows of a SELECT that names `{values}`, a table v(column1, column2, …) of the rows given.

    Write `FROM {values} CROSS JOIN t WHERE …`: SQLite then starts from the values and not with a walk over t.
    """
    found: list[tuple[Any, ...]] = []
    if not rows:
        return found
    one = "(" + ",".join(["%s"] * len(rows[0])) + ")"
    with connection.cursor() as cursor:
        for part in parts(rows, len(rows[0])):
            values = f"(VALUES {','.join([one] * len(part))}) AS v"
            cursor.execute(select.replace("{values}", values), [value for row in part for value in row])
            found += cursor.fetchall()
    return found


def parts(rows: Sequence[Any], width: int = 1, most: int = ROWS) -> Iterator[Sequence[Any]]:
    """The rows in pieces that fit into one statement."""
    size = max(1, min(most, PARAMETERS // max(width, 1)))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def many(statement: str, rows: Iterable[Sequence[Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(statement, list(rows))
