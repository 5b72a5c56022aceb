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
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents import dispatch
from agents.engine.budgets import Allowance, refusal
from agents.models import AdoptedSkill, Agent, Budget, Reservation, Run, Step
from agents.models.allowances import allowances, overview
from marketplace.models import ApiToken, User
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


# --- The page ----------------------------------------------------------------------


def test_every_scope_is_set_changed_and_taken_away_on_one_page(own: Agent, alice: User, client: Client) -> None:
    client.force_login(alice)
    AdoptedSkill.objects.create(agent=own, address=SKILL, pinned_event="b" * 64)
    make_trigger(own, "other", address=SKILL)
    address = f"/agents/{own.slug}/budgets/"
    assert "nothing stops the spending" in client.get(address).content.decode()
    for what in ("agent", "run", f"skill {SKILL}", f"trigger {SKILL}"):
        answer = client.post(address, {"what": what, "period": "month", "limit": "2.5"})
        assert answer.status_code == 302, answer.content.decode()
    kept = {(one.scope, one.target, one.period): one.limit for one in Budget.objects.filter(agent=own)}
    assert kept == dict.fromkeys(
        [("agent", "", "month"), ("run", "", "run"), ("skill", SKILL, "month"), ("trigger", SKILL, "month")],
        Decimal("2.5"),
    )
    ids = {one.scope: one.pk for one in Budget.objects.all()}
    change = {f"limit-{ids['run']}": "", f"limit-{ids['agent']}": "7"}  # what an old page does not know of stays
    assert client.post(address, change).status_code == 302
    assert {one.scope: one.limit for one in Budget.objects.all()} == {
        "agent": 7, "skill": Decimal("2.5"), "trigger": Decimal("2.5")
    }  # fmt: skip


