"""What may narrow a list of runs or a table of costs: the same words in addresses of pages and of the API."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agents.models import Run
from agents.models.costs import day_starts
from agents.models.runs import RunQuerySet

EARLIEST, LATEST = date(2000, 1, 1), date(9000, 1, 1)
LONGEST = 300
MOST_DAYS = 1_100


class Unreadable(ValueError):
    """A filter says something that cannot be meant; str() says what, in words."""


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: names that are folders or too long
        raise Unreadable(f"“{name[:64]}” is not a time zone; take one like Europe/Berlin.") from None


def day_of(text: str) -> date | None:
    """YYYY-MM-DD, None for nothing."""
    if not text:
        return None
    try:
        day = date.fromisoformat(text) if len(text) == 10 and text.isascii() else None
    except ValueError:
        day = None
    if day is None or not EARLIEST <= day <= LATEST:
        raise Unreadable(f"“{text[:40]}” is not a date; write it as 2026-03-28.")
    return day


def days_between(first: str, last: str, today: date) -> tuple[date, date]:
    """The days asked for; without any, this month so far."""
    end = day_of(last) or today
    start = day_of(first) or end.replace(day=1)
    if start > end:
        raise Unreadable(f"{start} comes after {end}.")
    if (end - start).days >= MOST_DAYS:
        raise Unreadable(f"At most {MOST_DAYS} days at once.")
    return start, end


def plain(text: str) -> str:
    """Text a database can be asked with. Raises Unreadable for NUL and for halves of characters."""
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise Unreadable("A filter holds a character that no text has.")
    return text[:LONGEST]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Empty means all."""

    status: str = ""
    skill: str = ""  # address, or name
    trigger: str = ""  # kind
    agent: str = ""  # slug
    model: str = ""
    since: date | None = None
    until: date | None = None

    @classmethod
    def read(cls, given: Mapping[str, str]) -> "RunFilter":
        texts = {name: plain(given.get(name, "").strip()) for name in ("status", "skill", "trigger", "agent", "model")}
        if texts["status"] and texts["status"] not in Run.Status.values:
            raise Unreadable(f"There is no status “{texts['status'][:40]}”; there is {', '.join(Run.Status.values)}.")
        return cls(**texts, since=day_of(given.get("from", "")), until=day_of(given.get("to", "")))

    def apply(self, runs: RunQuerySet, zone: ZoneInfo) -> RunQuerySet:
        if self.status:
            runs = runs.filter(status=self.status)
        if self.skill:
            runs = runs.filter(**{"skill_address" if ":" in self.skill else "skill_name": self.skill})
        if self.trigger:
            runs = runs.filter(trigger_kind=self.trigger)
        if self.agent:
            runs = runs.filter(agent__slug=self.agent)
        if self.model:
            runs = runs.filter(model=self.model)
        if self.since:
            runs = runs.filter(created_at__gte=day_starts(self.since, zone))
        if self.until:
            runs = runs.filter(created_at__lt=day_starts(self.until + timedelta(days=1), zone))
        return runs

    def query(self, **more: str) -> str:
        """As it stands in an address."""
        names = {"since": "from", "until": "to"}
        own = {names.get(field.name, field.name): str(getattr(self, field.name) or "") for field in fields(self)}
        return urlencode({name: value for name, value in {**own, **more}.items() if value})

    @property
    def any(self) -> bool:
        return self != RunFilter()


def cursor(place: tuple[datetime, str] | None) -> str:
    """Where the next page begins, in an address: microseconds and the id."""
    if place is None:
        return ""
    at, run_id = place
    return f"{(at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)}-{run_id}"


def place_of(text: str) -> tuple[datetime, str] | None:
    number, sign, run_id = text.partition("-")
    if not text:
        return None
    if not (sign and number.isascii() and number.isdigit() and len(number) <= 17 and run_id.isalnum()):
        raise Unreadable("This is not where a page begins; start from the first one.")
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(number)), run_id[:26]
