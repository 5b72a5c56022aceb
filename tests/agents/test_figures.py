"""What a skill costs an owner a day and how often it succeeds: on the market and on its page, of own runs only."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import Agent
from agents.views.figures import figures
from marketplace.models import User
from tests.agents import rows
from tests.agents.world import arrive, skill_event, stranger

pytestmark = pytest.mark.django_db
ADDRESS = f"31123:{'a' * 64}:digest"


@pytest.fixture
def alice() -> User:
    return rows.owner()


@pytest.fixture
def own(alice: User) -> Agent:
    return rows.agent(alice)


def ran(own: Agent, status: str = "succeeded", days: int = 0, address: str = ADDRESS, **values: Any) -> None:
    run = rows.run(own, status=status, skill_address=address, **values)
    type(run).objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(days=days))


def test_a_week_of_own_runs_is_counted(own: Agent, django_assert_num_queries: Any) -> None:
    ran(own, cost=Decimal("0.5"))
    ran(own, "failed", days=6, cost=Decimal("0.2"), unknown_costs=2)
    ran(own, "running")
    ran(own, "cancelled")
    ran(own, "suppressed", cost=Decimal(9))
    ran(own, days=8, cost=Decimal(9))
    ran(own, address=f"{ADDRESS}2", cost=Decimal(9))
    ran(rows.agent(rows.owner("bob"), "Bobs"), cost=Decimal(9))
    with django_assert_num_queries(1):
        found = figures(own.owner, [ADDRESS, f"{ADDRESS}3"], timezone.now())
    one = found.pop(ADDRESS)
    assert found == {}
    assert (one.runs, one.succeeded, one.failed, one.unknown) == (4, 1, 1, 2)
    assert (one.a_day, one.rate) == (Decimal("0.1"), 50)


def test_only_all_of_them_are_a_hundred_per_cent(own: Agent) -> None:
    for _ in range(199):
        ran(own)
    ran(own, "failed")
    assert figures(own.owner, [ADDRESS], timezone.now())[ADDRESS].rate == 99


def test_a_part_of_the_market_answers_every_skill_it_is_asked_for(own: Agent, client: Client) -> None:
    ran(own, cost=Decimal("0.7"))
    client.force_login(own.owner)
    page = client.post("/triggers/figures/", {"a": ["x\x00", ADDRESS]}).content.decode()
    first, second = page.split("</span>\n")[:2]
    assert 'id="here-1"' in first and "not run here" in first
    assert 'id="here-2"' in second and "$0.10 a day; 100 % of 1 run succeeded" in second


def test_it_takes_anything_fifty_at_most_and_stays_one_query(
    own: Agent, client: Client, django_assert_max_num_queries: Any
) -> None:
    client.force_login(own.owner)
    odd = ["😀", "x" * 200_000, "<script>", *("y" for _ in range(100))]
    with django_assert_max_num_queries(3):  # session, user, figures
        page = client.post("/triggers/figures/", {"a": odd}).content.decode()
    assert page.count("hx-swap-oob") == 50 and "<script>" not in page
    assert client.post("/triggers/figures/").status_code == 200
    assert client.get("/triggers/figures/").status_code == 405
    client.logout()
    assert client.post("/triggers/figures/", {"a": ADDRESS}).status_code == 302


def test_the_market_has_a_place_for_them_for_owners_alone(alice: User, client: Client) -> None:
    tags = [["trigger", "nostr-subscription"], ["filter", json.dumps({"kinds": [1]})]]
    event = skill_event(stranger(), "answer", int(timezone.now().timestamp()) - 10, tags)
    arrive(event, at=int(timezone.now().timestamp()))
    page = client.get("/triggers/").content.decode()
    assert "answer" in page and "figures" not in page
    client.force_login(alice)
    page = client.get("/triggers/").content.decode()
    assert f'name="a" value="{event.address}"' in page and 'id="here-1"' in page and 'hx-trigger="load"' in page


def test_a_skills_page_says_the_same(own: Agent, client: Client) -> None:
    ran(own, cost=Decimal("1.4"))
    address = {"address": ADDRESS}
    assert "a day" not in client.get("/skills-runs/", address).content.decode()
    client.force_login(own.owner)
    assert "$0.20 a day; 100 % of 1 run succeeded" in client.get("/skills-runs/", address).content.decode()
    client.force_login(rows.owner("bob"))
    assert "a day" not in client.get("/skills-runs/", address).content.decode()
