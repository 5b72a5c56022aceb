"""What limits would have done with a row of occasions, had the trigger been armed: by the very rules that decide."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agents.engine.limits import Limits, Refusal, Situation, decide

MINUTE = 60


@dataclass(frozen=True, slots=True)
class Moment:
    """One occasion of the past; `at` in unix seconds."""

    at: int
    what: Any = None  # the caller's own: an event, a delivery
    own_event: bool = False
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Rehearsed:
    moment: Moment
    refusal: Refusal | None  # None: it would have run


def rehearse(moments: Iterable[Moment], action: str, limits: Limits) -> list[Rehearsed]:
    """Each moment, oldest first, with what would have held it back.

    Every run counts as ended before the next occasion: how long one takes nobody knows beforehand.
    """
    found: list[Rehearsed] = []
    recent: deque[int] = deque()
    last: int | None = None
    for moment in sorted(moments, key=lambda one: one.at):
        while recent and recent[0] <= moment.at - MINUTE:
            recent.popleft()
        case = Situation(
            action=action,
            own_event=moment.own_event,
            expired=moment.expired,
            since_last=None if last is None else moment.at - last,
            llm_last_minute=len(recent) if action == "llm" else 0,
            template_last_minute=len(recent) if action == "template" else 0,
        )
        refusal = decide(case, limits)
        if refusal is None:
            last = moment.at
            recent.append(moment.at)
        found.append(Rehearsed(moment, refusal))
    return found
