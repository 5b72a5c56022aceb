"""Every shape of answer and every kind of failure over real HTTP, whole and streamed, and what a run does next.

The tables of docs/outcomes.md are those of this test.
"""

import base64
import json
import logging
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from agents import llm
from agents.engine import costs, fallback, outcomes
from agents.models import Agent, Run
from tests import fakes
from tests.agents import rows
from tests.agents.shapes import FAILURES, LIMIT, SHAPES, Failure, Shape, call, piece, sse

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:Pydantic serializer warnings",  # of shapes that openai's types do not foresee
)
KEY = "site-key-CANARY-1234"
ASK = llm.Request([{"role": "user", "content": "hi"}], max_tokens=LIMIT)
DOC = Path(__file__).parents[2] / "docs" / "outcomes.md"

# What a run does next, by outcome of the attempt; the words of docs/outcomes.md.
NEXT = {
    "text": "The run succeeds with it.",
    "calls": "Each call is carried out, or answered with what is wrong with it; each id gets one reply, in order. Then the model is asked again.",
    "empty": "The next model is asked, once in a turn; if that is empty too, or there is none, the run fails with `empty`. Its tokens are billed.",
    "filtered": "The run fails with `filtered`; no other model is asked.",
    "truncated": "No call is carried out; each is answered with an error. The model is asked once more with twice the room; cut again, the run fails with `truncated`.",
    "context": "The next model is asked, of those whose window is larger or not known.",
    "rate-limited": "Asked to wait at most five seconds, the same model is asked once more; else the next one.",
    "unavailable": "The next model is asked.",
    "timeout": "The next model is asked.",
    "server": "The next model is asked.",
    "not-configured": "The next model is asked.",
    "auth": "The next model is asked, and the owner is told.",
    "bad-request": "The next model is asked, and the owner is told.",
}


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


# --- What a run does next ----------------------------------------------------------

TOOL = fakes.calls(("c1", "tool_list", {}))
CUT = call('{"content":"Hello wor', "length", name="tool_list")
BUSY = replace(fakes.error(429, "slow down"), headers={"retry-after": "900"})
AT_ONCE = replace(fakes.error(429, "slow down"), headers={"retry-after": "0"})
STEPS: list[tuple[str, str, list[fakes.Scripted], tuple[str, str], list[str]]] = [
    # outcome of the first attempt, what is special, answers of the first model, end of the run, models asked
    ("text", "", [fakes.text("Hello")], ("succeeded", ""), ["first"]),
    ("calls", "", [TOOL, fakes.text("Hello")], ("succeeded", ""), ["first", "first"]),
    (
        "calls",
        "unknown tool",
        [fakes.calls(("c1", "no_such_tool", {})), fakes.text("Hello")],
        ("succeeded", ""),
        ["first", "first"],
    ),
    ("empty", "", [fakes.text("")], ("succeeded", ""), ["first", "second"]),
    ("filtered", "", [fakes.text("so far", "content_filter")], ("failed", "filtered"), ["first"]),
    ("filtered", "error", [fakes.error(400, "blocked by content_filter")], ("failed", "filtered"), ["first"]),
    ("truncated", "", [CUT, fakes.text("Hello")], ("succeeded", ""), ["first", "first"]),
    ("truncated", "twice", [CUT, CUT], ("failed", "truncated"), ["first", "first"]),
    ("context", "", [fakes.error(400, "maximum context length is 8192")], ("succeeded", ""), ["first", "second"]),
    ("rate-limited", "long", [BUSY], ("succeeded", ""), ["first", "second"]),
    ("rate-limited", "short", [AT_ONCE, fakes.text("Hello")], ("succeeded", ""), ["first", "first"]),
    ("unavailable", "", [fakes.error(503, "overloaded")], ("succeeded", ""), ["first", "second"]),
    ("timeout", "", [fakes.error(408, "too slow")], ("succeeded", ""), ["first", "second"]),
    ("server", "", [fakes.error(500, "oops")], ("succeeded", ""), ["first", "second"]),
    ("auth", "", [fakes.error(401, "wrong key")], ("succeeded", ""), ["first", "second"]),
    ("bad-request", "", [fakes.error(400, "unknown field")], ("succeeded", ""), ["first", "second"]),
]


@pytest.fixture
def chain(helper: Agent, models: fakes.ModelServer, settings: Any) -> Agent:
    settings.LLM_TIMEOUT = 60  # however busy the machine is
    helper.llm, helper.grants = "openai/first, openai/second", ["tool_list"]
    helper.save()
    return helper


@pytest.mark.parametrize("way", ["manual", "cron"])  # streamed, whole
@pytest.mark.parametrize(
    ("outcome", "special", "answers", "ended", "asked"), STEPS, ids=[f"{one[0]} {one[1]}".strip() for one in STEPS]
)
def test_what_a_run_does_next(
    chain: Agent,
    models: fakes.ModelServer,
    way: str,
    outcome: str,
    special: str,
    answers: list[fakes.Scripted],
    ended: tuple[str, str],
    asked: list[str],
) -> None:
    models.script(*answers, model="first")
    run = rows.carried_out(rows.run(chain, input={"message": "hi"}, trigger_kind=way, key=f"{way}"))
    assert (run.status, run.reason) == ended, [run.reason_words, *(step.error for step in run.steps.all())]
    assert [body["model"] for body in models.asked] == asked
    assert {bool(body.get("stream")) for body in models.asked} == {way == "manual"}
    attempt = run.steps.filter(kind="model").first()
    assert attempt is not None and attempt.outcome == outcome
    assert any(outcome in words for words in run.warnings) == (outcome in {"auth", "bad-request"})
    valid(models.asked[-1]["messages"])
    if outcome == "truncated":
        assert [body["max_tokens"] for body in models.asked] == [4_096, 8_192]
        assert {step.state for step in run.steps.filter(kind="tool")} == {"refused"}
    if special == "unknown tool":
        assert "no tool" in models.asked[1]["messages"][-1]["content"]


