"""The chain, classes of errors and what follows each."""

from datetime import UTC, datetime

import pytest

from agents.engine.fallback import (
    Decision,
    ModelError,
    at_end,
    candidates,
    classify,
    decide,
    retry_after,
    unknown_refs,
)

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
        (ModelError(413, "Request too large"), "context"),
        (ModelError(200, "Rate limit exceeded"), "rate-limited"),
        (ModelError(200, "blocked by content_filter"), "filtered"),
        (ModelError(200, "Overloaded"), "unavailable"),
        (ModelError(200, "insufficient_quota"), "auth"),
        (ModelError(200, "oops"), "server"),
        (ModelError(400, "unknown field"), "bad-request"),
        (ModelError(422, "unprocessable"), "bad-request"),
        (ModelError(400, "blocked by content_filter"), "filtered"),
        (ModelError(401, "no"), "auth"),
        (ModelError(403, "no"), "auth"),
        (ModelError(404, "no such model"), "bad-request"),
        (ModelError(408, ""), "timeout"),
        (ModelError(None, "", timed_out=True), "timeout"),
        (ModelError(402, "Insufficient Balance"), "auth"),
        (ModelError(429, "You exceeded your current quota"), "auth"),
        (ModelError(429, "slow down"), "rate-limited"),
        (ModelError(429, "Too many tokens, please wait before trying again."), "rate-limited"),
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


def test_a_short_wait_stays_with_the_model_and_a_long_one_does_not():
    assert decide(ModelError(429, "", 2), waited_here=False) == Decision("wait", 2)
    assert decide(ModelError(429, "", 900), waited_here=False) == Decision("next")
    assert decide(ModelError(429, "", 2), waited_here=True) == Decision("next")


def test_a_wait_nobody_gave_a_number_for_is_spread():
    assert decide(ModelError(429, ""), waited_here=False) == Decision("wait", 2.0)
    assert decide(ModelError(429, ""), waited_here=False, jitter=0.5) == Decision("wait", 3.0)
    assert at_end([ModelError(503, "")], waits=0, jitter=1.0).seconds == 66.0


def test_at_the_end_of_the_chain_the_run_waits_a_bounded_number_of_times():
    assert at_end([ModelError(429, "", 52)], waits=0) == Decision("later", 52)
    assert [at_end([ModelError(503, "")], waits=n).seconds for n in range(3)] == [60.0, 300.0, 1_200.0]
    assert at_end([ModelError(503, "")], waits=3) == Decision("stop")
    assert at_end([ModelError(429, "", 5_000)], waits=0) == Decision("stop")


def test_one_model_that_may_recover_is_enough_to_wait_for():
    unset = ModelError(None, "", not_configured=True)
    assert at_end([ModelError(429, "", 600), ModelError(401, "no"), unset], waits=0) == Decision("later", 600)
    assert at_end([ModelError(429, "", 600), ModelError(503, "")], waits=0) == Decision("later", 60.0)
    assert at_end([ModelError(401, "no"), unset], waits=0) == Decision("stop")
    assert at_end([], waits=0) == Decision("stop")


def test_mistakes_go_on_but_are_flagged_and_filters_stop():
    assert decide(ModelError(401, ""), waited_here=False) == Decision("next", flag_owner=True)
    assert decide(ModelError(400, "what?"), waited_here=False) == Decision("next", flag_owner=True)
    assert decide(ModelError(400, "content_policy"), waited_here=False) == Decision("stop")


def test_aliases_that_point_at_each_other_many_times_are_opened_once():
    aliases = {f"a{n}": ",".join([f"a{n + 1}"] * 50) for n in range(150)} | {"a150": "x/1"}
    assert candidates("a0", aliases, "site/default") == ("x/1", "site/default")
    endless = {f"a{n}": f"a{n + 1}" for n in range(5_000)}
    assert candidates("a0", endless, "site/default") == ("site/default",)


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        ("2", "", 2.0),
        ("900", "", 900.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", "", 30.0),
        (None, '{"retryDelay":"52s"}', 52.0),
        (None, "Rate limit reached. Please try again in 1.5s. Visit ...", 1.5),
        (None, "Please try again in 6m0s.", 360.0),
        (None, "Please try again in 450ms.", 0.45),
        (None, '{"retry_after": 7}', 7.0),
        ("Thu, 01 Jan 2025 00:00:30 GMT", "", 0.0),
        ("0", "", 0.0),
        ("-1", "", None),
        ("abc", "", None),
        (None, "", None),
    ],
)
def test_retry_after_is_read_in_every_form(header, body, seconds):
    assert retry_after(header, body, NOW) == seconds
