"""Admins hear of a budget once: at 80 %, and when it is used up; by a message that is sent again, never twice."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents import telling
from agents.models import Agent, Budget, Notice
from agents.runner import settling
from marketplace import relays, signing
from marketplace.models import Identity, User
from marketplace.protocol import kinds
from marketplace.protocol.filters import Filter
from tests.agents import rows
from tests.agents.rows import carried_out
from tests.agents.test_budgets import put, spent
from tests.real_relay import LocalRelay

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def own(db: None) -> Agent:
    owner = rows.owner("alice")
    return rows.agent(owner, admin_pubkey=signing.create_identity(owner, "mine", None).pubkey)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """What the broker was given."""
    found: list[int] = []
    monkeypatch.setattr(telling.app, "send_task", lambda name, args, **_: found.append(args[0]))
    yield found


def look(days: int = 0) -> int:
    return telling.look(timezone.now() + timedelta(days=days))


def received(relay: LocalRelay, agent: Agent) -> list[str]:
    """The messages that the admin can read there."""
    admin = Identity.objects.get(pubkey=agent.admin_pubkey)
    wanted = Filter(kinds=frozenset({kinds.GIFT_WRAP}), tags={"p": frozenset({admin.pubkey})})
    found = relays.fetch([relay.url], [wanted], 5.0).events
    return [signing.unwrap(admin, event)[1] for event in found]


# --- What is news ------------------------------------------------------------------


def test_a_budget_is_told_of_once_at_eighty_per_cent_and_once_when_used_up(own: Agent) -> None:
    budget = put(own, "agent", "day", "1")
    spent(own, "0.79", settled="0.79")
    assert look() == 0
    spent(own, "0.01", settled="0.01")
    assert (look(), look()) == (1, 0)
    spent(own, "0.2", settled="0.2")
    assert (look(), look()) == (1, 0)
    assert [one.level for one in Notice.objects.order_by("pk")] == ["warn", "stop"]
    assert "is 80 % used: 0.8 of 1 USD" in Notice.objects.first().words  # type: ignore[union-attr]
    budget.refresh_from_db()
    assert budget.warned_at is not None


def test_what_is_only_reserved_is_no_news(own: Agent) -> None:
    put(own, "agent", "day", "1")
    spent(own, "0.95")
    spent(own, "0.05", settled="0.01")
    assert look() == 0


def test_used_up_at_one_stroke_is_one_message(own: Agent) -> None:
    put(own, "agent", "day", "1")
    spent(own, "3", settled="3")
    assert (look(), look()) == (1, 0)
    assert Notice.objects.get().level == "stop"


def test_a_new_period_and_a_new_limit_are_told_of_again(own: Agent) -> None:
    budget = put(own, "agent", "day", "1")
    spent(own, "0.9", settled="0.9")
    assert look() == 1
    tomorrow = timezone.now() + timedelta(days=1)
    spent(own, "0.9", tomorrow, settled="0.9")
    assert telling.look(tomorrow) == 1
    Budget.objects.filter(pk=budget.pk).update(limit=Decimal("0.91"))
    assert telling.look(tomorrow) == 1


@pytest.mark.parametrize("scope", ["skill", "trigger"])
def test_skills_and_triggers_are_told_of_too(own: Agent, scope: str) -> None:
    address = f"31123:{'a' * 64}:digest"
    put(own, scope, "month", "1", address)
    spent(own, "0.9", settled="0.9", skill_address=address, trigger_kind="cron")
    assert look() == 1 and "“digest” of Helper, a month" in Notice.objects.get().words


def test_of_the_site_its_staff_is_told(own: Agent) -> None:
    put(None, "site", "day", "1")
    spent(own, "2", settled="2")
    assert look() == 0
    User.objects.update(is_staff=True)
    assert look() == 1 and "the whole site, a day, is used up" in Notice.objects.get().words


def test_a_run_that_is_stopped_is_news_though_a_little_is_left(models: Any, own: Agent) -> None:
    put(own, "agent", "day", "0.0001")
    run = carried_out(rows.run(own, input={"message": "hi"}))
    assert (run.status, run.reason) == ("failed", "budget")
    notice = Notice.objects.get()
    assert notice.level == "stop" and "a run was stopped, 0 of 0.0001 USD are used" in notice.words
    carried_out(rows.run(own, input={"message": "again"}))
    assert Notice.objects.count() == 1


def test_a_cap_of_single_runs_is_no_message(models: Any, own: Agent) -> None:
    put(own, "run", "run", "0.0000001")
    assert carried_out(rows.run(own, input={"message": "hi"})).reason == "budget"
    assert not Notice.objects.exists()


def test_with_nothing_spent_a_look_is_one_query(own: Agent, django_assert_num_queries: Any) -> None:
    put(own, "agent", "day", "1")
    with django_assert_num_queries(1):
        assert look() == 0


# --- Sending -----------------------------------------------------------------------


def noted(own: Agent) -> Notice:
    put(own, "agent", "day", "1")
    spent(own, "0.9", settled="0.9")
    assert look() == 1
    return Notice.objects.get()


def test_the_admin_reads_it_as_a_private_message(own: Agent, relay: LocalRelay) -> None:
    notice = noted(own)
    assert telling.tell(notice.pk, timezone.now())
    assert not telling.tell(notice.pk, timezone.now())
    (text,) = received(relay, own)
    assert "The budget for Helper, a day, is 90 % used: 0.9 of 1 USD." in text
    assert f"/agents/{own.slug}/budgets/" in text


def test_what_no_relay_took_is_sent_again_as_the_same_event(own: Agent, relay: LocalRelay, sent: list[int]) -> None:
    notice = noted(own)
    relay.stop()
    assert not telling.tell(notice.pk, timezone.now())
    notice.refresh_from_db()
    assert notice.problem.startswith("No relay took") and notice.sent_at is None
    event = notice.event_id
    relay.start()
    assert telling.tell(notice.pk, timezone.now())
    notice.refresh_from_db()
    assert (notice.event_id, notice.problem) == (event, "")
    assert len(received(relay, own)) == 1


def test_a_worker_that_dies_right_after_sending_sends_none_twice(
    own: Agent, relay: LocalRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 leaves no chance to write anything; so does an error that nothing catches."""
    notice, publish = noted(own), relays.publish

    def killed(*given: Any, **named: Any) -> Any:
        publish(*given, **named)
        raise SystemExit("killed")

    monkeypatch.setattr(relays, "publish", killed)
    with pytest.raises(SystemExit):
        telling.tell(notice.pk, timezone.now())
    notice.refresh_from_db()
    assert notice.sent_at is None and notice.event_id
    monkeypatch.setattr(relays, "publish", publish)
    assert telling.tell(notice.pk, timezone.now())
    assert len(received(relay, own)) == 1


