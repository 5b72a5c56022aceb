"""What happens to events because time passes: held ones become due, others expire."""

from marketplace.ingest import pace
from marketplace.ingest.keys import Key
from marketplace.ingest.outcomes import Outcome
from marketplace.ingest.projecting import reproject
from marketplace.ingest.storing import announce, store
from marketplace.models import ArchivedEvent, HeldEvent
from marketplace.relays.arrivals import Incoming

BATCH = 200


def release_held(now: int) -> list[Outcome]:
    """Store the events that are dated no more than 900 s ahead by now."""
    outcomes: list[Outcome] = []
    while True:
        due = list(HeldEvent.objects.filter(due_at__lte=now).order_by("due_at", "id")[:BATCH])
        if not due:
            return outcomes
        outcomes += store([Incoming(held.raw, held.relay_url) for held in due], now)
        HeldEvent.objects.filter(pk__in=[held.pk for held in due]).delete()


def expire(now: int) -> int:
    """Take away what expired (NIP-40); how many events that were."""
    count = 0
    while True:
        with pace.write():
            due = ArchivedEvent.objects.filter(expires_at__lte=now, gone=False).order_by("expires_at", "pk")[:BATCH]
            rows = list(due.values_list("pk", "kind", "pubkey", "d"))
            if not rows:
                return count
            ArchivedEvent.objects.filter(pk__in=[row[0] for row in rows]).update(gone=True)
            announce(reproject(list(dict.fromkeys(Key(*row[1:]) for row in rows))), [])
        count += len(rows)
