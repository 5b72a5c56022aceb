"""How a relay is doing, in one state and words, and its row."""

from collections import Counter
from dataclasses import dataclass, field

from django.utils import timezone

from marketplace.models import Relay
from marketplace.protocol.storable import storable

FAULTY_AFTER = 5  # refusals
FAULTY_SHARE = 0.1  # and of all events of the session


@dataclass(frozen=True, slots=True)
class Status:
    """What changed since the last report: counts are additions, state and detail are as they stand."""

    url: str
    state: str  # a value of Relay.State
    detail: str = ""
    received: int = 0
    refusals: Counter[str] = field(default_factory=Counter)  # reason -> how often
    synced_until: int | None = None  # unix seconds; None: not further than before


def record(status: Status) -> None:
    """Write it into the relay's row; the only writer of these fields."""
    relay, _ = Relay.objects.get_or_create(url=status.url[:300])
    changed = [] if relay.state == status.state else ["changed_at"]
    if changed:
        relay.changed_at = timezone.now()
    relay.state = status.state
    relay.detail = storable(status.detail[:300])
    relay.received += status.received
    relay.refused += status.refusals.total()
    relay.refusals = dict(Counter(relay.refusals) + status.refusals)
    relay.synced_until = max(relay.synced_until, status.synced_until or 0)
    fields = ["state", "detail", "received", "refused", "refusals", "synced_until"]
    relay.save(update_fields=[*fields, *changed])


def is_faulty(received: int, refused: int) -> bool:
    """Whether a relay sends so much of what it must not that people should know."""
    return refused >= FAULTY_AFTER and refused > FAULTY_SHARE * (received + refused)
