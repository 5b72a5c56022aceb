"""Each limit refuses with its own reason."""

from decimal import Decimal

import pytest

from agents.engine.budgets import Allowance, refusal
from agents.engine.limits import Limits, Situation, decide


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"duplicate": True, "enabled": False}, "duplicate"),
        ({"enabled": False}, "disabled"),
        ({"usable": False}, "unusable"),
        ({"expired": True}, "expired"),
        ({"own_event": True}, "loop"),
        ({"depth": 6}, "loop"),
        ({"since_last": 59.0}, "cooldown"),
        ({"llm_last_minute": 10}, "rate"),
        ({"action": "template", "template_last_minute": 60}, "rate"),
        ({"open_runs": 16}, "concurrency"),
        ({"over_budget": "The budget for x is used up."}, "budget"),
    ],
)
def test_what_is_held_back_says_why(case, reason):
    refused = decide(Situation(**case), Limits())
    assert refused is not None
    assert refused.reason == reason
    assert refused.words.endswith(".")


@pytest.mark.parametrize(
    "case",
    [{}, {"since_last": 60.0}, {"llm_last_minute": 9}, {"action": "template", "llm_last_minute": 10}, {"depth": 5}],
)
def test_at_the_limit_it_still_goes(case):
    assert decide(Situation(**case), Limits()) is None


def test_an_agents_own_numbers_replace_the_sites_and_nonsense_does_not():
    assert Limits().adjusted({"cooldown": 0, "concurrent": "many", "depth": True}) == Limits(cooldown=0)


def test_a_budget_is_never_passed_by_a_call_that_may_cost_more():
    day = Allowance("the day", Decimal("5.00"), Decimal("4.752720"))
    reserved = Decimal("0.0884")
    for _ in range(2):
        assert refusal(reserved, [day]) is None
        day = Allowance(day.name, day.limit, day.used + reserved)
    assert "may cost" in (refusal(reserved, [day]) or "")


def test_without_a_price_a_budget_refuses_and_free_calls_always_fit():
    spent = Allowance("the day", Decimal(1), Decimal(2))
    assert "no known price" in (refusal(None, [spent]) or "")
    assert refusal(None, []) is None
    assert refusal(Decimal(0), [spent]) is None


def test_a_warning_comes_at_four_fifths():
    assert Allowance("", Decimal(1), Decimal("0.8")).state == "warn"
    assert not Allowance("", Decimal(1), Decimal("0.79")).state
