"""Rows written by statements whose text is made once: Django takes four times as long, most of it to write the text.

For what is written with every call of a model or a tool. Values go through their fields as Django's would, and its
query wrappers see the statements.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from django.db import connection
from django.db.models import Field, Model


def insert(row: Model) -> None:
    """The new row, which gets its key."""
    fields = _own_fields(type(row))
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(_insert(type(row)), values)
        row.pk = cursor.fetchall()[0][0]  # all: SQLite ends the statement with its last row
    row._state.adding, row._state.db = False, connection.alias


def update(model: type[Model], values: Mapping[str, Any], **where: Any) -> int:
    """How many rows now have these values: those whose fields are as in `where`."""
    return _execute(_update(model, tuple(values), tuple(where)), model, values, where)


def add(model: type[Model], amounts: Mapping[str, Any], **where: Any) -> int:
    """The same, with the amounts added to what is there."""
    return _execute(_update(model, tuple(amounts), tuple(where), adds=True), model, amounts, where)


def _execute(text: str, model: type[Model], values: Mapping[str, Any], where: Mapping[str, Any]) -> int:
    given = [*values.items(), *where.items()]
    prepared = [_field(model, name).get_db_prep_save(value, connection) for name, value in given]
    with connection.cursor() as cursor:
        cursor.execute(text, prepared)
        return int(cursor.rowcount)


@lru_cache(maxsize=50)
def _own_fields(model: type[Model]) -> list["Field[Any, Any]"]:
    """All but the key, which the database gives."""
    return [field for field in model._meta.concrete_fields if not field.primary_key]


@lru_cache(maxsize=500)
def _field(model: type[Model], name: str) -> "Field[Any, Any]":
    return cast("Field[Any, Any]", model._meta.pk if name == "pk" else model._meta.get_field(name))


@lru_cache(maxsize=50)
def _insert(model: type[Model]) -> str:
    columns = [_quoted(field.column) for field in _own_fields(model)]
    places = ", ".join(["%s"] * len(columns))
    key = _quoted(_field(model, "pk").column)
    return f"INSERT INTO {_quoted(model._meta.db_table)} ({', '.join(columns)}) VALUES ({places}) RETURNING {key}"  # noqa: S608 our own names


@lru_cache(maxsize=500)
def _update(model: type[Model], names: tuple[str, ...], where: tuple[str, ...], adds: bool = False) -> str:
    columns = [_quoted(_field(model, name).column) for name in names]
    changes = ", ".join(f"{column} = {column} + %s" if adds else f"{column} = %s" for column in columns)
    wanted = " AND ".join(f"{_quoted(_field(model, name).column)} = %s" for name in where)
    return f"UPDATE {_quoted(model._meta.db_table)} SET {changes} WHERE {wanted}"  # noqa: S608 our own names


def _quoted(name: str | None) -> str:
    return connection.ops.quote_name(name or "")
