"""`cron` (ours): five fields by Debian's rules, in the trigger's own time zone."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from marketplace.protocol.events import Tag
from marketplace.protocol.problems import Problem

LABEL = "A schedule"
TAGS = ("schedule", "tz")
_TO_SUNDAY = re.compile(r"-sun\b", re.IGNORECASE)
_FIELDS = ("minute", "hour", "day of month", "month", "day of week")


@dataclass(frozen=True, slots=True)
class Cron:
    schedule: str
    tz: str = "UTC"

    def after(self, moment: datetime) -> Iterator[datetime]:
        """The slots after an aware moment, in the schedule's own zone."""
        yield from CronSim(self.schedule, moment.astimezone(ZoneInfo(self.tz)))


def from_tags(tags: Sequence[Tag], *, own_input: bool = False) -> tuple[Cron | None, list[Problem]]:
    first = {tag[0]: tag[1] for tag in reversed(tags) if len(tag) > 1}
    schedule, tz = " ".join(first.get("schedule", "")[:400].split()), first.get("tz", "UTC") or "UTC"
    # Sunday ends the week in a range, as 7 does.
    schedule = _TO_SUNDAY.sub("-7", schedule)
    problems = []
    try:
        ZoneInfo(tz)
    except (ValueError, OSError, KeyError):
        problems.append(Problem("tz", f"“{tz[:40]}” is not a time zone such as Europe/Berlin."))
    if len(first.get("schedule", "")) > 200:
        problems.append(Problem("schedule", "A schedule has five short fields."))
    else:
        problems += _schedule_problems(schedule)
    return (None, problems) if problems else (Cron(schedule, tz), [])


def to_tags(data: Cron) -> list[list[str]]:
    return [["schedule", data.schedule], ["tz", data.tz]]


def in_words(data: Cron) -> str:
    words = CronSim(data.schedule, datetime(2026, 1, 1, tzinfo=UTC)).explain()
    return f"{words} ({data.tz})"


def next_times(data: Cron, now: datetime, count: int = 10) -> list[datetime]:
    """Up to `count` slots after `now`, aware, with the zone's own offset."""
    return list(islice(data.after(now), count))


def _schedule_problems(schedule: str) -> list[Problem]:
    parts = schedule.split()
    if schedule.startswith("@"):
        return [Problem("schedule", f"{schedule[:20]} is not supported; write five fields.")]
    if len(parts) != len(_FIELDS):
        return [Problem("schedule", f"A schedule has five fields (minute hour day month weekday), not {len(parts)}.")]
    if any(letter in part for part, letter in ((parts[2], "L"), (parts[2], "W"), (parts[4], "#"), (parts[4], "L"))):
        return [Problem("schedule", "L, W and # are not supported.")]
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for at, (name, part) in enumerate(zip(_FIELDS, parts, strict=True)):
        alone = ["*"] * len(_FIELDS)
        alone[at] = part
        try:
            CronSim(" ".join(alone), moment)
        except CronSimError:
            return [Problem("schedule", f"“{part[:40]}” is not a {name}.")]
    try:
        next(CronSim(schedule, moment))
    except (CronSimError, StopIteration):
        return [Problem("schedule", f"The day of month “{parts[2][:40]}” never comes in month “{parts[3][:40]}”.")]
    return []
