"""What is decided of an event before any row is touched: shape, kind, id, signature, time."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from marketplace.ingest import sql
from marketplace.ingest.outcomes import Outcome
from marketplace.models import ArchivedEvent
from marketplace.protocol import checks
from marketplace.protocol.checks import Refused
from marketplace.protocol.events import HEX64, Event, event_id
from marketplace.protocol.kinds import CRAWLED, DELETION, VANISH
from marketplace.relays.arrivals import Incoming

_CRAWLED = frozenset(CRAWLED)
# Beyond 2106 a time is in milliseconds or nonsense, and not worth waiting for.
LATEST = 2**32


def check(batch: Sequence[Incoming], now: int) -> list[Event | Outcome]:
    """For each input the event that may be stored, or its outcome already. Reads the archive, writes nothing."""
    parsed = [_parsed(incoming) for incoming in batch]
    unchecked = [
        event.id for event, given in zip(parsed, batch, strict=True) if isinstance(event, Event) and not given.checked
    ]
    known = archived(unchecked)
    return [
        _verified(found, incoming, known, now) if isinstance(found, Event) else found
        for found, incoming in zip(parsed, batch, strict=True)
    ]


def archived(ids: Sequence[str]) -> set[str]:
    """Which of these ids the archive holds."""
    statement = sql.text(
        "SELECT a.id FROM {values} CROSS JOIN {archive} a WHERE a.id = v.column1", archive=ArchivedEvent
    )
    return {row[0] for row in sql.join(statement, [(event_id,) for event_id in ids])}


def expires_at(event: Event) -> int | None:
    """The NIP-40 time in unix seconds; a tag that is no such time says nothing, and a deletion never expires."""
    if event.kind in {DELETION, VANISH}:
        return None
    text = event.value("expiration")
    if not text.isascii() or not text.isdigit() or len(text) > 16:
        return None
    return min(int(text), checks.MAX_TIME)


def is_held(event: Event, now: int) -> bool:
    return event.created_at > now + checks.FUTURE_SECONDS


def _parsed(incoming: Incoming) -> Event | Outcome:
    raw, relay = incoming.raw, incoming.relay
    try:
        event = raw if isinstance(raw, Event) else checks.parse(raw)
    except Refused as refused:
        return Outcome(claimed_id(raw), "refused", refused.reason, relay=relay)
    if event.kind not in _CRAWLED:
        return Outcome(event.id, "ignored", f"kind {event.kind} is not kept", event, relay)
    if event.created_at > LATEST:
        return Outcome(event.id, "refused", "time", relay=relay)
    return event


def _verified(event: Event, incoming: Incoming, known: set[str], now: int) -> Event | Outcome:
    if not incoming.checked:
        try:
            if not (event.id in known and _same_id(event)):
                checks.verify(event)
        except Refused as refused:
            return Outcome(event.id, "refused", refused.reason, relay=incoming.relay)
    expiry = expires_at(event)
    if expiry is not None and expiry <= now:
        return Outcome(event.id, "expired", f"expired {_when(expiry)}", event, incoming.relay)
    return event


def held(event: Event, relay: str) -> Outcome:
    due = event.created_at - checks.FUTURE_SECONDS
    return Outcome(event.id, "held", f"dated {_when(event.created_at)}, held until {_when(due)}", event, relay)


def _same_id(event: Event) -> bool:
    """The signature of an archived id was checked once; the hash says that this is the same event."""
    try:
        return event_id(event.pubkey, event.created_at, event.kind, event.tags, event.content) == event.id
    except UnicodeEncodeError:
        return False


def claimed_id(raw: object) -> str:
    """What a refused input calls itself, so that its sender finds it again."""
    row: Any = raw
    if isinstance(raw, str | bytes):
        try:
            row = json.loads(raw) if len(raw) <= checks.MAX_BYTES else None
        except (ValueError, RecursionError):
            return ""
    claimed = row.get("id") if isinstance(row, dict) else None
    return claimed if isinstance(claimed, str) and HEX64.match(claimed) else ""


def _when(at: int) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError):
        return "in the far future"
