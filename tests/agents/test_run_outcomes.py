"""What a run does after each outcome over real HTTP, whole and streamed; and where no key is found afterwards."""

import base64
import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from agents.llm import attempts
from agents.models import Agent, Run
from tests import fakes
from tests.agents import rows
from tests.agents.failures import NEXT
from tests.agents.scripted import call, piece, sse
from tests.agents.test_answer_shapes import KEY, doc_rows

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:Pydantic serializer warnings",  # of shapes that openai's types do not foresee
)


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


def answer_whole(models: fakes.ModelServer, way: str) -> None:
    """As at a server that has refused to stream before."""
    if way == "whole":
        attempts._cannot_stream().add(models.url)


@pytest.mark.parametrize("way", ["streamed", "whole"])
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
    answer_whole(models, way)
    run = rows.carried_out(rows.run(chain, input={"message": "hi"}, trigger_kind="cron"))
    assert (run.status, run.reason) == ended, [run.reason_words, *(step.error for step in run.steps.all())]
    assert [body["model"] for body in models.asked] == asked
    assert {bool(body.get("stream")) for body in models.asked} == {way == "streamed"}
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
    call('{"x":1e400}', name="tool_list"),
    call('{"filter":{"kinds":[-1e400]}}', name="nostr_query"),
    call('{"x":' + "9" * 5_000 + "}", name="tool_list"),
    call('{"filter":{"kinds":[' + "9" * 300 + "]}}", name="nostr_query"),
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


@pytest.mark.parametrize(
    ("way", "given", "words"),
    [
        ("streamed", '{"x":1e400}', "hold 1e400, a number too large"),
        ("whole", '{"x":[-1e400]}', "hold -1e400, a number too large"),
        ("whole", {"x": float("inf")}, "hold Infinity, which is not JSON"),
        ("streamed", '{"x":' + "9" * 5_000 + "}", "a number of more than 400 digits"),
    ],
    ids=["1e400", "-1e400", "an object", "5,000 digits"],
)
def test_a_number_that_cannot_be_kept_is_refused_in_words_and_on_record(
    chain: Agent, models: fakes.ModelServer, way: str, given: Any, words: str
) -> None:
    models.script(call(given, name="tool_list"), fakes.text("done"), model="first")
    answer_whole(models, way)
    run = rows.carried_out(rows.run(chain, input={"message": "hi"}))
    assert (run.status, run.output) == ("succeeded", "done"), run.reason_words
    step = run.steps.get(kind="tool")
    assert step.state == "refused" and words in step.error and "sys." not in step.error
    assert words in models.asked[-1]["messages"][-1]["content"]


# --- Secrets -----------------------------------------------------------------------

SPELLINGS = [KEY, KEY.replace("-", "%2D"), base64.b64encode(KEY.encode()).decode()]


@pytest.mark.parametrize("way", ["streamed", "whole"])
@pytest.mark.parametrize("spelling", SPELLINGS, ids=["plain", "for an address", "base64"])
def test_a_key_in_an_error_is_nowhere_afterwards(
    chain: Agent, models: fakes.ModelServer, client: Client, caplog: pytest.LogCaptureFixture, spelling: str, way: str
) -> None:
    caplog.set_level(logging.DEBUG)
    said = f"Client error '404 Not Found' for url 'https://llm.example/v1/m:generate?key={spelling}'"
    wrong = {"error": {"message": said, "code": 500, "metadata": {"raw": spelling}}}
    inside = sse(wrong) if way == "streamed" else fakes.Scripted(wrong)
    models.script(fakes.error(404, said), model="first")
    models.script(inside, model="second")
    answer_whole(models, way)
    run = rows.carried_out(rows.run(chain, input={"message": "hi"}))
    assert run.steps.filter(state="failed").count() == 2
    client.force_login(chain.owner)
    shown = client.get(f"/runs/{run.pk}/").content.decode() + client.get(f"/api/v1/runs/{run.pk}").content.decode()
    kept = json.dumps(
        [list(model.objects.values()) for model in apps.get_app_config("agents").get_models()], default=str
    )
    for text in (shown, kept, caplog.text):
        assert spelling not in text and KEY not in text
    assert run.steps.filter(error__contains="The answer held an error").count() == 1
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


def test_the_documentation_says_what_happens_next() -> None:
    assert {cells[0].strip("`"): cells[1] for cells in doc_rows("What happens next")} == NEXT
    assert {one[0] for one in STEPS} == set(NEXT) - {"not-configured"}
