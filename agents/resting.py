"""A trigger that rests for a while, or until its owner looks: paused by hand, or broken by failures in a row."""

from datetime import datetime

from agents import arming
from agents.models import Run, Trigger

COUNTED = frozenset({Run.Status.SUCCEEDED, Run.Status.FAILED})


def pause(trigger: Trigger, until: datetime | None) -> None:
    """Nothing fires until then, or until it is resumed; what happens meanwhile does not fire later."""
    Trigger.objects.filter(pk=trigger.pk).rest(Trigger.Rest.PAUSED, until)


def resume(trigger: Trigger, now: datetime) -> None:
    """It fires again, from now on; its failures count anew."""
    Trigger.objects.filter(pk=trigger.pk).update(rests="", rests_until=None, failures=0)
    arming.switch(trigger, trigger.enabled, now)


def wake(now: datetime) -> int:
    """Resumes those whose pause is over."""
    due = Trigger.objects.filter(rests=Trigger.Rest.PAUSED, rests_until__lte=now).select_related("agent")
    for trigger in due:
        resume(trigger, now)
    return len(due)


def note_end(run: Run) -> None:
    """Counts failures in a row; call it in the transaction that ends the run. A stop says nothing about a skill."""
    if run.trigger_id is None or run.status not in COUNTED:
        return
    trigger = Trigger.objects.filter(pk=run.trigger_id)
    if run.status == Run.Status.FAILED:
        trigger.failed()
    else:
        trigger.exclude(failures=0).update(failures=0)
