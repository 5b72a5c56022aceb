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
# A range may end on Sunday, as with 7; `sun-sun` is that one day.
_TO_SUNDAY = re.compile(r"(?<!\bsun)-sun\b", re.IGNORECASE)
_FIELDS = ("minute", "hour", "day of month", "month", "day of week")
_RANGES = ("0 to 59", "0 to 23", "1 to 31", "1 to 12 or jan to dec", "0 to 7 or sun to sat, 0 and 7 are Sunday")


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
    schedule = _TO_SUNDAY.sub("-7", schedule)
    found = []
    try:
        ZoneInfo(tz)
    except (ValueError, OSError, KeyError):
        found.append(Problem("tz", f"“{tz[:40]}” is not a time zone such as Europe/Berlin."))
    if len(first.get("schedule", "")) > 200:
        found.append(Problem("schedule", "A schedule has five short fields."))
    else:
        found += _schedule_problems(schedule)
    return (None, found) if found else (Cron(schedule, tz), [])


def to_tags(data: Cron) -> list[list[str]]:
    return [["schedule", data.schedule], ["tz", data.tz]]


def problems(data: Cron) -> list[Problem]:
    return from_tags([tuple(tag) for tag in to_tags(data)])[1]


def in_words(data: Cron) -> str:
    words = CronSim(data.schedule, datetime(2026, 1, 1, tzinfo=UTC)).explain()
    return f"{words} ({data.tz})"


def next_times(data: Cron, now: datetime, count: int = 10) -> list[datetime]:
    """Up to `count` slots after `now`, aware, with the zone's own offset."""
    return list(islice(data.after(now), count))


def slot_key(slot: datetime) -> str:
    """The occasion's key: the slot in UTC, so that a repeated hour has two and a changed zone none twice."""
    return slot.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _schedule_problems(schedule: str) -> list[Problem]:
    parts = schedule.upper().split()
    if schedule.startswith("@"):
        return [Problem("schedule", f"{schedule[:20]} is not supported; write five fields.")]
    if len(parts) == 6:
        return [Problem("schedule", "Six fields (with seconds or a year) are not supported; write five.")]
    if len(parts) != len(_FIELDS):
        return [Problem("schedule", f"A schedule has five fields (minute hour day month weekday), not {len(parts)}.")]
    if any(letter in part for part, letter in ((parts[2], "L"), (parts[2], "W"), (parts[4], "#"), (parts[4], "L"))):
        return [Problem("schedule", "L, W and # (in day of month or day of week) are not supported.")]
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for at, (name, part) in enumerate(zip(_FIELDS, parts, strict=True)):
        alone = ["*"] * len(_FIELDS)
        alone[at] = part
        try:
            CronSim(" ".join(alone), moment)
        except CronSimError:
            return [Problem("schedule", f"“{part[:40]}” is not a valid {name} ({_RANGES[at]}).")]
    try:
        next(CronSim(schedule, moment))
    except (CronSimError, StopIteration):
        return [Problem("schedule", f"The day of month “{parts[2][:40]}” never comes in month “{parts[3][:40]}”.")]
    return []
