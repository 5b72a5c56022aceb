"""Kinds 0 and 10002 -> Author: a key's name and where it writes."""

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from marketplace.ingest import sql
from marketplace.ingest.keys import clean
from marketplace.models import Author
from marketplace.protocol.checks import Refused, strict_json
from marketplace.protocol.events import Event

MAX_RELAYS = 10
_DEFAULTS: dict[str, Any] = {
    "name": "",
    "about": "",
    "nip05": "",
    "profile_id": "",
    "profile_at": 0,
    "write_relays": "[]",
    "relays_id": "",
    "relays_at": 0,
}
_PROFILE = ("name", "about", "nip05", "profile_id", "profile_at")
_RELAYS = ("write_relays", "relays_id", "relays_at")


def names(pubkeys: Iterable[str]) -> dict[str, str]:
    """The names of those of these keys that have a row."""
    statement = sql.text(
        "SELECT a.pubkey, a.name FROM {values} CROSS JOIN {authors} a WHERE a.pubkey = v.column1", authors=Author
    )
    return dict(sql.join(statement, [(pubkey,) for pubkey in pubkeys]))


def project_profiles(profiles: Sequence[Event]) -> set[str]:
    """Write names; the keys whose name changed."""
    before = names({event.pubkey for event in profiles})
    rows = {event.pubkey: _profile(event) for event in profiles}
    _upsert(rows, _PROFILE)
    return {pubkey for pubkey, row in rows.items() if row["name"] != before.get(pubkey, "")}


def project_relays(relay_lists: Sequence[Event]) -> None:
    _upsert({event.pubkey: _relays(event) for event in relay_lists}, _RELAYS)


def forget_profiles(pubkeys: Iterable[str]) -> set[str]:
    """Their profiles count no more; the keys that had a name."""
    found = Author.objects.filter(pk__in=list(pubkeys))
    named = set(found.exclude(name="").values_list("pk", flat=True))
    found.update(name="", about="", nip05="", profile_id="", profile_at=0)
    _drop_empty(pubkeys)
    return named


def forget_relays(pubkeys: Iterable[str]) -> None:
    Author.objects.filter(pk__in=list(pubkeys)).update(write_relays=[], relays_id="", relays_at=0)
    _drop_empty(pubkeys)


def _drop_empty(pubkeys: Iterable[str]) -> None:
    """A row says something or is not there, so that order does not show."""
    Author.objects.filter(pk__in=list(pubkeys), profile_id="", relays_id="").delete()


def _upsert(rows: dict[str, dict[str, Any]], own: Sequence[str]) -> None:
    columns = ("pubkey", *_DEFAULTS)
    values = [
        [pubkey, *(row.get(name, default) for name, default in _DEFAULTS.items())] for pubkey, row in rows.items()
    ]
    updates = ", ".join(f"{name} = excluded.{name}" for name in own)
    sql.insert(Author, columns, values, f"ON CONFLICT (pubkey) DO UPDATE SET {updates}")


def _profile(event: Event) -> dict[str, Any]:
    try:
        content = strict_json(event.content)
    except Refused:
        content = None
    fields = content if isinstance(content, dict) else {}
    return {
        "name": _text(fields, "display_name", 100) or _text(fields, "name", 100),
        "about": _text(fields, "about", 10_000),
        "nip05": _text(fields, "nip05", 200),
        "profile_id": event.id,
        "profile_at": event.created_at,
    }


def _text(fields: dict[str, Any], name: str, most: int) -> str:
    value = fields.get(name)
    return clean(value.strip(), most) if isinstance(value, str) else ""


def _relays(event: Event) -> dict[str, Any]:
    urls = [tag[1].rstrip("/") for tag in event.all("r") if len(tag) > 1 and (len(tag) < 3 or tag[2] != "read")]
    kept = list(dict.fromkeys(clean(url, 300) for url in urls if _is_relay(url)))[:MAX_RELAYS]
    return {"write_relays": json.dumps(kept), "relays_id": event.id, "relays_at": event.created_at}


def _is_relay(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"ws", "wss"} and bool(parts.hostname) and len(url) <= 300
    except ValueError:
        return False
