"""The owner's word on calls that wait for it, for programs."""

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Router, Schema
from ninja.errors import HttpError
from pydantic import Field

from agents import dispatch
from agents.api.auth import caller, writes
from agents.api.runs import ERRORS, Error, RunDetail, Text, detail, own_run
from agents.models import Step

LONGEST_REASON = 500
router = Router(tags=["runs"])


class DecideIn(Schema):
    decision: Text = Field("", max_length=20, description="approve or decline")
    reason: Text = Field("", max_length=LONGEST_REASON, description="why; the model reads it")


@router.post(
    "/{run_id}/steps/{position}",
    auth=writes,
    response={200: RunDetail, **ERRORS, 409: Error},
    summary="Approve or decline a call that waits",
    operation_id="decide",
)
def decide(request: HttpRequest, run_id: str, position: int, body: DecideIn) -> dict[str, Any]:
    """The run goes on once nothing of it waits any more. What was decided stays decided."""
    user = caller(request)
    run = own_run(user, run_id)
    step = get_object_or_404(Step, run=run, position=min(max(position, 0), 2**31 - 1))
    if body.decision not in {"approve", "decline"}:
        raise HttpError(400, "The decision is “approve” or “decline”.")
    if not dispatch.decide(step, body.decision == "approve", timezone.now(), body.reason.strip()):
        raise HttpError(409, "This call does not wait for a decision.")
    return detail(own_run(user, run_id))
