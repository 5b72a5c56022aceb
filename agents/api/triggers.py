"""What the rules say of trigger tags, before anything is published with them."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Router, Schema

from agents.api.auth import caller
from agents.api.runs import Error
from marketplace.protocol.storable import storable
from marketplace.protocol.triggers import problems_of, read_trigger
from marketplace.protocol.triggers.cron import Cron, next_times

NEXT = 10  # times of a schedule
MOST_TAGS = 2_000  # of an event, as relays take them


class CheckIn(Schema):
    tags: list[list[str]] = Field(max_length=MOST_TAGS, description="the tags of a skill event; others are ignored")


class ProblemOut(Schema):
    field: str
    message: str
    level: str = Field(description="error, or warning: it can be published all the same")


class CheckOut(Schema):
    usable: bool
    problems: list[ProblemOut]
    words: str = Field(description="what fires it, as a sentence")
    next: list[str] = Field(description="of a schedule: up to ten times, each with the offset of its zone")


router = Router(tags=["triggers"])


@router.post("/check", response={200: CheckOut, 401: Error}, summary="Check trigger tags", operation_id="check_trigger")
def check_trigger(request: HttpRequest, body: CheckIn) -> dict[str, Any]:
    """By the same rules as the form, the editor and the import; nothing is stored."""
    caller(request)
    spec = read_trigger([tuple(storable(tag)) for tag in body.tags if tag], own_input=True)
    if spec is None:
        missing = {"field": "trigger", "message": "There is no `trigger` tag.", "level": "error"}
        return {"usable": False, "problems": [missing], "words": "", "next": []}
    found = problems_of(spec)
    slots = next_times(spec.data, timezone.now(), NEXT) if isinstance(spec.data, Cron) else []
    return {
        "usable": spec.usable and not any(problem.level == "error" for problem in found),
        "problems": [{"field": one.field, "message": one.message, "level": one.level} for one in found],
        "words": spec.words,
        "next": [slot.isoformat() for slot in slots],
    }
