"""Stopping everything on the site at once, and letting it go on."""

from datetime import datetime

from django.db import IntegrityError, transaction

from agents.models import Halt, Run
from marketplace.models import User

WHY = "The operator stopped everything on this site."


def halt(user: User, now: datetime) -> int:
    """Nothing starts from now on; how many open runs were stopped. Workers see it before their next step."""
    try:
        with transaction.atomic():
            Halt.objects.create(at=now, by=user)
    except IntegrityError:
        pass  # it is on already; what opened since is stopped all the same
    return Run.objects.open().cancel(now, WHY)


def go_on(now: datetime) -> bool:
    """Whether this was what ended the halt. Triggers fire on what happens from now on; what was asked for starts."""
    ended = bool(Halt.objects.open().update(ended_at=now))
    if ended:
        # Their messages were heard while nothing might start: the next tick sends them again.
        Run.objects.filter(status=Run.Status.QUEUED).update(announced_at=None)
    return ended
