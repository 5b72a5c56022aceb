"""The chain, classes of errors and what follows each."""

from datetime import UTC, datetime

import pytest

from agents.engine.fallback import Decision, ModelError, candidates, classify, decide, retry_after, unknown_refs

ALIASES = {"cheap": "openai/small", "smart": "anthropic/big, cheap", "loop": "loop, cheap", "a": "b", "b": "a"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ("x/1, cheap", ("x/1", "openai/small", "site/default")),
        ("smart", ("anthropic/big", "openai/small", "site/default")),
        ("loop", ("openai/small", "site/default")),
        ("a", ("site/default",)),
        ("default", ("site/default",)),
        ("", ("site/default",)),
        ("nonsense", ("site/default",)),
        ("x/1,x/1 , groq/openai/x", ("x/1", "groq/openai/x", "site/default")),
    ],
)
def test_a_chain_opens_aliases_cuts_cycles_and_ends_with_the_default(chain, expected):
    assert candidates(chain, ALIASES, "site/default") == expected


def test_a_default_may_itself_be_an_alias():
    assert candidates("x/1", ALIASES, "cheap") == ("x/1", "openai/small")


def test_unknown_names_are_told():
    assert unknown_refs("x/1, cheap, fast, default", ALIASES) == ("fast",)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            ModelError(400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
            "context",
        ),
        (ModelError(400, "input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000"), "context"),
        (ModelError(200, "This model's maximum context length is 8192 tokens"), "context"),
        (ModelError(400, "unknown field"), "bad-request"),
        (ModelError(422, "unprocessable"), "bad-request"),
        (ModelError(400, "blocked by content_filter"), "filtered"),
        (ModelError(401, "no"), "auth"),
        (ModelError(403, "no"), "auth"),
        (ModelError(404, "no such model"), "bad-request"),
        (ModelError(408, ""), "timeout"),
        (ModelError(None, "", timed_out=True), "timeout"),
        (ModelError(429, "slow down"), "rate-limited"),
        (ModelError(500, ""), "server"),
        (ModelError(502, ""), "unavailable"),
        (ModelError(503, ""), "unavailable"),
        (ModelError(529, "overloaded"), "unavailable"),
        (ModelError(None, "connection refused"), "unavailable"),
        (ModelError(None, "", not_configured=True), "not-configured"),
    ],
)
def test_errors_are_classed(error, kind):
    assert classify(error) == kind


def follows(error, last=False, waited=False, waits=0):
    return decide(error, last=last, waited_here=waited, waits=waits)


def test_a_short_wait_stays_with_the_model_and_a_long_one_does_not():
    assert follows(ModelError(429, "", 2)) == Decision("wait", 2)
    assert follows(ModelError(429, "", 900)) == Decision("next")
    assert follows(ModelError(429, "")) == Decision("wait", 2.0)
    assert follows(ModelError(429, "", 2), waited=True) == Decision("next")


def test_the_last_model_makes_the_run_wait_a_bounded_number_of_times():
    assert follows(ModelError(429, "", 52), last=True) == Decision("later", 52)
    assert follows(ModelError(503, ""), last=True, waits=1) == Decision("later", 300.0)
    assert follows(ModelError(503, ""), last=True, waits=3).action == "stop"


def test_mistakes_go_on_but_are_flagged_and_filters_stop():
    assert follows(ModelError(401, "")) == Decision("next", flag_owner=True)
    assert follows(ModelError(401, ""), last=True) == Decision("stop", flag_owner=True)
    assert follows(ModelError(400, "content_policy")) == Decision("stop")


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        ("2", "", 2.0),
        ("900", "", 900.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", "", 30.0),
        (None, '{"retryDelay":"52s"}', 52.0),
        ("-1", "", None),
        ("abc", "", None),
        (None, "", None),
    ],
)
def test_retry_after_is_read_in_every_form(header, body, seconds):
    assert retry_after(header, body, NOW) == seconds
