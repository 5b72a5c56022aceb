"""Triggers that rest: paused by hand, or broken by failures in a row; and what becomes of missed slots."""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from agents import dispatch, firing, resting
from agents.management import watching
from agents.models import Agent, HeldBack, Run, Trigger
from marketplace.protocol.triggers.cron import Cron
from tests.agents.world import NOW, happened, make_agent, make_trigger, note

pytestmark = pytest.mark.django_db

DAYS = int(os.environ.get("TEST_CLOCK_DAYS", "2"))  # 7: the whole week, which takes longer
EVERY_MINUTE = [["trigger", "cron"], ["schedule", "* * * * *"]]


@pytest.fixture
def agent() -> Agent:
    return make_agent(limits={"cooldown": 0, "concurrent": 10_000, "llm_per_minute": 10_000})


def ended(trigger: Trigger, status: str) -> None:
    run = Run.objects.create(
        agent=trigger.agent,
        trigger=trigger,
        trigger_kind=trigger.kind,
        occasion_key=Run().pk,
        created_at=NOW,
        status=status,
    )
    dispatch.chained(run, NOW)
    trigger.refresh_from_db()


def test_five_failures_in_a_row_stop_it_until_its_owner_resumes(agent: Agent) -> None:
    trigger = make_trigger(agent)
    for _ in range(4):
        ended(trigger, "failed")
    ended(trigger, "succeeded")
    assert (trigger.failures, trigger.live) == (0, True)
    before = watching.revision()
    for _ in range(5):
        ended(trigger, "failed")
    assert (trigger.rests, trigger.rests_until, trigger.live) == ("failures", None, False)
    assert watching.revision() != before and not watching.look().triggers
    run = dispatch.runs_for(happened(note()), NOW, [trigger.pk])[0]
    assert (run.status, run.reason) == ("suppressed", "disabled")
    resting.resume(trigger, NOW)
    trigger.refresh_from_db()
    assert trigger.live and trigger.failures == 0 and trigger.armed_at == int(NOW.timestamp())
    assert dispatch.runs_for(happened(note()), NOW, [trigger.pk])[0].status == "queued"


@pytest.mark.parametrize("status", ["cancelled", "suppressed"])
def test_a_stop_says_nothing_about_the_skill(agent: Agent, status: str) -> None:
    trigger = make_trigger(agent, failures=4)
    ended(trigger, status)
    assert trigger.failures == 4 and trigger.live


def test_a_pause_ends_by_itself_and_what_happened_meanwhile_stays_silent(agent: Agent) -> None:
    trigger = make_trigger(agent, kind="cron", tags=EVERY_MINUTE, next_run_at=NOW)
    resting.pause(trigger, NOW + timedelta(hours=1))
    assert firing.fire(NOW + timedelta(minutes=30)) == 0 and not Run.objects.exists()
    assert resting.wake(NOW + timedelta(minutes=59)) == 0
    later = NOW + timedelta(hours=1)
    assert resting.wake(later) == 1 and firing.fire(later) == 0
    trigger.refresh_from_db()
    assert trigger.live and trigger.next_run_at == datetime(2026, 3, 1, 13, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("policy", "ran", "missed"),
    [
        ("skip", ["12:00"], 180),
        ("one", ["12:00"], 180),
        ("all", ["11:51", "11:52", "11:53", "11:54", "11:55", "11:56", "11:57", "11:58", "11:59", "12:00"], 171),
    ],
)
def test_after_three_hours_away(agent: Agent, policy: str, ran: list[str], missed: int) -> None:
    first = NOW.replace(hour=9, minute=0, second=0)
    trigger = make_trigger(agent, kind="cron", tags=EVERY_MINUTE, next_run_at=first, catch_up=policy)
    for _ in range(3):
        firing.fire(NOW)
    keys = [key[11:16] for key in Run.objects.order_by("occasion_key").values_list("occasion_key", flat=True)]
    assert keys == ran and HeldBack.objects.get(reason="missed").count == missed
    trigger.refresh_from_db()
    assert trigger.next_run_at == NOW.replace(minute=1, second=0)


