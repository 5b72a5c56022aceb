"""The door to models, over real HTTP through litellm: every way an attempt can go, whole and streamed."""

import json
import socket
import threading
from base64 import b64encode
from dataclasses import replace

import pytest

from agents import llm
from agents.engine import fallback, outcomes
from tests import fakes

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
KEY = "site-key-CANARY-1234"
ASK = llm.Request([{"role": "user", "content": "hi"}], max_tokens=50)


@pytest.fixture
def models(settings):
    settings.LLM_TIMEOUT = 5
    with fakes.ModelServer() as server:
        yield server


@pytest.fixture(params=["whole", "streamed"])
def ask(request, models):
    """Asks the scripted server, in both ways."""

    def asked(*answers, url="", model="openai/gpt-4o-mini", what=ASK):
        models.script(*answers)
        heard = [] if request.param == "streamed" else None
        listen = None if heard is None else heard.append
        answer = llm.complete(llm.Endpoint(model, url or models.url, KEY), what, listen)
        assert heard is None or not heard or heard[-1] == outcomes.read(answer.response).text
        return answer

    return asked


def failure(ask, *answers, **how):
    with pytest.raises(llm.ModelFailed) as raised:
        ask(*answers, **how)
    return raised.value.error


def test_a_text_comes_with_who_served_it_and_what_was_used(ask, models):
    answer = ask(fakes.text("Hello, world", prompt_tokens=7))
    assert outcomes.read(answer.response).text == "Hello, world"
    assert answer.served == fakes.MODEL
    assert (answer.usage["prompt_tokens"], answer.usage["completion_tokens"]) == (7, 20)
    assert models.keys == [f"Bearer {KEY}"]
    assert models.asked[0]["max_tokens"] == 50


def test_tool_calls_come_whole_and_in_order(ask):
    answer = ask(fakes.calls(("a", "first", {"x": [1, 2]}), ("b", "second", "")))
    first, second = outcomes.read(answer.response).calls
    assert (first.id, first.name, first.arguments) == ("a", "first", {"x": [1, 2]})
    assert (second.id, second.name, second.arguments) == ("b", "second", {})


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (fakes.text(""), "empty"),
        (fakes.text(None), "empty"),
        (fakes.message({"role": "assistant", "content": None}), "empty"),
        (fakes.message(None, "content_filter: PROHIBITED_CONTENT"), "filtered"),
        (fakes.text("so far", "content_filter"), "filtered"),
        (fakes.text("half a sen", "length"), "truncated"),
        (fakes.calls(("a", "f", '{"content":"Hello wor'), finish="length"), "truncated"),
        (fakes.calls(("a", "f", '{"content":"Hello wor')), "truncated"),
        (fakes.calls(("a", "f", '{"a":1}'), completion_tokens=50), "truncated"),
        (fakes.calls(("a", "f", '{"pubkey":"ab"}'), finish="length"), "truncated"),
        (fakes.calls(("a", "f", "[]")), "calls"),
        (fakes.calls(("a", "f", None)), "calls"),
    ],
)
def test_an_answer_of_any_shape_has_a_defined_outcome(ask, answer, kind):
    assert outcomes.read(ask(answer).response, ASK.max_tokens).kind == kind


def test_choices_that_are_missing_are_no_success(models):
    models.script(fakes.Scripted({"model": "m", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}))
    answer = llm.complete(llm.Endpoint("openai/gpt-4o-mini", models.url, KEY), ASK)
    assert outcomes.read(answer.response).kind == "empty"
    assert answer.usage["prompt_tokens"] == 3


@pytest.mark.parametrize("usage", [{"counted": False}, {}])
def test_a_stream_without_usage_has_none(models, usage):
    models.script(replace(fakes.text("hello"), **usage))
    answer = llm.complete(llm.Endpoint("openai/gpt-4o-mini", models.url, KEY), ASK, lambda text: None)
    assert (answer.usage is None) == bool(usage)


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens).", "context"),
        (400, "input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000", "context"),
        (400, "unknown field", "bad-request"),
        (401, "wrong key", "auth"),
        (402, "Insufficient Balance", "auth"),
        (403, "not for you", "auth"),
        (404, "no such model", "bad-request"),
        (408, "too slow", "timeout"),
        (409, "conflict", "bad-request"),
        (413, "too large", "context"),
        (422, "unprocessable", "bad-request"),
        (429, "slow down", "rate-limited"),
        (500, "oops", "server"),
        (502, "bad gateway", "unavailable"),
        (503, "overloaded", "unavailable"),
        (504, "gateway time-out", "timeout"),
        (529, "overloaded", "unavailable"),
    ],
)
def test_an_error_keeps_its_class_and_costs_nothing(ask, models, status, words, kind):
    error = failure(ask, fakes.error(status, words))
    assert fallback.classify(error) == kind
    assert words in error.message
    assert not error.maybe_spent
    assert len(models.asked) == 1  # one attempt is one request


def test_an_error_inside_a_stream_keeps_its_words(models):
    models.script(replace(fakes.text("so"), fails_with={"error": {"message": "maximum context length is 8192"}}))
    endpoint = llm.Endpoint("openai/gpt-4o-mini", models.url, KEY)
    with pytest.raises(llm.ModelFailed) as raised:
        llm.complete(endpoint, ASK, lambda text: None)
    assert fallback.classify(raised.value.error) == "context"


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [({"Retry_After": "2"}, "", 2.0), ({}, '"retryDelay":"52s"', 52.0), ({"Retry_After": "abc"}, "", None)],
)
def test_how_long_to_wait_is_read_from_header_or_body(ask, headers, body, seconds):
    assert failure(ask, fakes.error(429, f"slow down {body}", **headers)).retry_after == seconds


