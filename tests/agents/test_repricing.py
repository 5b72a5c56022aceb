"""Past calls by later prices: on request, beside what was charged, which never changes."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from agents import repricing
from agents.models import Agent, OwnModel, Repricing, Run, Step
from agents.models.costs import GROUPS, total
from agents.repricing import Asked, TooMany, reprice
from marketplace.models import ApiToken, User
from tests.agents import rows

pytestmark = pytest.mark.django_db
MINI = "openai/gpt-4o-mini"  # 0.15 and 0.60 USD per million


@pytest.fixture
def alice() -> User:
    return rows.owner("alice")


@pytest.fixture
def own(alice: User) -> Agent:
    return rows.agent(alice)


def called(
    of: Agent, cost: str | None, tokens: tuple[int, int] = (1_000, 100), at: datetime | None = None, **values: Any
) -> Step:
    """One answered call as it was charged then."""
    run, amount = rows.run(of), None if cost is None else Decimal(cost)
    used = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    fields = {"kind": "model", "state": "done", "name": MINI, "usage": used, "price_version": "old"} | values
    step = Step.objects.create(run=run, position=1, started_at=at or timezone.now(), cost=amount, **fields)
    Run.objects.filter(pk=run.pk).update(cost=amount or 0, unknown_costs=amount is None)
    return step


def say(of: Agent, model: str, price: str) -> OwnModel:
    amounts = {"input": Decimal(price), "output": Decimal(price)}
    return OwnModel.objects.put(of, model, amounts, timezone.now())


def test_a_new_price_stands_beside_the_charged_one_which_stays(own: Agent, alice: User) -> None:
    step = called(own, "0.5")
    made = reprice(alice, Asked(), timezone.now())
    step.refresh_from_db()
    assert (step.cost, step.repriced, step.price_version) == (Decimal("0.5"), Decimal("0.00021"), "old")
    assert step.repriced_version.startswith("litellm")
    assert Run.objects.get().cost == Decimal("0.5")
    assert (made.calls, made.changed, made.skipped) == (1, 1, 0)
    assert (made.charged, made.repriced) == (Decimal("0.5"), Decimal("0.00021"))


def test_ones_own_price_counts_and_each_agents_own(own: Agent, alice: User) -> None:
    other = rows.agent(alice, "Other")
    steps = [called(own, "1"), called(other, "1")]
    mine = say(own, MINI, "10")
    reprice(alice, Asked(), timezone.now())
    for step in steps:
        step.refresh_from_db()
    assert [step.repriced for step in steps] == [Decimal("0.011"), Decimal("0.00021")]
    assert steps[0].repriced_version == mine.version


def test_what_was_unknown_gets_a_price_and_is_said_apart(own: Agent, alice: User) -> None:
    step = called(own, None, name="acme/unknown-1")
    say(own, "acme/unknown-1", "10")
    made = reprice(alice, Asked(), timezone.now())
    step.refresh_from_db()
    assert (step.cost, step.repriced, made.unknown) == (None, Decimal("0.011"), 1)
    assert Run.objects.get().unknown_costs == 1


@pytest.mark.parametrize(
    "values",
    [
        {"usage": None},
        {"usage": {"prompt_tokens": "many"}},
        {"name": "acme/unknown-1"},
        {"state": "failed"},
        {"state": "unknown", "estimated": True},
        {"kind": "tool"},
    ],
)
def test_what_cannot_be_priced_stays_as_it_was_charged(own: Agent, alice: User, values: dict[str, Any]) -> None:
    step = called(own, "0.5", **values)
    assert reprice(alice, Asked(), timezone.now()).calls == 0
    step.refresh_from_db()
    assert (step.cost, step.repriced, step.repriced_version) == (Decimal("0.5"), None, "")


def test_a_range_is_of_days_agent_and_model_and_of_nobody_else(own: Agent, alice: User) -> None:
    bob = rows.owner("bob")
    other, strange = rows.agent(alice, "Other"), rows.agent(bob, "Strange")
    march = datetime(2026, 3, 1, 12, tzinfo=UTC)
    wanted = called(own, "1", at=march, served_model="gpt-4o-mini-2024-07-18")
    called(own, "1", at=march)
    called(own, "1", at=march + timedelta(days=5), served_model="gpt-4o-mini-2024-07-18")
    called(other, "1", at=march, served_model="gpt-4o-mini-2024-07-18")
    called(strange, "1", at=march, served_model="gpt-4o-mini-2024-07-18")
    day = march.date()
    made = reprice(alice, Asked(None, own, "gpt-4o-mini-2024-07-18", day, day), timezone.now())
    assert made.calls == 1
    assert list(Step.objects.exclude(repriced=None)) == [wanted]
    assert reprice(alice, Asked(), timezone.now()).calls == 4


def test_too_many_are_refused_in_words_and_nothing_is_changed(
    own: Agent, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repricing, "MOST", 1)
    called(own, "1"), called(own, "1")
    with pytest.raises(TooMany, match="at most 1 are priced"):
        reprice(alice, Asked(), timezone.now())
    assert not Step.objects.exclude(repriced=None).exists() and not Repricing.objects.exists()


def test_many_are_priced_in_few_queries(own: Agent, alice: User, django_assert_max_num_queries: Any) -> None:
    for _ in range(150):
        called(own, "1")
    with django_assert_max_num_queries(12):
        assert reprice(alice, Asked(), timezone.now()).calls == 150


def test_both_sums_are_the_same_at_every_grouping(own: Agent, alice: User) -> None:
    called(own, "0.5"), called(own, None, name="acme/unknown-1"), called(own, "0.25", usage=None)
    reprice(alice, Asked(), timezone.now())
    for group in GROUPS:
        charged = total(Step.objects.of(alice).costs_by(group, ZoneInfo("UTC")))
        later = total(Step.objects.of(alice).costs_by(group, ZoneInfo("UTC"), repriced=True))
        assert (charged.cost, charged.charged, charged.unknown) == (Decimal("0.75"), Decimal("0.75"), 1)
        assert (later.cost, later.charged, later.unknown) == (Decimal("0.25021"), Decimal("0.75"), 1)


# --- Pages -------------------------------------------------------------------------


def test_the_costs_page_shows_one_or_both(own: Agent, alice: User, client: Client) -> None:
    client.force_login(alice)
    called(own, "0.5")
    page = client.get("/costs/").content.decode()
    assert "Price these calls anew" in page and "As charged</th>" not in page
    answer = client.post("/costs/reprice/", {"group": "model"})
    assert answer["Location"] == "/costs/?group=model&prices=repriced"
    page = client.get(answer["Location"]).content.decode()
    assert "charged $0.50, by today&#x27;s prices $0.00021; 1 differ." in page
    assert "As charged</th>" in page and "$0.00021" in page and "Priced anew" in page
    page = client.get("/costs/").content.decode()
    assert "$0.00021" not in page and "$0.50" in page


def test_a_run_is_priced_anew_on_its_page(own: Agent, alice: User, client: Client) -> None:
    client.force_login(alice)
    run = called(own, "0.5").run
    called(own, "0.5")
    assert client.post(f"/runs/{run.pk}/reprice/").status_code == 302
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "repriced $0.00021" in page and "by a later price $0.00021" in page and "$0.50" in page
    assert Step.objects.exclude(repriced=None).count() == 1


@pytest.mark.parametrize("given", [{"from": "x"}, {"agent": "nobody"}, {"model": "\0"}, {"group": "\ud800🦆" * 9_000}])
def test_what_cannot_be_meant_prices_nothing(own: Agent, alice: User, client: Client, given: dict[str, str]) -> None:
    client.force_login(alice)
    called(own, "0.5", at=datetime(2020, 1, 1, tzinfo=UTC))
    given = {name: value.encode("utf-8", "replace").decode() for name, value in given.items()}
    assert client.post("/costs/reprice/", given).status_code in {302, 404}
    assert not Step.objects.exclude(repriced=None).exists()


def test_the_costs_page_shows_budgets_in_few_queries(
    own: Agent, alice: User, client: Client, django_assert_max_num_queries: Any
) -> None:
    from agents.models import Budget
    from tests.agents.test_budgets import spent

    client.force_login(alice)
    for number in range(10):
        Budget.objects.create(agent=own, scope="skill", target=f"31123:aa:s{number}", period="day", limit=1)
    spent(own, "0.9", settled="0.9", skill_address="31123:aa:s3")
    called(own, "0.5")
    reprice(alice, Asked(), timezone.now())
    client.get("/agents/")  # what all pages share is looked up once in a while
    with django_assert_max_num_queries(8):
        page = client.get("/costs/?prices=repriced").content.decode()
    assert "the skill “s3” of Helper, a day" in page and "nearly used up" in page


# --- The API -----------------------------------------------------------------------


def test_a_program_prices_anew_and_reads_both(own: Agent, alice: User, client: Client) -> None:
    token = {"Authorization": f"Bearer {ApiToken.issue(alice, 'x', ['read', 'write'])}"}
    run = called(own, "0.5").run

    def post(**body: Any) -> Any:
        return client.post("/api/v1/repricings", body, content_type="application/json", headers=token)

    made = post(agent=own.slug)
    assert made.status_code == 201
    told = made.json()
    assert (told["charged"], told["repriced"], told["calls"], told["agent"]) == ("0.5", "0.00021", 1, own.slug)
    assert post(run=run.pk).json()["run"] == run.pk
    assert len(client.get("/api/v1/repricings", headers=token).json()["items"]) == 2
    table = client.get("/api/v1/costs?prices=repriced", headers=token).json()
    assert (table["total"]["cost"], table["total"]["charged"]) == ("0.00021", "0.5")
    assert client.get("/api/v1/costs", headers=token).json()["total"]["cost"] == "0.5"
    ledger = client.get(f"/api/v1/runs/{run.pk}/ledger", headers=token).json()
    assert (ledger["cost"], ledger["repriced"], ledger["attempts"][0]["repriced"]) == ("0.5", "0.00021", "0.00021")
    assert post(**{"from": "yesterday"}).status_code == 400
    assert client.get("/api/v1/costs?prices=x", headers=token).status_code == 400


def test_strangers_and_narrow_tokens_price_nothing(own: Agent, alice: User, client: Client) -> None:
    run = called(own, "0.5").run
    for user, scopes, status in ((rows.owner("bob"), ["read", "write"], 404), (alice, ["read", "run"], 403)):
        token = {"Authorization": f"Bearer {ApiToken.issue(user, 'x', scopes)}"}
        for body in ({"run": run.pk}, {"agent": own.slug}):
            answer = client.post("/api/v1/repricings", body, content_type="application/json", headers=token)
            assert answer.status_code == status
    assert not Step.objects.exclude(repriced=None).exists()
