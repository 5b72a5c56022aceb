"""Costs are exact, by the owner's days, and unknown is never zero."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from agents import charts
from agents.models import Agent, Run, Step
from agents.models.costs import GROUPS, every_day, total
from tests.agents import rows

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def own() -> Agent:
    return rows.agent(rows.owner())


def spent(of: Agent, cost: str | None, at: datetime = NOON, run: Run | None = None, **values: Any) -> Step:
    run = run or rows.run(of)
    fields = {"kind": "model", "state": "done", "name": "openai/gpt-4o-mini", "finished_at": at} | values
    amount = None if cost is None else Decimal(cost)
    return Step.objects.create(run=run, position=run.steps.count() + 1, started_at=at, cost=amount, **fields)


def of_day(own: Agent, first: str, last: str, zone: str) -> dict[str, Decimal]:
    steps = Step.objects.of(own.owner).between(date.fromisoformat(first), date.fromisoformat(last), ZoneInfo(zone))
    return {row.key: row.cost for row in steps.costs_by("day", ZoneInfo(zone))}


@pytest.mark.parametrize(
    ("zone", "saturday", "sunday"),
    [("Asia/Kolkata", 1, 14), ("America/Los_Angeles", 7, 8), ("Europe/Berlin", 3, 12)],
)
def test_a_day_is_the_owners_day_also_when_it_has_23_hours(own: Agent, zone: str, saturday: int, sunday: int) -> None:
    times = ["2026-03-28T18:29:59", "2026-03-28T18:30:00", "2026-03-29T06:59:59", "2026-03-29T07:00:00"]
    for amount, text in zip((1, 2, 4, 8), times, strict=True):
        spent(own, str(amount), datetime.fromisoformat(text).replace(tzinfo=UTC))
    both = of_day(own, "2026-03-28", "2026-03-29", zone)
    assert both == {"2026-03-28": Decimal(saturday), "2026-03-29": Decimal(sunday)}
    assert of_day(own, "2026-03-28", "2026-03-28", zone) == {"2026-03-28": Decimal(saturday)}
    assert of_day(own, "2026-03-29", "2026-03-29", zone) == {"2026-03-29": Decimal(sunday)}


@pytest.mark.parametrize("zone", ["America/Havana", "America/Santiago", "Asia/Beirut", "Pacific/Apia", "UTC"])
def test_each_instant_belongs_to_exactly_one_day(own: Agent, zone: str) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    run = rows.run(own)
    for hour in range(0, 24 * 40, 5):
        spent(own, "1", start + timedelta(hours=hour), run)
    days = [(start.date() + timedelta(days=at)).isoformat() for at in range(-1, 42)]
    singles = [of_day(own, day, day, zone) for day in days]
    assert sum(sum(single.values()) for single in singles) == 192
    assert {key: cost for single in singles for key, cost in single.items()} == of_day(own, days[0], days[-1], zone)


def test_small_amounts_add_up_exactly_at_every_grouping(own: Agent) -> None:
    other = rows.agent(own.owner, "Second")
    amounts = ["0.00004"] * 1_000 + ["0.1"] * 10 + ["0.001615", "0.0149"]
    runs = [rows.run(own, trigger_kind="cron", skill_name="one"), rows.run(other, skill_address="31123:aa:two")]
    made = [
        Step(
            run=runs[at % 2],
            position=at,
            kind="model",
            state="done",
            name="a/b",
            served_model=f"a/{at % 3}",
            started_at=NOON + timedelta(hours=at),
            cost=Decimal(amount),
        )
        for at, amount in enumerate(amounts)
    ]
    Step.objects.bulk_create(made)
    for group in GROUPS:
        found = Step.objects.of(own.owner).costs_by(group, ZoneInfo("Europe/Berlin"))
        assert total(found).cost == Decimal("1.056515"), group
        assert total(found).attempts == len(amounts)


def test_unknown_costs_are_counted_apart_and_never_zero(own: Agent, client: Client) -> None:
    spent(own, None, datetime.now(UTC), served_model="acme/unknown-1")
    spent(own, "0.25", datetime.now(UTC))
    found = {row.key: row for row in Step.objects.of(own.owner).costs_by("model", ZoneInfo("UTC"))}
    assert found["acme/unknown-1"].nothing_known and found["acme/unknown-1"].unknown == 1
    assert total(found.values()).cost == Decimal("0.25")
    client.force_login(own.owner)
    page = client.get("/costs/?group=model").content.decode()
    assert "acme/unknown-1: unknown" in page and "$0.25 + 1 unknown" in page and "NaN" not in page
    assert "chart-unknown" in page


def test_attempts_that_were_never_made_cost_nothing_and_are_not_unknown(own: Agent) -> None:
    spent(own, None, state="refused")
    spent(own, None, state="running")
    spent(own, None, kind="tool")
    assert Step.objects.of(own.owner).costs_by("day", ZoneInfo("UTC")) == []


def test_the_model_is_the_one_that_answered(own: Agent) -> None:
    spent(own, "1", name="cheap/asked", served_model="dear/served")
    spent(own, "0", name="cheap/asked", state="failed")
    found = {row.key: row.cost for row in Step.objects.of(own.owner).costs_by("model", ZoneInfo("UTC"))}
    assert found == {"dear/served": 1, "cheap/asked": 0}


def test_days_without_a_run_are_there_as_zero(own: Agent) -> None:
    spent(own, "1")
    steps = Step.objects.of(own.owner).costs_by("day", ZoneInfo("UTC"))
    filled = every_day(steps, date(2026, 2, 27), date(2026, 3, 2))
    assert [(row.key, row.cost) for row in filled] == [
        ("2026-02-27", 0), ("2026-02-28", 0), ("2026-03-01", 1), ("2026-03-02", 0)
    ]  # fmt: skip


def test_a_chart_of_nothing_is_flat_and_of_zeros_too() -> None:
    assert charts.bars([]).bars == ()
    flat = charts.bars([("a", Decimal(0), 0, "a"), ("b", Decimal(0), 1, "b")])
    assert [bar.height for bar in flat.bars] == [0, 0] and flat.bars[1].unknown and not flat.lines


def test_the_tallest_bar_stays_below_the_top_and_the_smallest_is_seen() -> None:
    chart = charts.bars([("a", Decimal("0.00042"), 1, "a"), ("b", Decimal("900"), 1, "b")])
    assert chart.bars[0].height > 1 and chart.bars[1].mark_y >= 0
    assert [line.value for line in chart.lines] == [500, 1000]


def test_a_month_without_a_call_says_no_data(own: Agent, client: Client) -> None:
    client.force_login(own.owner)
    page = client.get("/costs/?from=2020-01-01&to=2020-01-31").content.decode()
    assert "No data" in page and "<svg" not in page


@pytest.mark.parametrize(
    "query", ["from=x", "from=2026-13-01", "from=2026-02-02&to=2026-01-01", "group=x", "agent=%00", "from=0001-01-01"]
)
def test_what_cannot_be_meant_is_said_in_words(own: Agent, client: Client, query: str) -> None:
    client.force_login(own.owner)
    response = client.get(f"/costs/?{query}")
    assert response.status_code == 400 and b'role="alert"' in response.content


def test_the_page_takes_a_fixed_number_of_queries(
    own: Agent, client: Client, django_assert_max_num_queries: Any
) -> None:
    for at in range(30):
        spent(own, "0.1", datetime.now(UTC) - timedelta(hours=at))
    client.force_login(own.owner)
    with django_assert_max_num_queries(8):
        assert client.get("/costs/").status_code == 200