def test_a_server_that_is_not_there_was_never_asked(ask):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = failure(ask, url=f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
    assert fallback.classify(error) == "unavailable"
    assert not error.maybe_spent


@pytest.mark.parametrize("answer", [fakes.broken_off(), fakes.Scripted("<html>broken"), fakes.Scripted("")])
def test_an_answer_that_breaks_off_may_have_cost_something(ask, answer):
    error = failure(ask, answer)
    assert error.maybe_spent
    assert fallback.classify(error) in fallback.PASSING


def test_a_time_out_may_have_cost_something(ask, settings):
    settings.LLM_TIMEOUT = 1
    error = failure(ask, replace(fakes.text("late"), delay=2))
    assert (fallback.classify(error), error.maybe_spent) == ("timeout", True)


def test_a_silence_in_the_middle_of_a_stream_is_a_time_out(models, settings):
    settings.LLM_TIMEOUT = 1
    models.script(replace(fakes.text("a text with a long pause in it"), pause=2))
    with pytest.raises(llm.ModelFailed) as raised:
        llm.complete(llm.Endpoint("openai/gpt-4o-mini", models.url, KEY), ASK, lambda text: None)
    error = raised.value.error
    assert (fallback.classify(error), error.maybe_spent) == ("timeout", True)


def test_a_server_that_cannot_stream_is_asked_for_the_whole(models):
    models.script(fakes.error(400, "unknown parameter: stream_options"), fakes.text("whole"), fakes.text("again"))
    endpoint = llm.Endpoint("openai/gpt-4o-mini", models.url, KEY)
    for expected in ("whole", "again"):
        assert outcomes.read(llm.complete(endpoint, ASK, lambda text: None).response).text == expected
    assert [bool(body.get("stream")) for body in models.asked] == [True, False, False]


def test_text_is_heard_as_it_comes(models):
    models.script(replace(fakes.text("one two three four"), pieces=4))
    heard = []
    llm.complete(llm.Endpoint("openai/gpt-4o-mini", models.url, KEY), ASK, heard.append)
    assert heard == ["one t", "one two th", "one two three f", "one two three four"]


@pytest.mark.parametrize("spelling", [KEY, KEY.replace("-", "%2D"), b64encode(KEY.encode()).decode()])
def test_a_key_is_in_no_error_and_hangs_on_to_none(ask, spelling):
    words = f"Client error '404 Not Found' for url 'https://llm.example/v1/m:generate?key={spelling}&y={spelling}'"
    with pytest.raises(llm.ModelFailed) as raised:
        ask(fakes.error(404, words))
    shown = json.dumps([str(raised.value), repr(raised.value.error), repr(llm.Endpoint("a/b", "", KEY))])
    assert "404" in shown
    assert spelling not in shown
    assert raised.value.__context__ is None
    assert raised.value.__cause__ is None


def test_a_key_of_the_environment_is_in_no_error(ask, monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "plain-words-as-a-key")
    error = failure(ask, fakes.error(400, "you sent plain-words-as-a-key, which is wrong"))
    assert "plain-words" not in error.message


def test_a_model_without_a_key_is_not_configured(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(llm.ModelFailed) as raised:
        llm.complete(llm.Endpoint("anthropic/claude-sonnet-4-5"), ASK)
    assert fallback.classify(raised.value.error) == "not-configured"


@pytest.mark.parametrize("model", ["nobody/knows", "acme/unknown-1"])
def test_a_provider_nobody_knows_is_not_configured(model):
    with pytest.raises(llm.ModelFailed) as raised:
        llm.complete(llm.Endpoint(model), ASK)
    assert fallback.classify(raised.value.error) == "not-configured"


def test_an_address_from_a_form_reaches_only_what_is_allowed(models, settings):
    mine = llm.Endpoint("openai/x", models.url, KEY, trusted=False)
    with pytest.raises(llm.ModelFailed) as raised:
        llm.complete(mine, ASK)
    assert fallback.classify(raised.value.error) == "not-configured"
    assert models.asked == []
    settings.ALLOW_ADDRESSES = ["127.0.0.1"]
    assert outcomes.read(llm.complete(mine, ASK).response).text == "It is done."


def test_a_redirect_of_an_address_from_a_form_is_not_followed(models, settings):
    settings.ALLOW_ADDRESSES = ["127.0.0.1"]
    with fakes.ModelServer() as inner:
        models.script(fakes.Scripted("", 307, {"location": f"{inner.url}/chat/completions"}))
        with pytest.raises(llm.ModelFailed):
            llm.complete(llm.Endpoint("openai/x", models.url, KEY, trusted=False), ASK)
        assert inner.asked == []


def test_threads_ask_side_by_side(models):
    models.script(*[replace(fakes.text(str(n)), delay=0.05) for n in range(8)])
    endpoint, said = llm.Endpoint("openai/gpt-4o-mini", models.url, KEY), []
    threads = [
        threading.Thread(target=lambda: said.append(outcomes.read(llm.complete(endpoint, ASK).response).text))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(said) == [str(n) for n in range(8)]


def test_the_echo_says_that_it_is_no_model_and_is_the_same_every_time():
    first, second = (llm.complete(llm.Endpoint("offline/echo"), ASK) for _ in range(2))
    assert first == second
    text = outcomes.read(first.response).text
    assert "not a language model" in text
    assert text.endswith("hi")
