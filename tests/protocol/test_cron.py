"""Schedules: what the field accepts (C03), and when they fire around the change of clocks (C01, C02)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.protocol.triggers import cron
from marketplace.protocol.triggers.cron import Cron


def read(schedule: str, tz: str = "UTC") -> tuple[Cron | None, list[str]]:
    found, problems = cron.from_tags([("schedule", schedule), ("tz", tz)])
    assert (found is None) == bool(problems)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


def slots(schedule: str, tz: str, start: str, count: int) -> list[str]:
    found, problems = read(schedule, tz)
    assert found is not None, problems
    return [cron.slot_key(slot) for slot in cron.next_times(found, datetime.fromisoformat(start), count)]


@pytest.mark.parametrize("days", ["5-7", "fri-sun", "FRI-SUN", "5,6,7", "5,6,0", "fri,sat,sun"])
def test_c03_sunday_is_seven_in_lists_and_ranges(days: str) -> None:
    expected = ["2026-11-06", "2026-11-07", "2026-11-08", "2026-11-13"]
    assert [key[:10] for key in slots(f"0 0 * * {days}", "UTC", "2026-11-01T00:00Z", 4)] == expected


@pytest.mark.parametrize("days", ["7", "0", "sun", "sun-sun"])
def test_c03_sunday_alone(days: str) -> None:
    assert slots(f"0 0 * * {days}", "UTC", "2026-11-01T00:00Z", 1) == ["2026-11-08T00:00:00Z"]


def test_c03_saturday_to_sunday() -> None:
    assert slots("0 0 * * sat-sun", "UTC", "2026-11-02T00:00Z", 3) == [
        "2026-11-07T00:00:00Z",
        "2026-11-08T00:00:00Z",
        "2026-11-14T00:00:00Z",
    ]


def test_c03_the_leap_day_waits_for_its_year() -> None:
    assert slots("0 0 29 2 *", "UTC", "2026-11-01T00:00Z", 1) == ["2028-02-29T00:00:00Z"]


@pytest.mark.parametrize(
    ("schedule", "word"),
    [
        ("0 0 30 2 *", "day of month"),
        ("*/0 * * * *", "minute"),
        ("60 0 * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 0 0 * *", "day of month"),
        ("0 0 * 13 *", "month"),
        ("0 0 * * 8", "day of week"),
        ("0 0 * * sat-mon", "day of week"),
        ("1-,2 * * * *", "minute"),
        ("* * * *", "five fields"),
        ("* * * * * *", "not supported"),
        ("@daily", "not supported"),
        ("0 0 L * *", "not supported"),
        ("0 0 l * *", "not supported"),
        ("0 0 15W * *", "not supported"),
        ("0 0 * * 5L", "not supported"),
        ("0 0 * * 1#2", "not supported"),
        ("", "five fields"),
        ("x" * 10_000, "five"),
        ("* " * 5_000, "five"),
        ("\ud800 * * * *", "minute"),
    ],
)
def test_c03_refused_at_once_with_the_field_named(schedule: str, word: str) -> None:
    found, problems = read(schedule)
    assert found is None
    assert problems[0].startswith("schedule: ")
    assert word in problems[0]


@pytest.mark.parametrize("tz", ["Mars/Base", "../etc/passwd", "Europe", "\x00", "x" * 5_000])
def test_a_zone_that_is_not_one_is_named(tz: str) -> None:
    found, problems = read("0 0 * * *", tz)
    assert found is None
    assert problems[0].startswith("tz: ")


def test_c03_spaces_and_month_names() -> None:
    found, _ = read("   0  0 *\tjan-mar * ")
    assert found == Cron("0 0 * jan-mar *")
    assert len(cron.next_times(Cron("0 0 * jan-mar *"), datetime(2026, 11, 1, tzinfo=UTC), 5)) == 5


def test_c01_no_hour_is_lost_when_it_repeats() -> None:
    assert slots("0 * * * *", "America/Los_Angeles", "2026-11-01T06:30Z", 5) == [
        f"2026-11-01T{hour:02}:00:00Z" for hour in (7, 8, 9, 10, 11)
    ]
    assert slots("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45Z", 5) == [
        f"2026-10-25T{at}:00Z" for at in ("00:00", "00:30", "01:00", "01:30", "02:00")
    ]


def test_c02_a_time_that_does_not_exist_fires_after_the_gap_and_a_repeated_one_once() -> None:
    assert slots("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", 2) == [
        "2026-03-29T01:00:00Z",
        "2026-03-30T00:30:00Z",
    ]
    assert slots("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", 2) == [
        "2026-10-25T00:30:00Z",
        "2026-10-26T01:30:00Z",
    ]
    assert slots("4 16 * * *", "America/New_York", "2025-03-08T21:04Z", 1) == ["2025-03-09T20:04:00Z"]


FIELD = st.one_of(
    st.just("*"),
    st.integers(1, 7).map(str),
    st.integers(1, 9).map(lambda step: f"*/{step}"),
    st.tuples(st.integers(1, 4), st.integers(4, 7)).map(lambda ends: f"{ends[0]}-{ends[1]}"),
)


@settings(max_examples=40)
@given(st.tuples(FIELD, FIELD, FIELD, FIELD, FIELD), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]))
def test_what_is_accepted_has_words_and_five_times_in_order(fields: tuple[str, ...], tz: str) -> None:
    found, problems = read(" ".join(fields), tz)
    assert found is not None, problems
    times = cron.next_times(found, datetime(2026, 3, 28, tzinfo=UTC), 5)
    assert len(set(map(cron.slot_key, times))) == 5
    assert times == sorted(times)
    assert cron.in_words(found).endswith(f"({tz})")
    assert cron.from_tags([tuple(tag) for tag in cron.to_tags(found)]) == (found, [])


@settings(max_examples=40)
@given(st.text(max_size=30), st.text(max_size=20))
def test_nothing_is_raised_whatever_is_typed(schedule: str, tz: str) -> None:
    cron.from_tags([("schedule", schedule), ("tz", tz)])
