"""Every shape of answer and every kind of failure over real HTTP, whole and streamed.

The tables of docs/outcomes.md are those of this test.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from agents import llm
from agents.engine import costs, fallback, outcomes
from tests import fakes
from tests.agents.failures import FAILURES, NEXT, Failure
from tests.agents.scripted import LIMIT, Shape
from tests.agents.shapes import SHAPES

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:Pydantic serializer warnings",  # of shapes that openai's types do not foresee
)
KEY = "site-key-CANARY-1234"
ASK = llm.Request([{"role": "user", "content": "hi"}], max_tokens=LIMIT)
DOC = Path(__file__).parents[2] / "docs" / "outcomes.md"


@pytest.fixture
def server(settings: Any) -> Any:
    settings.LLM_TIMEOUT = 5
    with fakes.ModelServer() as running:
        yield running


def ask(server: fakes.ModelServer, answer: fakes.Scripted, streamed: bool) -> llm.Answer:
    server.script(answer)
    listen = (lambda text: None) if streamed else None
    return llm.complete(llm.Endpoint("openai/gpt-4o-mini", server.url, KEY), ASK, listen)


def words(outcome: outcomes.Outcome) -> str:
    calls = ["refused" if one.problem else "run" for one in outcome.calls]
    return f"{outcome.kind} [{', '.join(calls)}]" if calls else outcome.kind


WHOLE = [shape for shape in SHAPES if shape.whole is not None]
STREAMED = [shape for shape in SHAPES if shape.streamed is not None]


@pytest.mark.parametrize("shape", WHOLE, ids=lambda shape: shape.name)
def test_a_whole_answer_has_its_outcome(server: fakes.ModelServer, shape: Shape) -> None:
    assert shape.whole is not None
    outcome = outcomes.read(ask(server, shape.whole, streamed=False).response, LIMIT)
    assert words(outcome) == shape.becomes
    assert "secret thought" not in outcome.text


@pytest.mark.parametrize("shape", STREAMED, ids=lambda shape: shape.name)
def test_a_streamed_answer_has_its_outcome(server: fakes.ModelServer, shape: Shape) -> None:
    assert shape.streamed is not None
    outcome = outcomes.read(ask(server, shape.streamed, streamed=True).response, LIMIT)
    assert words(outcome) == shape.streams_to
    assert "secret thought" not in outcome.text
    assert [body.get("stream") for body in server.asked] == [True]


@pytest.mark.parametrize(
    ("failure", "streamed"),
    [(one, way == "streamed") for one in FAILURES for way in ("whole", "streamed") if one.only in {"", way}],
    ids=lambda value: value.name if isinstance(value, Failure) else "streamed" if value else "whole",
)
def test_a_failure_has_its_class(server: fakes.ModelServer, failure: Failure, streamed: bool) -> None:
    with pytest.raises(llm.ModelFailed) as raised:
        ask(server, failure.answer, streamed)
    error = raised.value.error
    assert (fallback.classify(error), error.maybe_spent) == (failure.becomes, failure.maybe_spent)
    assert error.message and len(server.asked) == 1


def test_there_are_shapes_enough_and_each_has_its_name() -> None:
    names = [one.name for one in (*SHAPES, *FAILURES)]
    assert len(SHAPES) >= 30 and len(names) == len(set(names))
    assert {one.becomes.partition(" ")[0] for one in WHOLE} == {"text", "calls", "empty", "filtered", "truncated"}
    assert {one.becomes for one in FAILURES} == set(NEXT) - {"text", "calls", "empty", "truncated", "not-configured"}


def test_two_whole_calls_with_one_index_keep_their_arguments(server: fakes.ModelServer) -> None:
    shape = next(one for one in SHAPES if one.name.startswith("two whole calls, each"))
    assert shape.streamed is not None
    first, second = outcomes.read(ask(server, shape.streamed, streamed=True).response).calls
    assert (first.id, first.name, first.arguments) == ("a", "f", {"x": 1})
    assert (second.id, second.name, second.arguments) == ("b", "g", {"y": 2})


# --- How long to wait --------------------------------------------------------------

SOON = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "2"}, "", 2.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "900"}, "", 900.0),
        ({"retry-after": SOON}, "", 600.0),
        ({"retry-after": "Thu, 01 Jan 2015 00:00:00 GMT"}, "", 0.0),
        ({"retry-after-ms": "1500"}, "", 1.5),
        ({"retry-after-ms": "soon", "retry-after": "3"}, "", 3.0),
        ({}, '"retryDelay":"52s"', 52.0),
        ({}, "Please try again in 1m30s.", 90.0),
        ({"retry-after": "-1"}, "", None),
        ({"retry-after": "abc"}, "", None),
        ({"retry-after": ""}, "", None),
        ({"retry-after": "1e9"}, "", None),
        ({"retry-after": "-1"}, "try again in 4s", 4.0),
    ],
)
def test_how_long_to_wait_is_read_in_every_form(
    server: fakes.ModelServer, headers: dict[str, str], body: str, seconds: float | None, streamed: bool
) -> None:
    answer = replace(fakes.error(429, f"slow down {body}"), headers=headers)
    with pytest.raises(llm.ModelFailed) as raised:
        ask(server, answer, streamed)
    found = raised.value.error.retry_after
    assert found == seconds if seconds != 600.0 else found is not None and 60 < found <= 600  # since this file was read


def test_an_error_inside_an_answer_says_how_long_too(server: fakes.ModelServer) -> None:
    body = {"error": {"message": "Rate limit exceeded, retry in 3 s", "code": 429}}
    with pytest.raises(llm.ModelFailed) as raised:
        ask(server, fakes.Scripted(body), streamed=False)
    assert raised.value.error.retry_after == 3.0


# --- What was used -----------------------------------------------------------------

PRICE = costs.Price(costs.Decimal("0.01"), costs.Decimal("0.02"))


@pytest.mark.parametrize(
    ("usage", "known", "cost"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, True, "0.20"),
        ({"prompt_tokens": 10, "completion_tokens": 5}, True, "0.20"),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 99_999}, True, "0.20"),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 10}}, True, "0.20"),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 5}},
            True,
            "0.20",
        ),
        (None, False, None),
    ],
)
def test_usage_becomes_a_cost_or_stays_unknown(
    server: fakes.ModelServer, usage: Any, known: bool, cost: str | None
) -> None:
    answer = fakes.text("hi")
    answer.body["usage"] = usage
    found = costs.read_usage(ask(server, answer, streamed=False).usage)
    assert found.known is known or (usage is None and found.total == 0)
    amount = costs.cost(found, PRICE)
    assert amount in {None if cost is None else costs.Decimal(cost), costs.Decimal(0) if usage is None else None}


@pytest.mark.parametrize(
    ("raw", "known", "consistent"),
    [
        (None, False, True),
        ({}, False, True),
        ("12 tokens", False, True),
        ([], False, True),
        ({"prompt_tokens": "10", "completion_tokens": "5"}, False, True),
        ({"prompt_tokens": None, "completion_tokens": None}, False, True),
        ({"prompt_tokens": -4, "completion_tokens": -1}, False, True),
        ({"prompt_tokens": True, "completion_tokens": False}, False, True),
        ({"prompt_tokens": 10.0, "completion_tokens": 5}, True, True),
        ({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 11}}, True, False),
        (
            {"prompt_tokens": 1, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 6}},
            True,
            False,
        ),
        ({"prompt_tokens": 1, "completion_tokens": 5, "prompt_tokens_details": "many"}, True, True),
    ],
)
def test_usage_of_any_shape_is_read_without_a_guess(raw: Any, known: bool, consistent: bool) -> None:
    found = costs.read_usage(raw)
    assert (found.known, found.consistent) == (known, consistent)
    assert min(found.input, found.cached, found.output, found.reasoning) >= 0


# --- The documentation --------------------------------------------------------------


def doc_rows(heading: str) -> list[list[str]]:
    text = DOC.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_documentation_has_every_shape_with_its_outcome() -> None:
    meant = [
        [one.name, f"`{one.becomes}`" if one.whole else "–", f"`{one.streams_to}`" if one.streamed else "–"]
        for one in SHAPES
    ]
    assert doc_rows("Answers") == meant


def test_the_documentation_has_every_failure_with_its_class() -> None:
    spent = {True: "may have cost something", False: "costs nothing"}
    meant = [
        [one.name, {"": "both"}.get(one.only, one.only), f"`{one.becomes}`", spent[one.maybe_spent]] for one in FAILURES
    ]
    assert doc_rows("Failures") == meant
