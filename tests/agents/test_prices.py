"""Prices and sizes from litellm's table, read without litellm."""

import json
import subprocess
import sys
from decimal import Decimal

import pytest

from agents import llm
from agents.engine import costs
from agents.llm import prices


def of(model, served="", **where):
    return llm.price_of(llm.Endpoint(model, **where), served)


def test_prices_are_exact_decimals_with_their_tables_version():
    price = of("openai/gpt-4o-mini")
    assert (price.input, price.output, price.cached) == (Decimal("1.5e-7"), Decimal("6e-7"), Decimal("7.5e-8"))
    assert price.version.startswith("litellm 1.")
    assert " of 20" in price.version
    assert len(price.version) <= 60


def test_the_model_that_served_sets_the_price():
    assert of("openai/cheap", "gpt-4o-2024-08-06") == of("openai/gpt-4o-2024-08-06")
    assert of("openai/gpt-4o-mini", "something-new") == of("openai/gpt-4o-mini")


def test_long_requests_have_their_own_price():
    price = of("gemini/gemini-2.5-pro")
    assert price.at(200_000) is price
    assert price.at(200_001).input == 2 * price.input


def test_what_nobody_knows_is_unknown_and_what_runs_here_is_free():
    assert of("acme/unknown-1") is None
    assert of("openai/unknown-1", base_url="https://llm.example/v1") is None
    assert of("openai/unknown-1", base_url="http://127.0.0.1:11434/v1") is costs.FREE
    assert of("offline/echo") is costs.FREE


@pytest.mark.parametrize("row", [{}, {"input_cost_per_token": 1}, {"input_cost_per_token": None}])
def test_a_row_that_does_not_say_what_a_token_costs_is_no_price(row):
    assert prices._price(row, "v") is None


def test_a_model_that_is_billed_by_the_request_has_no_price_by_the_token():
    assert of("perplexity/pplx-7b-online") is None


def test_sizes_are_those_of_the_table():
    assert llm.sizes_of("openai/gpt-4o-mini") == llm.Sizes(128_000, 16_384)
    assert llm.sizes_of("acme/unknown-1") == llm.Sizes()


def test_reading_prices_imports_no_litellm():
    code = (
        "import os, sys, django; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings'; django.setup();"
        "from agents import llm; llm.price_of(llm.Endpoint('openai/gpt-4o')); llm.count('x');"
        "sys.exit(int('litellm' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_every_row_is_found_where_it_stands():
    """Against the whole table at once, the slow and large way."""
    rows = json.loads((prices.package_folder() / prices.TABLE).read_text(), parse_float=Decimal)
    assert len(rows) > 1_000
    assert prices._places().keys() == rows.keys()
    for name, row in rows.items():
        row = rows.get(row.get("alias_of"), row)
        assert prices.entry(name) == prices.Entry(prices._price(row, prices._version()), prices._sizes(row)), name


def test_another_name_of_a_model_has_its_price():
    rows = json.loads((prices.package_folder() / prices.TABLE).read_text())
    name, model = next((name, row["alias_of"]) for name, row in rows.items() if "alias_of" in row)
    assert prices.entry(name) == prices.entry(model)
    assert prices.entry(name).price is not None


@pytest.mark.parametrize("name", ["", '"', "\ud800", "\0", '{"', "x" * 200_000, "\n"])
def test_a_name_that_is_none_has_no_entry(name):
    assert prices.entry(name) is None