def test_the_page_shows_what_is_used_and_warns(own: Agent, alice: User, client: Client) -> None:
    client.force_login(alice)
    put(own, "agent", "day", "1")
    put(None, "site", "month", "10")
    spent(own, "0.85", settled="0.81")
    page = client.get(f"/agents/{own.slug}/budgets/").content.decode()
    assert 'value="81"' in page and "$0.81" in page and "$0.19" in page
    assert "is 81 % used: 0.81 of 1 USD" in page
    assert "the whole site, a month" in page and "Change the budgets of the site" not in page


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"limit": "1"}, "what", "Choose what"),
        ({"what": "agent", "period": "day"}, "limit", "how many US dollars"),
        ({"what": "agent", "period": "day", "limit": "-1"}, "limit", "greater than or equal to 0"),
        ({"what": "agent", "period": "day", "limit": "NaN"}, "limit", "Enter a number"),
        ({"what": "agent", "period": "day", "limit": "0.0000001"}, "limit", "6 decimal places"),
        ({"what": "agent", "period": "week", "limit": "1"}, "period", "not one of the available"),
        ({"what": "skill 31123:not:mine", "period": "day", "limit": "1"}, "what", "not one of the available"),
        ({"what": "agent", "period": "month", "limit": "1"}, "limit", "already"),
        ({"what": "a\0\ud800" * 9_000, "period": "🦆", "limit": "🦆" * 50_000}, "limit", "Enter a number"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_lost(
    own: Agent, alice: User, client: Client, given: dict[str, str], field: str, words: str
) -> None:
    client.force_login(alice)
    kept = put(own, "agent", "month", "3")
    given = {name: value.encode("utf-8", "replace").decode() for name, value in given.items()}
    answer = client.post(f"/agents/{own.slug}/budgets/", {f"limit-{kept.pk}": "9", **given})
    assert answer.status_code == 422
    assert any(words in error for error in answer.context["form"].errors[field])
    assert 'value="9"' in answer.content.decode()
    kept.refresh_from_db()
    assert kept.limit == 3 and Budget.objects.count() == 1


def test_only_staff_sets_the_budget_of_the_site(own: Agent, alice: User, client: Client) -> None:
    client.force_login(alice)
    given = {"what": "site", "period": "day", "limit": "5"}
    assert client.get("/operate/budgets/").status_code == client.post("/operate/budgets/", given).status_code == 404
    assert not Budget.objects.exists()
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    assert client.post("/operate/budgets/", given).status_code == 302
    assert Budget.objects.get().limit == 5
    assert "the whole site, a day" in client.get("/operate/budgets/").content.decode()
    assert "Change the budgets of the site" in client.get(f"/agents/{own.slug}/budgets/").content.decode()


def test_the_settings_form_still_sets_the_agents_own_and_leaves_the_others(own: Agent, alice: User) -> None:
    put(own, "skill", "day", "1", SKILL)
    Budget.objects.put(own, "agent", "", "day", Decimal(2))
    Budget.objects.put(own, "agent", "", "day", None)
    assert [(one.scope, one.limit) for one in Budget.objects.all()] == [("skill", 1)]


def test_the_page_takes_few_queries_however_many_budgets(
    own: Agent, alice: User, client: Client, django_assert_max_num_queries: Any
) -> None:
    client.force_login(alice)
    put(None, "site", "day", "1")
    for number in range(20):
        address = f"31123:{'a' * 64}:s{number}"
        AdoptedSkill.objects.create(agent=own, address=address, pinned_event="b" * 64)
        put(own, "skill", "day", "1", address)
        put(own, "trigger", "month", "1", address)
    client.get("/agents/")  # what all pages share is looked up once in a while
    with django_assert_max_num_queries(8):
        assert client.get(f"/agents/{own.slug}/budgets/").status_code == 200


# --- The API -----------------------------------------------------------------------


@pytest.fixture
def token(alice: User) -> dict[str, str]:
    return {"Authorization": f"Bearer {ApiToken.issue(alice, 'x', ['read', 'write'])}"}


def asked(client: Client, token: dict[str, str], **body: Any) -> Any:
    return client.put("/api/v1/budgets", body, content_type="application/json", headers=token)


def test_a_program_sets_reads_and_takes_away_a_limit(own: Agent, client: Client, token: dict[str, str]) -> None:
    AdoptedSkill.objects.create(agent=own, address=SKILL, pinned_event="b" * 64)
    spent(own, "0.9", settled="0.85", skill_address=SKILL)
    answer = asked(client, token, agent=own.slug, scope="skill", target=SKILL, limit="1").json()
    (item,) = answer["items"]
    assert (item["scope"], item["target"], item["period"]) == ("skill", SKILL, "day")
    assert (item["limit"], item["used"], item["left"], item["state"]) == ("1", "0.85", "0.15", "warn")
    asked(client, token, agent=own.slug, scope="run", limit=0.5)
    items = client.get(f"/api/v1/budgets?agent={own.slug}", headers=token).json()["items"]
    assert [(one["scope"], one["period"], one["used"]) for one in items] == [
        ("skill", "day", "0.85"),
        ("run", "run", None),
    ]
    assert asked(client, token, agent=own.slug, scope="run", limit=None).json()["items"] == items[:1]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"scope": "week"}, 400),
        ({"period": "week"}, 400),
        ({"scope": "site"}, 400),
        ({"scope": "skill", "target": "31123:x:y"}, 400),
        ({"limit": "-1"}, 422),
        ({"limit": "NaN"}, 422),
        ({"limit": "1e99"}, 422),
        ({"agent": "somebody"}, 404),
        ({"agent": "nul\0"}, 422),
        ({"agent": ""}, 404),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(
    own: Agent, client: Client, token: dict[str, str], body: dict[str, Any], status: int
) -> None:
    answer = asked(client, token, **{"agent": own.slug, "limit": "1", **body})
    assert answer.status_code == status, answer.content
    assert answer.json()["detail"] and not Budget.objects.exists()


def test_strangers_and_narrow_tokens_change_nothing(own: Agent, alice: User, client: Client) -> None:
    narrow = {"Authorization": f"Bearer {ApiToken.issue(alice, 'x', ['read', 'run'])}"}
    assert asked(client, narrow, agent=own.slug, limit="1").status_code == 403
    bob = {"Authorization": f"Bearer {ApiToken.issue(rows.owner('bob'), 'x', ['read', 'write'])}"}
    assert asked(client, bob, agent=own.slug, limit="1").status_code == 404
    assert client.get(f"/api/v1/budgets?agent={own.slug}", headers=bob).status_code == 404
    assert asked(client, {}, agent=own.slug, limit="1").status_code == 401
    assert not Budget.objects.exists()
