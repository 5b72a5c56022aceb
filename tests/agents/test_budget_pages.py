"""Setting what may be spent: every scope on one page, and by the API."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import AdoptedSkill, Agent, Budget
from marketplace.models import ApiToken, User
from tests.agents import rows
from tests.agents.test_budgets import SKILL, put, spent
from tests.agents.world import make_trigger

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return rows.owner("alice")


@pytest.fixture
def own(alice: User) -> Agent:
    return rows.agent(alice)


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