def valid(messages: list[dict[str, Any]]) -> None:
    """Each call has exactly one reply, right behind the answer that made it, in order."""
    at = 0
    while at < len(messages):
        ids = [one["id"] for one in messages[at].get("tool_calls") or ()]
        replies = messages[at + 1 : at + 1 + len(ids)]
        assert [one.get("tool_call_id") for one in replies] == ids
        assert len(ids) == len(set(ids))
        assert all(
            isinstance(json.loads(one["function"]["arguments"]), dict) for one in messages[at].get("tool_calls") or ()
        )
        at += 1 + len(ids)
        assert at >= len(messages) or messages[at]["role"] != "tool"


ODD = [
    fakes.calls(("a", "tool_list", {}), ("a", "tool_list", {}), ("b", "nostr_post", {"content": "x"})),
    call("[]", name="tool_list"),
    call('{"a":NaN}', name="tool_list"),
    call("{}", name="", call_id=""),
    call('{"unknown":1}', name="tool_list"),
    fakes.calls(("a\x00b", "tool_list", "")),
    sse(
        piece(
            {
                "tool_calls": [
                    {"index": 5, "id": "z", "type": "function", "function": {"name": "tool_list", "arguments": ""}}
                ]
            }
        ),
        piece({}, "tool_calls"),
    ),
]


@pytest.mark.parametrize("answer", ODD, ids=range(len(ODD)))
def test_a_request_after_odd_calls_is_one_that_providers_take(
    chain: Agent, models: fakes.ModelServer, answer: fakes.Scripted
) -> None:
    models.script(answer, fakes.text("done"), model="first")
    run = rows.carried_out(rows.run(chain, input={"message": "hi"}))
    assert (run.status, run.output) == ("succeeded", "done"), run.reason_words
    valid(models.asked[-1]["messages"])
    calls = [one for said in models.asked[-1]["messages"] for one in said.get("tool_calls") or ()]
    assert run.steps.filter(kind="tool").count() == len(calls) > 0


# --- Secrets -----------------------------------------------------------------------

SPELLINGS = [KEY, KEY.replace("-", "%2D"), base64.b64encode(KEY.encode()).decode()]


@pytest.mark.parametrize("way", ["manual", "cron"])
@pytest.mark.parametrize("spelling", SPELLINGS, ids=["plain", "for an address", "base64"])
def test_a_key_in_an_error_is_nowhere_afterwards(
    chain: Agent, models: fakes.ModelServer, client: Client, caplog: pytest.LogCaptureFixture, spelling: str, way: str
) -> None:
    caplog.set_level(logging.DEBUG)
    said = f"Client error '404 Not Found' for url 'https://llm.example/v1/m:generate?key={spelling}'"
    inside = fakes.Scripted({"error": {"message": said, "code": 500, "metadata": {"raw": spelling}}})
    models.script(fakes.error(404, said), model="first")
    models.script(inside, model="second")
    run = rows.carried_out(rows.run(chain, input={"message": "hi"}, trigger_kind=way, key=way))
    assert run.steps.filter(state="failed").count() == 2
    client.force_login(chain.owner)
    shown = client.get(f"/runs/{run.pk}/").content.decode() + client.get(f"/api/v1/runs/{run.pk}").content.decode()
    kept = json.dumps(
        [list(model.objects.values()) for model in apps.get_app_config("agents").get_models()], default=str
    )
    for text in (shown, kept, caplog.text):
        assert spelling not in text and KEY not in text
    assert "404 Not Found" in kept and "404 Not Found" in shown.replace("&#x27;", "'")


# --- The page and the documentation ------------------------------------------------


def test_the_run_page_tells_each_attempt(chain: Agent, models: fakes.ModelServer, client: Client) -> None:
    models.script(AT_ONCE, fakes.error(503, "overloaded <b>"), model="first")
    models.script(fakes.text("Hello", model="second-2026"), model="second")
    run = rows.carried_out(rows.run(chain, input={"message": "hi"}))
    client.force_login(chain.owner)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    for told in ("openai/first", "openai/second", "second-2026", "rate-limited", "unavailable", "overloaded &lt;b&gt;"):
        assert told in page
    first, again, second = run.steps.filter(kind="model")
    assert [(one.name, one.outcome, one.state) for one in (first, again, second)] == [
        ("openai/first", "rate-limited", "failed"),
        ("openai/first", "unavailable", "failed"),
        ("openai/second", "text", "done"),
    ]
    assert (first.output["decision"], again.output["decision"]) == ("wait", "next")


def test_the_longest_wait_of_a_chain_ends_in_the_row(chain: Agent, models: fakes.ModelServer, client: Client) -> None:
    for model in ("first", "second"):
        models.script(replace(fakes.error(429, "slow down"), headers={"retry-after": "600"}), model=model)
    run = rows.carried_out(rows.run(chain, input={"message": "hi"}))
    assert (run.status, run.reason, run.lease_token) == ("waiting", "rate-limited", "")
    client.force_login(chain.owner)
    assert "the next attempt is in 600 s" in client.get(f"/runs/{run.pk}/").content.decode()
    assert Run.objects.get(pk=run.pk).waits == 1


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


def test_the_documentation_says_what_happens_next() -> None:
    assert {cells[0].strip("`"): cells[1] for cells in doc_rows("What happens next")} == NEXT
    assert {one[0] for one in STEPS} == set(NEXT) - {"not-configured"}
