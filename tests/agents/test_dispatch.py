"""One occasion makes one run, queued after commit, whoever delivers it and however often."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from agents import dispatch, runner
from agents.models import Agent, HeldBack, Run, Trigger
from marketplace.celery import app
from tests.agents.world import NOW, happened, make_agent, make_trigger, note

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make_agent()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids that were handed to the broker."""
    ids: list[str] = []
    monkeypatch.setattr(app, "send_task", lambda name, args, **_: ids.append(args[0]))
    return ids


def test_a_run_is_pinned_to_what_fired_it(agent: Agent) -> None:
    trigger = make_trigger(agent, autonomy="suggest", action="template")
    event = note(text="hi")
    (run,) = dispatch.runs_for(happened(event), NOW)
    assert (run.trigger_id, run.skill_event, run.skill_name) == (trigger.pk, trigger.event_id, "answer")
    assert (run.action, run.autonomy, run.occasion_key, run.depth) == ("template", "suggest", event.id, 0)
    assert run.input == {"event": event.to_dict(), "relay": "ws://127.0.0.1:1", "payload": {}}
    assert Trigger.objects.get().last_fired_at == NOW


def test_only_live_triggers_whose_filter_fits_are_asked(agent: Agent) -> None:
    make_trigger(agent, "off", enabled=False)
    make_trigger(agent, "unusable", usable=False)
    make_trigger(agent, "other", tags=[["trigger", "nostr-subscription"], ["filter", '{"kinds":[7]}']])
    make_trigger(make_agent("asleep", enabled=False))
    wanted = make_trigger(agent, "wanted")
    assert [run.trigger_id for run in dispatch.runs_for(happened(note()), NOW)] == [wanted.pk]


def test_an_event_delivered_again_makes_no_second_run(agent: Agent) -> None:
    """P22: every relay may deliver it; the further ones are counted."""
    make_trigger(agent)
    event = note()
    runs = [dispatch.runs_for(happened(event), NOW) for _ in range(5)]
    assert [len(found) for found in runs] == [1, 0, 0, 0, 0]
    assert HeldBack.objects.get().reason == "duplicate"
    assert HeldBack.objects.get().count == 4


@pytest.mark.django_db(transaction=True)
def test_ids_travel_only_after_commit(agent: Agent, sent: list[str]) -> None:
    """P24, R04."""
    make_trigger(agent)
    with transaction.atomic():
        (run,) = dispatch.runs_for(happened(note()), NOW)
        assert sent == []
    assert sent == [run.pk]
    assert Run.objects.get().announced_at == NOW


@pytest.mark.django_db(transaction=True)
def test_nothing_is_queued_on_rollback(agent: Agent, sent: list[str]) -> None:
    make_trigger(agent)
    with pytest.raises(RuntimeError), transaction.atomic():
        dispatch.runs_for(happened(note()), NOW)
        raise RuntimeError
    assert sent == []
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_suppressed_runs_are_not_announced(agent: Agent, sent: list[str]) -> None:
    make_trigger(agent)
    for _ in range(3):
        dispatch.runs_for(happened(note()), NOW)
    assert sent == [Run.objects.get(status="queued").pk]


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_costs_nothing_but_time(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    from kombu.exceptions import OperationalError

    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("no broker")

    monkeypatch.setattr(app, "send_task", away)
    make_trigger(agent)
    (run,) = dispatch.runs_for(happened(note()), NOW)
    run.refresh_from_db()
    assert (run.status, run.announced_at) == ("queued", None)


@pytest.mark.django_db(transaction=True)
def test_a_manual_run_with_the_same_key_is_the_same_run(agent: Agent, sent: list[str]) -> None:
    runs = [dispatch.manual(agent, f"31123:{'a' * 64}:x", "b" * 64, "hi", {"n": "1"}, {}, NOW, "key") for _ in range(3)]
    assert len({run.pk for run in runs}) == 1
    assert sent == [runs[0].pk]
    assert runs[0].input == {"message": "hi", "arguments": {"n": "1"}}
    assert (runs[0].trigger_kind, runs[0].skill_name) == ("manual", "x")


def test_the_end_of_a_run_starts_what_waits_for_it_in_the_same_agent_only(agent: Agent) -> None:
    first = make_trigger(agent, "first")
    tags = [["trigger", "chain"], ["source", first.address], ["on", "succeeded"]]
    then = make_trigger(agent, "then", kind="chain", tags=tags)
    make_trigger(agent, "on failure", kind="chain", tags=[*tags[:2], ["on", "failed"]])
    make_trigger(make_agent("other"), "then", kind="chain", tags=tags)
    (parent,) = dispatch.runs_for(happened(note()), NOW, [first.pk])
    parent.status, parent.output = "succeeded", "done"
    (run,) = dispatch.chained(parent, NOW)
    assert (run.trigger_id, run.parent_id, run.depth) == (then.pk, parent.pk, 1)
    assert run.input["payload"]["output"] == "done"
    assert dispatch.chained(parent, NOW) == []


@pytest.mark.django_db(transaction=True)
def test_a_run_that_ends_in_a_worker_starts_the_next_one(agent: Agent, sent: list[str]) -> None:
    first = f"31123:{'a' * 64}:first"
    tags = [["trigger", "chain"], ["source", first], ["on", "failed"]]
    make_trigger(agent, "then", kind="chain", tags=tags)
    run = dispatch.manual(agent, first, "f" * 64, "", {}, {}, NOW, "start")
    assert runner.execute(run.pk)
    run.refresh_from_db()
    assert (run.status, run.reason) == ("failed", "unusable")
    (then,) = Run.objects.filter(parent=run)
    assert sent == [run.pk, then.pk]


def test_a_chain_in_a_circle_ends(agent: Agent) -> None:
    one, two = f"31123:{'a' * 64}:one", f"31123:{'a' * 64}:two"
    agent.limits = {"cooldown": 0}
    agent.save()
    for d, source in (("one", two), ("two", one)):
        make_trigger(agent, d, kind="chain", tags=[["trigger", "chain"], ["source", source], ["on", "always"]])
    run = dispatch.manual(agent, one, "", "", {}, {}, NOW, "start")
    ended = []
    for _ in range(10):
        run.status = "succeeded"
        (run,) = dispatch.chained(run, NOW)
        ended.append((run.depth, run.reason))
        if run.reason:
            break
    assert ended == [(1, ""), (2, ""), (3, ""), (4, ""), (5, ""), (6, "loop")]


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_limits_hold_when_many_fire_at_once(kind: str, tmp_path: Path) -> None:
    """P22, P30: the race of race.py, in a process and a database of its own."""
    url = os.environ.get("TEST_DATABASE_URL", "")
    if kind == "postgresql" and not url:
        pytest.skip("TEST_DATABASE_URL is not set")
    environment = {
        **os.environ,
        "DATABASE_URL": url if kind == "postgresql" else f"sqlite:///{tmp_path}/race.sqlite3",
        "JOURNEYMAN_VAR": str(tmp_path),
        "JOURNEYMAN_MAX_CONCURRENT_TRIGGERS": "3",
        "DJANGO_SETTINGS_MODULE": "marketplace.settings",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.agents.race"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