def test_only_missed_slots_are_skipped() -> None:
    daily = Cron("0 8 * * *", "Europe/Berlin")
    first = datetime(2026, 3, 28, 7, tzinfo=UTC)
    for days in (1, 3):
        now = first + timedelta(days=days, hours=5)
        assert firing.choose(daily, "skip", first, now) == ([], days + 1)
        chosen, missed = firing.choose(daily, "one", first, now)
        assert len(chosen) == 1 and missed == days and now - chosen[0] < timedelta(days=1)
    assert firing.choose(daily, "skip", first, first + timedelta(seconds=2)) == ([first], 0)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("at", [datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC)])
def test_five_minutes_are_five_minutes_in_every_zone(zone: str, at: datetime) -> None:
    schedule, now, chosen = Cron("*/5 * * * *", zone), at, []
    for _ in range(45 * 288):
        slots, missed = firing.choose(schedule, "one", now, now + timedelta(seconds=7))
        assert not missed
        chosen += slots
        now = next(schedule.after(now))
    assert [slot.astimezone(UTC) for slot in chosen] == [at + timedelta(minutes=5 * n) for n in range(45 * 288)]


def test_every_five_minutes_across_a_change_of_clocks(agent: Agent) -> None:
    """One run per slot, no slot twice, none left out."""
    at = datetime(2026, 10, 24, 12, tzinfo=UTC)
    tags = [["trigger", "cron"], ["schedule", "*/5 * * * *"], ["tz", "Europe/Berlin"]]
    make_trigger(agent, kind="cron", tags=tags, next_run_at=at)
    now, end = at, at + timedelta(days=DAYS)
    while now < end:
        firing.fire(now + timedelta(seconds=7))
        now += timedelta(minutes=5)
    keys = list(Run.objects.order_by("occasion_key").values_list("occasion_key", flat=True))
    wanted = [(at + timedelta(minutes=5 * n)).strftime("%Y-%m-%dT%H:%M:%SZ") for n in range(DAYS * 24 * 12)]
    assert keys == wanted and set(Run.objects.values_list("status", flat=True)) == {"queued"}


def test_the_page_pauses_resumes_and_chooses(client: Client, agent: Agent, django_assert_max_num_queries: Any) -> None:
    trigger = make_trigger(agent, kind="cron", tags=EVERY_MINUTE, next_run_at=NOW, words="Every minute")
    ended(trigger, "failed")
    client.force_login(agent.owner)
    page = f"/agents/{agent.slug}/triggers/"
    with django_assert_max_num_queries(10):
        assert b"1 failure in a row" in client.get(page).content
    client.post(f"{page}{trigger.pk}/", {"pause": "3600"})
    trigger.refresh_from_db()
    assert trigger.rests == "paused" and trigger.rests_until and b"paused" in client.get(page).content
    client.post(f"{page}{trigger.pk}/", {"resume": "1"})
    client.post(f"{page}{trigger.pk}/", {"catch_up": "all"})
    client.post(f"{page}{trigger.pk}/", {"pause": "9", "catch_up": "x\x00", "autonomy": "y"})
    trigger.refresh_from_db()
    assert (trigger.rests, trigger.catch_up, trigger.autonomy) == ("", "all", "auto")
    client.post(f"{page}{trigger.pk}/", {"pause": ""})
    trigger.refresh_from_db()
    assert trigger.rests == "paused" and trigger.rests_until is None


def test_why_it_did_not_run_is_told_and_can_be_run_anyway(client: Client, agent: Agent) -> None:
    trigger = make_trigger(agent)
    resting.pause(trigger, None)
    for _ in range(8):
        dispatch.runs_for(happened(note()), NOW, [trigger.pk])
    client.force_login(agent.owner)
    response = client.get(f"/runs/held-back/?agent={agent.slug}&reason=disabled")
    assert len(response.context["runs"]) == 5
    assert client.get("/runs/held-back/?reason=budget").context["runs"] == []
    held = response.context["runs"][0]
    client.post(f"/runs/{held.pk}/again/", {"token": "x"})
    assert Run.objects.filter(status="queued", trigger_kind="manual").count() == 1
    for query in ("?before=x", "?skill=%00"):
        assert client.get(f"/runs/held-back/{query}").status_code == 400
    assert client.get("/runs/held-back/?reason=%00").status_code == 200
    stranger = make_agent("other")
    client.force_login(stranger.owner)
    page = client.get("/runs/held-back/")
    assert page.context["runs"] == [] and page.context["counts"] == []
