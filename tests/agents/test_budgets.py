"""What may be spent, at every scope: counted, held under concurrency, set on a page and by the API."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents import dispatch
from agents.engine.budgets import Allowance, refusal
from agents.models import Agent, Budget, Reservation, Run, Step
from agents.models.allowances import allowances, overview
from marketplace.models import User
from tests import fakes
from tests.agents import rows
from tests.agents.rows import carried_out
from tests.agents.world import AT, NOW, happened, make_agent, make_trigger, note

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
SKILL = f"31123:{'a' * 64}:digest"


@pytest.fixture
def alice() -> User:
    return rows.owner("alice")


@pytest.fixture
def own(alice: User) -> Agent:
    return rows.agent(alice)


def spent(of: Agent, amount: str, at: datetime | None = None, settled: str | None = None, **values: Any) -> Run:
    """A call on record that counts against budgets."""
    at = at or timezone.now()
    run = rows.run(of, **values)
    step = Step.objects.create(run=run, position=1, kind="model", name="openai/gpt-4o-mini", started_at=at)
    Reservation.objects.create(
        step=step,
        agent=of,
        skill_address=run.skill_address,
        triggered=run.trigger_kind != "manual",
        amount=Decimal(amount),
        settled=None if settled is None else Decimal(settled),
        at=at,
    )
    return run


def put(of: Agent | None, scope: str, period: str, limit: str, target: str = "") -> Budget:
    return Budget.objects.create(agent=of, scope=scope, period=period, limit=Decimal(limit), target=target)


def used(found: list[Allowance]) -> dict[str, Decimal]:
    return {one.name: one.used for one in found}


# --- What counts against what ------------------------------------------------------


def test_each_scope_counts_its_own_calls_and_no_others(own: Agent) -> None:
    other = rows.agent(own.owner, "Other")
    for scope, target in (("agent", ""), ("skill", SKILL), ("trigger", SKILL)):
        put(own, scope, "day", "10", target)
    put(own, "run", "run", "10")
    put(None, "site", "day", "100")
    run = spent(own, "1", skill_address=SKILL, trigger_kind="cron")
    spent(own, "2", skill_address=SKILL)
    spent(own, "4", skill_address="31123:bb:else", trigger_kind="cron")
    spent(other, "8", skill_address=SKILL, trigger_kind="cron")
    now = timezone.now()
    assert used(allowances(own, now, run=run)) == {
        "the whole site, a day": 15,
        "Helper, a day": 7,
        "the skill “digest” of Helper, a day": 3,
        "the trigger of “digest” of Helper, a day": 1,
        "each run of Helper, at most": 1,
    }
    by_hand = used(allowances(own, now, skill=SKILL))
    assert set(by_hand) == {"the whole site, a day", "Helper, a day", "the skill “digest” of Helper, a day"}


def test_a_page_counts_the_same_as_a_call(own: Agent) -> None:
    second = rows.agent(own.owner, "Second")
    for period in ("day", "month"):
        put(None, "site", period, "100")
        for agent in (own, second):
            put(agent, "agent", period, "10")
            put(agent, "skill", period, "10", SKILL)
            put(agent, "trigger", period, "10", SKILL)
    run = spent(own, "0.5", skill_address=SKILL, trigger_kind="cron")
    spent(own, "0.25", timezone.now() - timedelta(days=35))
    spent(own, "0.125", timezone.now() - timedelta(hours=26), settled="0.0625")
    spent(second, "3", settled="2", skill_address=SKILL)
    now = timezone.now()
    shown = {allowance.name: allowance.used for _, allowance in overview([own, second], now)}
    for agent in (own, second):
        for allowance in allowances(agent, now, skill=SKILL, triggered=True):
            assert shown[allowance.name] == allowance.used, allowance.name
    assert len(shown) == 14 and run.pk


@pytest.mark.parametrize(("zone", "expected"), [("Pacific/Auckland", 7), ("America/Los_Angeles", 1), ("UTC", 3)])
def test_an_agents_day_is_its_owners_and_the_sites_its_own(own: Agent, zone: str, expected: int) -> None:
    own.owner.time_zone = zone
    put(own, "agent", "day", "100")
    put(None, "site", "day", "100")
    now = datetime(2026, 4, 5, 11, 30, tzinfo=UTC)
    spent(own, "1", now - timedelta(hours=1))
    spent(own, "2", datetime(2026, 4, 5, 0, 0, tzinfo=UTC))
    spent(own, "4", datetime(2026, 4, 4, 11, 30, tzinfo=UTC))
    found = used(allowances(own, now))
    assert (found["the whole site, a day"], found["Helper, a day"]) == (3, expected)


def test_a_site_budget_has_no_agent_and_every_other_has_one(own: Agent) -> None:
    from django.db import IntegrityError, transaction

    for agent, scope in ((own, "site"), (None, "agent")):
        with pytest.raises(IntegrityError), transaction.atomic():
            put(agent, scope, "day", "1")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads the plans of SQLite")
@pytest.mark.parametrize("scope", ["site", "agent", "skill", "trigger", "run"])
def test_the_sum_of_each_scope_is_read_from_an_index(own: Agent, scope: str) -> None:
    target = SKILL if scope in {"skill", "trigger"} else ""
    put(None if scope == "site" else own, scope, "run" if scope == "run" else "day", "1", target)
    run = spent(own, "1", skill_address=SKILL, trigger_kind="cron")
    with CaptureQueriesContext(connection) as asked:
        allowances(own, timezone.now(), run=run)
    (summed,) = [one["sql"] for one in asked.captured_queries if "SUM(" in one["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {summed}")
        plan = " ".join(row[3] for row in cursor.fetchall())
    assert "SCAN" not in plan and "INDEX" in plan, plan


# --- Warning and stopping ----------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "spent_so_far", "state"),
    [("1", "0.79999", ""), ("1", "0.8", "warn"), ("1", "0.999999", "warn"), ("1", "1", "stop"), ("0", "0", "")],
)
def test_it_warns_at_eighty_per_cent_and_stops_at_a_hundred(limit: str, spent_so_far: str, state: str) -> None:
    allowance = Allowance("x", Decimal(limit), Decimal(spent_so_far))
    assert allowance.state == state
    assert bool(allowance.words) == bool(state)


def test_the_third_of_four_parallel_calls_does_not_start() -> None:
    """L13: cap 5.00, spent 4.752720, each call reserves 0.0884."""
    reserved, started = Decimal("4.752720"), 0
    for _ in range(4):
        if refusal(Decimal("0.0884"), [Allowance("cap", Decimal(5), reserved)]) is None:
            reserved, started = reserved + Decimal("0.0884"), started + 1
    assert started == 2


@pytest.mark.parametrize("scope", ["site", "agent", "skill", "trigger", "run"])
def test_a_run_is_stopped_by_every_scope_in_words(models: Any, helper: Agent, scope: str) -> None:
    skill = rows.skill({"template": "Do it."}, d="digest")
    target = str(skill.address) if scope in {"skill", "trigger"} else ""
    period = "run" if scope == "run" else "month"
    put(None if scope == "site" else helper, scope, period, "0.000001", target)
    run = carried_out(rows.run(helper, skill, trigger_kind="webhook", input={"message": "hi"}))
    assert (run.status, run.reason) == ("failed", "budget")
    words = {
        "site": "the whole site, a month",
        "agent": "Helper, a month",
        "skill": "the skill “digest” of Helper, a month",
        "trigger": "the trigger of “digest” of Helper, a month",
        "run": "each run of Helper, at most",
    }[scope]
    assert words in run.reason_words and "0.000001 USD" in run.reason_words
    assert models.asked == []


def test_a_cap_of_single_runs_ends_a_run_in_the_middle(models: Any, helper: Agent) -> None:
    helper.grants = ["tool_list"]
    helper.max_tokens = 1_000
    helper.save()
    put(helper, "run", "run", "0.0015")  # one call may cost 0.0006 and a little for its question
    models.script(fakes.calls(("a", "tool_list", {}), prompt_tokens=100, completion_tokens=900))
    models.script(fakes.calls(("b", "tool_list", {}), prompt_tokens=100, completion_tokens=900))
    first = carried_out(rows.run(helper, input={"message": "hi"}))
    assert (first.status, first.reason) == ("failed", "budget")
    assert len(models.asked) == 2 and 0 < first.cost < Decimal("0.0015")
    assert carried_out(rows.run(helper, input={"message": "the next one begins anew"})).status == "succeeded"


def test_what_a_run_reserves_carries_what_it_counts_for(models: Any, helper: Agent) -> None:
    skill = rows.skill({"template": "Do it."}, d="digest")
    carried_out(rows.run(helper, skill, trigger_kind="webhook", input={"message": "hi"}))
    kept = Reservation.objects.get()
    assert (kept.skill_address, kept.triggered) == (str(skill.address), True)


@pytest.mark.parametrize("scope", ["skill", "trigger"])
def test_a_used_up_skill_holds_its_trigger_back_and_no_other(scope: str) -> None:
    agent = make_agent(llm="openai/some-model", limits={"cooldown": 0})
    first, second = make_trigger(agent, "one"), make_trigger(agent, "two")
    put(agent, scope, "day", "1", first.address)
    spent(agent, "1", NOW, skill_address=first.address, trigger_kind="cron")
    runs = dispatch.runs_for(happened(note(at=AT)), NOW)
    assert {run.skill_address: run.reason for run in runs} == {first.address: "budget", second.address: ""}
    words = next(run.reason_words for run in runs if run.reason)
    assert "“one” of bot, a day, is used up: 1 of 1 USD" in words


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_many_calls_at_once_reserve_no_more_than_there_is(kind: str, tmp_path: Path) -> None:
    """P29: the race of overspend.py, in a process and a database of its own."""
    url = os.environ.get("TEST_DATABASE_URL", "")
    if kind == "postgresql" and not url:
        pytest.skip("TEST_DATABASE_URL is not set")
    environment = {
        **os.environ,
        "DATABASE_URL": url if kind == "postgresql" else f"sqlite:///{tmp_path}/spend.sqlite3",
        "JOURNEYMAN_VAR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "marketplace.settings",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.agents.overspend"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