def test_two_workers_at_once_do_not_send_two_events(own: Agent, relay: LocalRelay) -> None:
    notice = noted(own)
    assert notice.remember({"event": {"id": "a" * 64}})
    assert not notice.remember({"event": {"id": "b" * 64}})
    assert notice.remember({"event": {"id": "a" * 64}})


def test_the_tick_hands_it_out_with_growing_pauses(own: Agent, sent: list[int]) -> None:
    notice, now = noted(own), timezone.now()
    handed = []
    for second in range(0, 600, 5):
        if telling.announce(now + timedelta(seconds=second)):
            handed.append(second)
    assert handed == [0, 30, 90, 210, 450]
    assert sent == [notice.pk] * 5


def test_a_broker_that_is_away_stops_nothing(own: Agent, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise OSError("gone")

    noted(own)
    monkeypatch.setattr(telling.app, "send_task", away)
    assert telling.announce(timezone.now()) == 0
    assert "the broker took no notice" in caplog.text


@pytest.mark.parametrize("change", [{"enabled": False}, {"admin_pubkey": ""}])
def test_an_agent_that_is_off_or_has_no_admin_writes_nothing(
    own: Agent, sent: list[int], change: dict[str, Any]
) -> None:
    noted(own)
    Agent.objects.filter(pk=own.pk).update(**change)
    assert telling.announce(timezone.now()) == 0 and sent == []


def test_nobody_is_told_days_later(own: Agent, sent: list[int]) -> None:
    noted(own)
    assert telling.announce(timezone.now() + timedelta(days=3)) == 0


# --- Seeing it ---------------------------------------------------------------------


def test_pages_warn_and_say_what_the_admin_was_told(own: Agent, client: Client) -> None:
    client.force_login(own.owner)
    notice = noted(own)
    Notice.objects.filter(pk=notice.pk).update(problem="No relay took it.", attempts=2)
    page = client.get(f"/agents/{own.slug}/").content.decode()
    assert "is 90 % used: 0.9 of 1 USD" in page and "notice-warning" in page
    page = client.get(f"/agents/{own.slug}/budgets/").content.decode()
    assert "What the admin was told" in page and "No relay took it. Tried 2 times." in page


# --- What dead workers leave -------------------------------------------------------


def test_what_was_left_of_a_run_that_is_over_is_settled_once(own: Agent) -> None:
    run = spent(own, "0.5", status="cancelled", finished_at=timezone.now() - timedelta(minutes=3))
    still_open = spent(own, "0.25", status="running")
    assert (settling.settle(timezone.now()), settling.settle(timezone.now())) == (1, 0)
    run.refresh_from_db()
    step = run.steps.get()
    assert (step.state, step.cost, step.estimated, run.cost) == ("unknown", Decimal("0.5"), True, Decimal("0.5"))
    assert still_open.steps.get().state == "running"


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_money_is_accounted_for_wherever_a_worker_is_killed(kind: str, tmp_path: Path) -> None:
    """The kills of killed.py, in a process and a database of its own."""
    url = os.environ.get("TEST_DATABASE_URL", "")
    if kind == "postgresql" and not url:
        pytest.skip("TEST_DATABASE_URL is not set")
    environment = {
        **os.environ,
        "DATABASE_URL": url if kind == "postgresql" else f"sqlite:///{tmp_path}/killed.sqlite3",
        "JOURNEYMAN_VAR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "marketplace.settings",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.agents.killed"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
