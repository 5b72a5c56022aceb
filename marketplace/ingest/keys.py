"""Where an event belongs in our tables: its address as three columns, and texts that every database takes."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from marketplace.protocol.events import Event
from marketplace.protocol.kinds import is_addressable, is_replaceable
from marketplace.protocol.storable import is_storable
from marketplace.protocol.storable import storable as replaced

MAX_D = 200  # characters of the column; relays index 184 bytes


class Key(NamedTuple):
    """An address as stored; `d` is a hash where the name cannot be a column."""

    kind: int
    pubkey: str
    d: str

    @property
    def text(self) -> str:
        return f"{self.kind}:{self.pubkey}:{self.d}"


def key_of(event: Event) -> Key | None:
    """None for kinds that replace nothing."""
    if is_addressable(event.kind):
        return Key(event.kind, event.pubkey, stored_d(event.value("d")))
    if is_replaceable(event.kind):
        return Key(event.kind, event.pubkey, "")
    return None


def keyed(event: Event) -> Key:
    """The address of an event of a kind that has one."""
    key = key_of(event)
    if key is None:
        raise ValueError(f"kind {event.kind} has no address")
    return key


def storable(d: str) -> bool:
    return len(d) <= MAX_D and is_storable(d)


def stored_d(d: str) -> str:
    """The name, or "sha256:…" for one too long or with NUL, which PostgreSQL refuses."""
    return d if storable(d) else "sha256:" + hashlib.sha256(d.encode("utf-8", "replace")).hexdigest()


def clean(text: str, most: int) -> str:
    """A text for a column: no NUL, no half of a character, and not longer than it may be."""
    text = text[:most]
    return text if is_storable(text) else str(replaced(text))


def newer(event: Event, head: tuple[int, str] | None) -> bool:
    """Whether the event replaces what stands there (NIP-01: equal time, lowest id wins)."""
    return head is None or (event.created_at, head[1]) > (head[0], event.id)
