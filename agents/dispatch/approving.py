"""The owner's word on calls that wait for it: the run goes on once nothing waits any more."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from agents.dispatch.announcing import announce_after_commit
from agents.models import Run, Step


def decide(step: Step, approved: bool, now: datetime, words: str = "") -> bool:
    """Approve or decline one call, `words` say why; whether it was still waiting."""
    return bool(decide_all([step], approved, now, words))


def decide_all(steps: Sequence[Step], approved: bool, now: datetime, words: str = "") -> int:
    """The same word on several calls of one run; how many of them were still waiting."""
    if not steps:
        return 0
    run_id = steps[0].run_id
    with transaction.atomic():
        # Locked: of two words at once the second one sees that nothing waits any more, and wakes the run.
        waiting = Run.objects.select_for_update().filter(pk=run_id, status=Run.Status.WAITING)
        if not waiting.exists():
            return 0
        decided = sum(step.decide(approved, words) for step in steps)
        open_calls = Step.objects.filter(run_id=run_id, state=Step.State.WAITING, outcome="")
        if decided and not open_calls.exists():
            Run.objects.filter(pk=run_id).update(waiting_until=now, reason="", reason_words="")
            announce_after_commit([run_id], now)
    return decided
