"""What dead workers left reserved of runs that are over: nobody knows how those calls ended, so they cost it all."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from agents.models import Reservation, Run, Step
from agents.runner.journal import Journal

PATIENCE = timedelta(minutes=2)  # a worker that is told to stop settles its own call within seconds
MOST_AT_ONCE = 100


def settle(now: datetime) -> int:
    """How many calls were settled at what was reserved for them, and marked as estimated."""
    over = Reservation.objects.filter(
        settled=None, step__run__status__in=Run.FINAL, step__run__finished_at__lt=now - PATIENCE
    )
    rows = over.select_related("step__run").order_by("at")[:MOST_AT_ONCE]
    return sum(_settled(row.step) for row in rows)


@transaction.atomic
def _settled(step: Step) -> bool:
    words = "The worker ended before the answer came."
    if Journal(step.run).charge_reserved(step, outcome="unknown", error=words):
        return True
    # Its step is over already: the money alone is left.
    return bool(Reservation.objects.filter(step=step, settled=None).update(settled=F("amount")))
