"""The site's kill switch: everything stops at once, nothing starts, and it goes on when it is let."""

from dataclasses import replace

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents import dispatch, halting, tasks
from agents.models import Agent, Halt, Run
from marketplace.models import User
from tests import fakes
from tests.agents import rows
from tests.agents.world import NOW, happened, make_agent, make_trigger, note

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh() -> None:
    cache.clear()


@pytest.fixture
def staff() -> User:
    return User.objects.create_user("root", is_staff=True)


def test_open_runs_end_and_none_starts_until_it_goes_on(staff: User) -> None:
    trigger = make_trigger(make_agent())
    running = Run.objects.create(
        agent=trigger.agent, occasion_key="a", created_at=NOW, status="running", lease_token="x"
    )
    assert halting.halt(staff, NOW) == 1
    running.refresh_from_db()
    assert (running.status, running.reason) == ("cancelled", "stopped") and not running.lease_token
    held = dispatch.runs_for(happened(note()), NOW, [trigger.pk])[0]
    assert (held.status, held.reason) == ("suppressed", "disabled")
    asked = Run.objects.create(agent=trigger.agent, occasion_key="b", created_at=NOW)
    assert Run.claim(asked.pk, "token", NOW) is None and tasks.announce(NOW) == 0
    assert halting.halt(staff, NOW) == 1 and Halt.objects.count() == 1
    later = Run.objects.create(agent=trigger.agent, occasion_key="c", created_at=NOW, announced_at=NOW)
    assert halting.go_on(NOW) and not halting.go_on(NOW)
    later.refresh_from_db()
    assert later.announced_at is None and Run.claim(later.pk, "token", NOW) is not None


@pytest.mark.django_db(transaction=True)
def test_a_running_call_is_abandoned_within_seconds(staff: User, models: fakes.ModelServer) -> None:
    run = rows.run(rows.agent(rows.owner()), input={"message": "think long"})
    models.script(replace(fakes.text("late"), delay=8.0))
    worker = rows.worker(run)
    while not models.asked and worker.is_alive():
        worker.join(0.05)
    halting.halt(staff, timezone.now())
    worker.join(5)
    assert not worker.is_alive()
    run.refresh_from_db()
    assert run.status == "cancelled" and run.steps.get().state == "unknown"
    connection.close()


def test_only_staff_may_and_owners_are_told(client: Client, staff: User) -> None:
    own: Agent = rows.agent(rows.owner())
    client.force_login(own.owner)
    assert client.post("/operate/halt/", {"halt": "on"}).status_code == 404 and not Halt.objects.exists()
    client.force_login(staff)
    assert client.post("/operate/halt/", {"halt": "x"}).status_code == 302 and not Halt.objects.exists()
    client.post("/operate/halt/", {"halt": "on"})
    assert "Let everything go on" in client.get("/operate/").content.decode()
    client.force_login(own.owner)
    assert "The operator stopped everything" in client.get("/runs/").content.decode()
    client.force_login(staff)
    client.post("/operate/halt/", {"halt": "off"})
    assert "The operator stopped everything" not in client.get("/runs/").content.decode()
