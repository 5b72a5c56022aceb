"""Costs are exact, or say that they are not known."""

from decimal import Decimal

import pytest

from agents.engine.costs import FREE, Price, Tier, Usage, cost, read_usage, total, worst_case


def usage(prompt, cached, completion, reasoning=0):
    return read_usage(
        {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
    )


def test_cached_tokens_are_billed_once():
    price = Price(Decimal("0.0000014"), Decimal("0.0000044"), cached=Decimal("0.00000026"))
    assert cost(usage(27147, 27146, 351), price) == Decimal("0.00860376")
    million = Decimal(1_000_000)
    price = Price(Decimal("1.25") / million, Decimal(10) / million, cached=Decimal("0.625") / million)
    assert cost(usage(262960, 257955, 1744), price) == Decimal("0.184918125")


def test_more_cached_than_sent_is_marked_and_never_negative():
    found = usage(10, 20, 1)
    assert not found.consistent
    assert found.input == 0
    assert cost(found, Price(Decimal(1), Decimal(1))) == 11


def test_reasoning_is_part_of_the_output_and_counted_once():
    found = usage(10, 0, 100, reasoning=60)
    assert (found.output, found.reasoning, found.total) == (40, 60, 110)


@pytest.mark.parametrize(
    "raw", [None, {}, "12", {"prompt_tokens": "12", "completion_tokens": None}, {"prompt_tokens": -1}]
)
def test_missing_usage_is_unknown_and_not_free(raw):
    found = read_usage(raw)
    assert not found.known
    assert cost(found, Price(Decimal(1), Decimal(1))) is None


def test_an_unknown_price_is_unknown_and_a_free_model_is_free():
    assert cost(Usage(10, 0, 10), None) is None
    assert cost(Usage(known=False), FREE) == 0


def test_sums_are_exact_and_count_the_unknown_apart():
    assert total([Decimal("0.00004")] * 1000) == (Decimal("0.04"), 0)
    assert total([Decimal("0.1")] * 10 + [None, None]) == (Decimal("1.0"), 2)


def test_the_worst_case_has_nothing_cached_and_the_dearest_output():
    price = Price(Decimal(1), Decimal(2), cached=Decimal("0.1"), reasoning=Decimal(3))
    assert worst_case(10, 5, price) == 25
    assert worst_case(10, 5, None) is None


def test_a_long_request_is_billed_at_its_own_price_as_a_whole():
    price = Price(Decimal(1), Decimal(2), Decimal("0.1"), tiers=(Tier(100, Decimal(3), Decimal(4), Decimal("0.5")),))
    assert cost(usage(100, 50, 10), price) == 50 + 5 + 20
    assert cost(usage(101, 50, 10), price) == 51 * 3 + 25 + 40
    assert worst_case(101, 10, price) == 101 * 3 + 40
