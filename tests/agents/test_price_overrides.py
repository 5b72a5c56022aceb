"""What owners say of models: windows and prices before the table, guesses that budgets count and totals do not."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents import llm
from agents.engine.costs import Assumed, Price, Usage
from agents.models import Agent, Budget, OwnModel, Reservation, Step
from agents.models.allowances import allowances
from agents.preview.estimates import estimates
from marketplace.models import ApiToken, User
from tests import fakes
from tests.agents import rows
from tests.agents.rows import carried_out

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
UNKNOWN = "openai/acme-unknown-1"


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model server as if it were at a public address: what is local costs nothing."""
    monkeypatch.setattr(llm.Endpoint, "is_local", False)


@pytest.fixture
def acme(helper: Agent, far: None) -> Agent:
    helper.llm = UNKNOWN
    helper.save()
    return helper


def say(of: Agent, model: str = UNKNOWN, **values: Any) -> OwnModel:
    amounts = {name: Decimal(value) if isinstance(value, str) else value for name, value in values.items()}
    return OwnModel.objects.put(of, model, amounts, timezone.now())


def answered(**usage: Any) -> fakes.Scripted:
    """By a model that no table knows."""
    return fakes.text("ok", model="acme-unknown-1", **usage)


def run_of(of: Agent) -> Any:
    return carried_out(rows.run(of, input={"message": "hi"}))


# --- Prices ------------------------------------------------------------------------


def test_an_owners_price_is_charged_for_each_class_of_tokens(models: Any, acme: Agent) -> None:
    own = say(acme, input="2", output="8", cached="0.5", reasoning="10")
    used = {"prompt_tokens_details": {"cached_tokens": 400}, "completion_tokens_details": {"reasoning_tokens": 30}}
    models.script(answered(prompt_tokens=1_000, completion_tokens=100, **used))
    run = run_of(acme)
    assert run.cost == Decimal("0.0012") + Decimal("0.0002") + Decimal("0.00056") + Decimal("0.0003")
    step = run.steps.get()
    assert (step.price_version, run.unknown_costs) == (own.version, 0)
    assert step.output["price"] == {"input": "2", "cached": "0.5", "output": "8", "reasoning": "10"}


def test_it_goes_before_the_table_also_when_the_answer_names_another_version(models: Any, helper: Agent) -> None:
    say(helper, "openai/gpt-4o-mini", input="100", output="100")
    models.script(fakes.text("ok", prompt_tokens=1_000, completion_tokens=0))  # says gpt-4o-mini-2024-07-18
    assert run_of(helper).cost == Decimal("0.1")


def test_the_price_of_what_answered_goes_before_that_of_what_was_asked(models: Any, helper: Agent) -> None:
    say(helper, "openai/gpt-4o-mini", input="100", output="100")
    say(helper, "openai/gpt-4o-mini-2024-07-18", input="1", output="1")
    models.script(fakes.text("ok", prompt_tokens=1_000, completion_tokens=0))
    assert run_of(helper).cost == Decimal("0.001")


def test_a_changed_price_leaves_past_costs_as_they_were_and_stays_on_record(models: Any, acme: Agent) -> None:
    """P45."""
    first = say(acme, input="2", output="2")
    before = run_of(acme)
    second = say(acme, input="20", output="20")
    after = run_of(acme)
    before.refresh_from_db()
    assert after.cost == 10 * before.cost > 0
    assert [step.price_version for step in Step.objects.order_by("pk")] == [first.version, second.version]
    assert list(OwnModel.objects.order_by("pk").values_list("input", flat=True)) == [2, 20]
    assert OwnModel.objects.get(until=None) == second


def test_another_agents_word_does_not_count(models: Any, acme: Agent) -> None:
    say(rows.agent(acme.owner, "Other"), input="2", output="2")
    models.script(answered())
    assert run_of(acme).unknown_costs == 1


# --- Windows -----------------------------------------------------------------------


def test_a_window_of_ones_own_decides_who_is_asked(models: Any, helper: Agent) -> None:
    helper.llm = "openai/gpt-4o, openai/gpt-4o-mini"
    helper.save()
    say(helper, "openai/gpt-4o", window=3)
    run = run_of(helper)
    refused, answered = run.steps.all()
    assert (refused.state, refused.outcome) == ("refused", "context") and "window of 3 tokens" in refused.error
    assert (answered.name, run.cost > 0) == ("openai/gpt-4o-mini", True)  # prices stay the table's


def test_the_longest_answer_of_ones_own_is_what_is_asked_for(models: Any, helper: Agent) -> None:
    say(helper, "openai/gpt-4o-mini", most_output=77)
    run_of(helper)
    assert models.asked[0]["max_tokens"] == 77


