"""Ways an attempt at a model fails, with the class of each, and what a run does after every outcome."""

from dataclasses import dataclass, replace

from tests.agents.scripted import call, end, piece, sse
from tests.fakes import Scripted, broken_off, error, text

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


@dataclass(frozen=True)
class Failure:
    """One way an attempt fails: its class, and whether it may have cost something."""

    name: str
    answer: Scripted
    becomes: str
    maybe_spent: bool = False
    only: str = ""  # whole, streamed


FAILURES = [
    Failure(
        "400 about the context",
        error(400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
        "context",
    ),
    Failure(
        "400 about input and max_tokens",
        error(400, "input length and `max_tokens` exceed context limit: 179413 + 32768 > 200000"),
        "context",
    ),
    Failure("400 prompt is too long", error(400, "prompt is too long: 210000 tokens > 200000 maximum"), "context"),
    Failure("413 request too large", error(413, "Request too large"), "context"),
    Failure("400", error(400, "unknown field"), "bad-request"),
    Failure("404", error(404, "no such model"), "bad-request"),
    Failure("409", error(409, "conflict"), "bad-request"),
    Failure("422", error(422, "unprocessable"), "bad-request"),
    Failure("401", error(401, "wrong key"), "auth"),
    Failure("402 without credit", error(402, "Insufficient Balance"), "auth"),
    Failure("403", error(403, "not for you"), "auth"),
    Failure("429 without credit", error(429, "You exceeded your current quota, please check your plan"), "auth"),
    Failure("429", error(429, "slow down"), "rate-limited"),
    Failure(
        "429 about tokens a minute", error(429, "Too many tokens, please wait before trying again."), "rate-limited"
    ),
    Failure(
        "400 of a content filter",
        Scripted({"error": {"message": "The response was filtered", "code": "content_filter"}}, 400),
        "filtered",
    ),
    Failure(
        "400 of a safety system", error(400, "Your request was rejected as a result of our safety system."), "filtered"
    ),
    Failure(
        "400 content policy",
        Scripted({"error": {"message": "no", "code": "content_policy_violation"}}, 400),
        "filtered",
    ),
    Failure("408", error(408, "too slow"), "timeout"),
    Failure("504", error(504, "gateway time-out"), "timeout"),
    Failure("500", error(500, "oops"), "server"),
    Failure("500 with an empty body", Scripted("", 500), "server"),
    Failure(
        "502 with a page of HTML",
        Scripted("<html><h1>Bad gateway</h1></html>", 502, {"content-type": "text/html"}),
        "unavailable",
    ),
    Failure("503", error(503, "overloaded"), "unavailable"),
    Failure("529", error(529, "overloaded"), "unavailable"),
    Failure("an error that is only a text", Scripted({"error": "model is loading"}, 503), "unavailable"),
    Failure("an error under “detail”", Scripted({"detail": "Not Found"}, 404), "bad-request"),
    Failure(
        "200 with an error about the context",
        Scripted({"error": {"message": "This model's maximum context length is 8192 tokens", "code": 400}}),
        "context",
        only="whole",
    ),
    Failure(
        "200 with an error of a limit",
        Scripted({"error": {"message": "Rate limit exceeded", "code": 429}}),
        "rate-limited",
        only="whole",
    ),
    Failure(
        "200 with an overloaded provider behind",
        Scripted({"error": {"message": "Provider returned error", "code": 502}}),
        "unavailable",
        only="whole",
    ),
    Failure("200 with an error that is a text", Scripted({"error": "oops"}), "server", only="whole"),
    Failure(
        "200 with a page of HTML",
        Scripted("<html>sign in</html>", headers={"content-type": "text/html"}),
        "unavailable",
        maybe_spent=True,
    ),
    Failure("200 with nothing", Scripted(""), "unavailable", maybe_spent=True),
    Failure("200 with half a body", broken_off(), "unavailable", maybe_spent=True, only="whole"),
    Failure(
        "an error about the context inside a stream",
        replace(text("so"), fails_with={"error": {"message": "maximum context length is 8192"}}),
        "context",
        maybe_spent=True,
        only="streamed",
    ),
    Failure(
        "an error of a limit inside a stream",
        replace(text("so"), fails_with={"error": {"message": "Rate limit exceeded", "code": 429}}),
        "rate-limited",
        maybe_spent=True,
        only="streamed",
    ),
    Failure(
        "an error before any piece of a stream",
        sse({"error": {"message": "Overloaded", "code": 529}}),
        "unavailable",
        only="streamed",
    ),
    Failure("a stream that is cut in the middle", broken_off(), "unavailable", maybe_spent=True, only="streamed"),
    Failure(
        "a stream that never says how it ended",
        sse(piece({"content": "Hel"})),
        "unavailable",
        maybe_spent=True,
        only="streamed",
    ),
    Failure(
        "a stream of empty choices",
        sse({**end(), "choices": []}),
        "unavailable",
        maybe_spent=True,
        only="streamed",
    ),
    Failure(
        "a stream that is cut before its first piece", broken_off(0), "unavailable", maybe_spent=True, only="streamed"
    ),
    Failure(
        "a stream that is cut inside a call",
        replace(call('{"content":"Hello world, how are you"}'), cut_after=2),
        "unavailable",
        maybe_spent=True,
        only="streamed",
    ),
    Failure(
        "a stream with a piece that is no JSON",
        sse(piece({"content": "Hel"}), "{broken", end()),
        "unavailable",
        maybe_spent=True,
        only="streamed",
    ),
]
