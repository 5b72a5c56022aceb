"""Orders are total, and paging neither skips nor repeats, whatever is inserted between two pages."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from marketplace import rankings
from marketplace.models import Skill

pytestmark = pytest.mark.django_db


def skill(d: str, adopters: int = 0, first: int = 1, updated: int = 1, pubkey: str = "a") -> Skill:
    return Skill(
        kind=31123,
        pubkey=pubkey * 64,
        d=d,
        event_id="0" * 64,
        created_at=updated,
        first_published=first,
        adopters=adopters,
    )


def walk(name: str, limit: int) -> list[str]:
    found: list[str] = []
    cursor = ""
    while True:
        rows, cursor = rankings.page(Skill.objects.public(), name, cursor, limit)
        assert len(rows) <= limit
        found += [row.address for row in rows]
        if not cursor:
            return found


@pytest.mark.parametrize("name", list(rankings.RANKINGS))
@pytest.mark.parametrize("limit", [1, 7, 50, 1_000])
def test_pages_together_are_the_whole_order(name: str, limit: int) -> None:
    rows = [skill(f"s{n:03}", n % 4, n % 5, n % 3, "ab"[n % 2]) for n in range(60 if limit == 1 else 150)]
    Skill.objects.bulk_create(rows)
    whole = [row.address for row in rankings.order(Skill.objects.public(), name)]
    assert walk(name, limit) == whole
    assert len(set(whole)) == len(rows)


def test_equal_counts_go_by_newest_first_publication_then_by_address() -> None:
    Skill.objects.bulk_create(
        [skill("b"), skill("a"), skill("a", pubkey="0"), skill("new", first=9), skill("top", adopters=1, first=0)]
    )
    order = [row.address.split(":", 1)[1] for row in rankings.order(Skill.objects.public(), "adoption")]
    a, zero = "a" * 64, "0" * 64
    assert order == [f"{a}:top", f"{a}:new", f"{zero}:a", f"{a}:a", f"{a}:b"]


def test_skills_inserted_between_pages_move_none_of_the_others() -> None:
    Skill.objects.bulk_create([skill(f"s{n:03}", 2) for n in range(120)])
    found: list[str] = []
    cursor = ""
    for extra in "xyz":
        rows, cursor = rankings.page(Skill.objects.public(), "adoption", cursor, 50)
        found += [row.d for row in rows]
        Skill.objects.bulk_create([skill(f"{extra}{n}", 2, first=9) for n in range(3)])
    assert found == [f"s{n:03}" for n in range(120)]
    assert cursor == ""


def test_a_deep_page_takes_two_queries() -> None:
    Skill.objects.bulk_create([skill(f"s{n:03}", 0) for n in range(200)])
    _, cursor = rankings.page(Skill.objects.public(), "adoption", "", 150)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        rows, _ = rankings.page(Skill.objects.public(), "adoption", cursor, 100)
    assert len(rows) == 50
    assert len(queries) == 2


@pytest.mark.parametrize("cursor", ["x", "%%%", "é", "W10", "WyJhZG9wdGlvbiJd", "A" * 5_000, "bnVsbA"])
def test_a_cursor_that_is_not_ours_is_refused(cursor: str) -> None:
    with pytest.raises(rankings.BadCursor):
        rankings.page(Skill.objects.public(), "adoption", cursor, 10)


def test_a_cursor_of_another_order_is_refused() -> None:
    Skill.objects.bulk_create([skill("a"), skill("b")])
    _, cursor = rankings.page(Skill.objects.public(), "newest", "", 1)
    with pytest.raises(rankings.BadCursor):
        rankings.page(Skill.objects.public(), "updated", cursor, 1)


def test_each_ranking_says_its_rule_and_ends_in_the_address() -> None:
    for ranking in rankings.RANKINGS.values():
        assert ranking.label
        assert ranking.rule.endswith(".")
        assert ranking.ordering[-2:] == ("pubkey", "d")