def test_a_preview_knows_them_too(acme: Agent) -> None:
    own = say(acme, input="2", output="4", window=1_000)
    (shown,) = estimates(acme, [UNKNOWN], 100, 5_000)
    assert (shown.window, shown.input, shown.price_version) == (1_000, Decimal("0.0002"), own.version)
    assert shown.room == 900 and shown.at_most == Decimal("0.0002") + 900 * Decimal("0.000004")


# --- Guesses -----------------------------------------------------------------------


def test_a_guess_per_call_lets_it_run_counts_and_leaves_the_cost_unknown(models: Any, acme: Agent) -> None:
    """L02: the run succeeds, its cost is unknown, and the budget counts the owner's estimate."""
    Budget.objects.create(agent=acme, period="day", limit=Decimal("0.05"))
    own = say(acme, certain=False, per_call="0.02")
    models.script(answered(), answered())
    run = run_of(acme)
    assert (run.status, run.cost, run.unknown_costs) == ("succeeded", 0, 1)
    step = run.steps.get()
    assert (step.cost, step.price_version, step.input["assumed"]) == (None, "", own.version)
    (left,) = allowances(acme, timezone.now())
    assert left.used == Decimal("0.02")
    assert run_of(acme).status == "succeeded"
    third = run_of(acme)
    assert (third.status, third.reason) == ("failed", "budget") and "0.05 USD, 0.04 is used" in third.reason_words


def test_a_guess_per_token_reserves_the_worst_and_settles_at_what_was_used(models: Any, acme: Agent) -> None:
    Budget.objects.create(agent=acme, period="day", limit=1)
    say(acme, certain=False, input="10", output="20")
    models.script(answered(prompt_tokens=1_000, completion_tokens=100))
    assert run_of(acme).cost == 0
    kept = Reservation.objects.get()
    assert kept.settled == Decimal("0.012") and kept.amount > kept.settled


@pytest.mark.parametrize("values", [{"per_call": "0.02"}, {"input": "10", "output": "20"}])
def test_a_lost_answer_counts_what_was_reserved_and_its_cost_stays_unknown(
    models: Any, acme: Agent, values: dict[str, str]
) -> None:
    say(acme, certain=False, **values)
    models.script(fakes.broken_off())
    run = run_of(acme)
    step, kept = run.steps.get(), Reservation.objects.get()
    assert (step.cost, step.estimated, run.unknown_costs) == (None, True, 1)
    assert kept.settled == kept.amount > 0


def test_an_answer_without_usage_counts_what_was_reserved(models: Any, acme: Agent) -> None:
    say(acme, certain=False, input="10", output="20")
    answer = answered()
    answer.body["usage"] = None
    models.script(answer)
    assert run_of(acme).status == "succeeded"
    kept = Reservation.objects.get()
    assert kept.settled == kept.amount > 0


def test_without_a_guess_a_budget_refuses_it_and_says_where_to_say_so(models: Any, acme: Agent, client: Client) -> None:
    Budget.objects.create(agent=acme, period="month", limit=5)
    run = run_of(acme)
    assert (run.status, run.reason) == ("failed", "budget") and "no known price" in run.reason_words
    client.force_login(acme.owner)
    assert f'href="/agents/{acme.slug}/models/"' in client.get(f"/runs/{run.pk}/").content.decode()
    assert models.asked == []


def test_a_table_price_is_not_replaced_by_a_guess(models: Any, helper: Agent) -> None:
    say(helper, "openai/gpt-4o-mini", certain=False, per_call="3")
    run = run_of(helper)
    assert 0 < run.cost < 1 and run.unknown_costs == 0


def test_a_guess_per_call_wins_over_any_usage() -> None:
    assumed = Assumed("x", Decimal("0.5"))
    assert assumed.worst(10, 10) == Decimal("0.5") and assumed.used(Usage(1, 1, 1, 1)) is None
    rates = Assumed("x", rates=Price(Decimal(1), Decimal(2)))
    assert rates.worst(10, 10) == 30 and rates.used(Usage(1, 0, 1)) == 3 and rates.used(Usage(known=False)) is None


# --- The ledger --------------------------------------------------------------------


