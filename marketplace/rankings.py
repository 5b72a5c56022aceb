"""In which orders skills are listed, each with its rule in a sentence, and paging that neither skips nor repeats."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from marketplace.models import Skill
from marketplace.models.skills import SkillQuerySet


@dataclass(frozen=True, slots=True)
class Ranking:
    """`ordering` ends in the address, so that it is total: no two listed skills share a place."""

    label: str
    rule: str
    ordering: tuple[str, ...]


RANKINGS: dict[str, Ranking] = {
    "adoption": Ranking(
        "Most adopted",
        "Most adopters first, where an adopter is a key whose current list names the skill and an author's own "
        "does not count; equal numbers by newest first publication, then by address.",
        ("-adopters", "-first_published", "pubkey", "d"),
    ),
    "newest": Ranking(
        "Newest",
        "Newest first publication first, then by address.",
        ("-first_published", "pubkey", "d"),
    ),
    "updated": Ranking(
        "Recently updated",
        "Newest current version first, then by address.",
        ("-created_at", "pubkey", "d"),
    ),
}
DEFAULT = "adoption"


class BadCursor(ValueError):
    """The cursor is not one of ours, or belongs to another order."""


def order(skills: SkillQuerySet, name: str) -> SkillQuerySet:
    """Raises KeyError for a name that is not in RANKINGS."""
    return skills.order_by(*RANKINGS[name].ordering)


def page(skills: SkillQuerySet, name: str, cursor: str, limit: int) -> tuple[list[Skill], str]:
    """Up to `limit` skills after the cursor ("" for the start), and the cursor of the next page or "".

    At most two queries however deep the page lies. Raises BadCursor, and KeyError for an unknown name.
    """
    ordering = RANKINGS[name].ordering
    ordered = order(skills, name)
    if not cursor:
        rows = list(ordered[: limit + 1])
    else:
        last = _read(cursor, name)
        # First those that share the leading value, then those beyond it: each is one range of the index,
        # while a single condition would walk over every skill with the same number of adopters.
        lead = ordering[0].lstrip("-")
        rows = list(ordered.filter(_after(ordering[1:], last[1:]), **{lead: last[0]})[: limit + 1])
        if len(rows) <= limit:
            rows += list(ordered.filter(_beyond(ordering[0], last[0]))[: limit + 1 - len(rows)])
    if len(rows) <= limit:
        return rows, ""
    return rows[:limit], _write(rows[limit - 1], name)


def _after(ordering: Sequence[str], values: Sequence[object]) -> Q:
    """What comes after these values; the bound on the first field alone lets the index be used."""
    field, value = ordering[0], values[0]
    if len(ordering) == 1:
        return _beyond(field, value)
    name = field.lstrip("-")
    bound = Q(**{f"{name}__{'lte' if field.startswith('-') else 'gte'}": value})
    return bound & (_beyond(field, value) | (Q(**{name: value}) & _after(ordering[1:], values[1:])))


def _beyond(field: str, value: object) -> Q:
    return Q(**{f"{field.lstrip('-')}__{'lt' if field.startswith('-') else 'gt'}": value})


def _write(skill: Skill, name: str) -> str:
    values = [getattr(skill, field.lstrip("-")) for field in RANKINGS[name].ordering]
    text = json.dumps([name, *values], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(cursor: str, name: str) -> list[object]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        row = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise BadCursor("This cursor is not one of ours.") from None
    ordering = RANKINGS[name].ordering
    if not isinstance(row, list) or len(row) != len(ordering) + 1 or row[0] != name:
        raise BadCursor("This cursor belongs to another order.")
    for field, value in zip(ordering, row[1:], strict=True):
        if field.startswith("-"):
            fits = type(value) is int and 0 <= value < 2**63
        else:
            fits = isinstance(value, str) and "\0" not in value and value.isprintable()
        if not fits:
            raise BadCursor("This cursor is not one of ours.")
    return row[1:]