def test_the_ledger_says_what_the_first_choice_would_have_cost(models: Any, helper: Agent, client: Client) -> None:
    helper.llm = "openai/gpt-4o, openai/gpt-4o-mini"
    helper.save()
    models.script(fakes.error(503, "overloaded"), model="gpt-4o")
    models.script(fakes.text("ok", prompt_tokens=1_000, completion_tokens=100), model="gpt-4o-mini")
    run = run_of(helper)
    assert run.cost == Decimal("0.00021")
    failed, answered = run.steps.all()
    assert (failed.first_cost, answered.first_cost) == (None, Decimal("0.0035"))  # 2.5 and 10 USD per million
    client.force_login(helper.owner)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "then the next model" in page and "would have cost $0.0035" in page and "$0.0033 more" in page
    assert "0.15 in" in page and "litellm" in page
    token = {"Authorization": f"Bearer {ApiToken.issue(helper.owner, 'x', ['read'])}"}
    told = client.get(f"/api/v1/runs/{run.pk}/ledger", headers=token).json()
    assert [one["decision"] for one in told["attempts"]] == ["next", ""]
    assert (told["cost"], told["first_choice_cost"]) == ("0.00021", "0.0035")
    assert told["attempts"][1]["price"]["output"] == "0.6" and len(told["price_versions"]) == 1
    assert client.get("/api/v1/runs/../ledger", headers=token).status_code == 404


def test_an_answer_of_the_first_choice_is_compared_with_nothing(models: Any, helper: Agent, client: Client) -> None:
    run = run_of(helper)
    assert run.steps.get().first_cost == run.cost
    client.force_login(helper.owner)
    assert "first choice" not in client.get(f"/runs/{run.pk}/").content.decode()


# --- The page ----------------------------------------------------------------------


def test_a_model_is_added_changed_and_given_back_on_the_page(acme: Agent, client: Client) -> None:
    client.force_login(acme.owner)
    address = f"/agents/{acme.slug}/models/"
    page = client.get(address).content.decode()
    assert "Say what it costs" in page and UNKNOWN in page
    given = {"model": UNKNOWN, "kind": "exact", "input": "0.5", "output": "1.5", "window": "32000"}
    assert client.post(address, given).status_code == 302
    assert 'value="1.5"' in client.get(f"{address}?model={UNKNOWN}").content.decode()
    assert client.post(address, {"model": UNKNOWN, "kind": "estimate", "per_call": "0.01"}).status_code == 302
    assert "your guess: at most $0.010 a call" in client.get(address).content.decode()
    assert client.post(address, {"remove": UNKNOWN}).status_code == 302
    page = client.get(address).content.decode()
    assert "Said before" in page and "0.5 in, 1.5 out" in page and "window 32000" in page
    assert [one.until is None for one in OwnModel.objects.all()] == [False, False]


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"model": "gpt-4o", "input": "1", "output": "1"}, "model", "provider/name"),
        ({"model": "offline/echo", "input": "1", "output": "1"}, "model", "free"),
        ({"input": "1"}, "output", "need a price"),
        ({"cached": "1"}, "input", "need a price"),
        ({"per_call": "1"}, "per_call", "is a guess"),
        ({"kind": "estimate", "per_call": "1", "input": "1", "output": "1"}, "per_call", "Either"),
        ({"kind": "estimate", "window": "9"}, "per_call", "A guess needs"),
        ({}, "__all__", "Nothing is given"),
        ({"window": "0"}, "window", "greater than or equal to 1"),
        ({"input": "-1", "output": "1"}, "input", "greater than or equal to 0"),
        ({"input": "Infinity", "output": "NaN"}, "input", "Enter a number"),
        ({"input": "0.0000001", "output": "1"}, "input", "6 decimal places"),
        ({"model": "a/" + "🦆\0" * 100_000}, "model", "at most 200"),
        ({"kind": "none", "input": "1", "output": "1"}, "kind", "valid choice"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    helper: Agent, client: Client, given: dict[str, str], field: str, words: str
) -> None:
    client.force_login(helper.owner)
    answer = client.post(f"/agents/{helper.slug}/models/", {"model": UNKNOWN, "kind": "exact", **given})
    assert answer.status_code == 422
    assert any(words in error for error in answer.context["form"].errors[field]), answer.context["form"].errors
    assert not OwnModel.objects.exists()


def test_a_strangers_models_are_not_there(helper: Agent, client: Client) -> None:
    say(helper, input="1", output="1")
    stranger: User = rows.owner("bob")
    client.force_login(stranger)
    for answer in (
        client.get(f"/agents/{helper.slug}/models/"),
        client.post(f"/agents/{helper.slug}/models/", {"remove": UNKNOWN}),
    ):
        assert answer.status_code == 404
    assert OwnModel.objects.filter(until=None).exists()


def test_the_page_takes_few_queries(helper: Agent, client: Client, django_assert_max_num_queries: Any) -> None:
    helper.aliases = {"cheap": "openai/a, openai/b", "dear": "openai/c"}
    helper.save()
    for number in range(20):
        say(helper, f"openai/m{number}", input="1", output="1")
    client.force_login(helper.owner)
    client.get("/agents/")  # what all pages share is looked up once in a while
    with django_assert_max_num_queries(8):
        assert client.get(f"/agents/{helper.slug}/models/").status_code == 200
