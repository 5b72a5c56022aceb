"""Which model is tried next, and when: the chain, classes of errors, Retry-After.

candidates(chain, aliases, default)  -> the models to try, in order
classify(error)                      -> its class, one word
decide(error, ...)                   -> what follows one failed attempt: wait, next or stop
at_end(errors, ...)                  -> what follows when no model is left: later or stop
room(tokens, wanted, ...)            -> tokens that an answer may have; None where the request does not fit
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

MAX_CANDIDATES = 20
MAX_ALIASES = 200  # opened for one chain
SHORT_WAIT = 5.0  # seconds a worker may wait in place
DEFAULT_WAIT = 2.0  # seconds, where a provider asks for patience without saying how long
PAUSES = (60.0, 300.0, 1_200.0)  # seconds in the row, each time longer: together under half an hour
LONGEST_PAUSE = 1_200.0  # seconds; three of them make the hour that a run may wait in all
MAX_WAITS = 3  # times a run may go to `waiting`
PASSING = frozenset({"rate-limited", "unavailable", "timeout", "server"})  # may be gone in a minute
MISTAKES = frozenset({"auth", "bad-request"})  # the owner has to look
LEAST_OUTPUT = 256  # tokens that an answer is left, however full the window is
_DEFAULT_REF = "default"

# Words of providers for "the input does not fit"; their status is a plain 400, or even 200 or 500.
_TOO_LONG = re.compile(
    r"context.{0,3}(length|window|limit)|maximum context|too many (input )?tokens|input is too long|prompt is too long"
    r"|longer than the model|exceeds? (the )?(maximum|max|model).{0,20}(token|length|context)|exceed context",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content.?(filter|policy|management)|safety system|prohibited_content", re.IGNORECASE)
_NO_CREDIT = re.compile(r"insufficient.{0,3}(quota|balance|credit|funds)|exceeded your current quota", re.IGNORECASE)
_LIMITED = re.compile(r"rate.?limit|too many requests", re.IGNORECASE)
_RETRY_BODY = re.compile(
    r"(?:retry.?delay|retry.?after|try again in|retry in)\W{1,5}"
    r"(?:(\d{1,4})m(?!s))?(?:(\d{1,6}(?:\.\d{1,9})?)(ms|s|\W|$))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ModelError:
    """What went wrong with one attempt, without secrets."""

    status: int | None  # of HTTP; None: no answer at all; 200: an error in the body of an answer
    message: str
    retry_after: float | None = None  # seconds, already read
    timed_out: bool = False
    not_configured: bool = False
    maybe_spent: bool = False  # the request left and no answer to it came whole: it may have been carried out


@dataclass(frozen=True, slots=True)
class Decision:
    """next: another model; wait: the same after `seconds`; later: the run waits in its row; stop: give up."""

    action: str
    seconds: float = 0.0
    flag_owner: bool = False


def candidates(chain: str, aliases: Mapping[str, str], default: str) -> tuple[str, ...]:
    """The models to try in order, each once: aliases opened, cycles cut, the default last of all.

    `chain` is `ref ("," ref)*`; a ref is `provider/model`, an alias, or `default`.
    """
    found: dict[str, None] = {}
    opened: set[str] = set()  # each alias once: a cycle ends here, and nothing is opened again and again
    _open(chain or _DEFAULT_REF, aliases, default, found, opened)
    _open(default, aliases, default, found, opened)
    return tuple(found)[:MAX_CANDIDATES]


def _open(chain: str, aliases: Mapping[str, str], default: str, found: dict[str, None], opened: set[str]) -> None:
    for ref in (part.strip() for part in chain.split(",")):
        if ref in aliases or ref == _DEFAULT_REF:
            if ref in opened or len(opened) > MAX_ALIASES:
                continue
            opened.add(ref)
            _open(aliases.get(ref, default), aliases, default, found, opened)
        elif "/" in ref:
            found.setdefault(ref)


def unknown_refs(chain: str, aliases: Mapping[str, str]) -> tuple[str, ...]:
    """Names in a chain that are neither a model nor an alias here: skipped, and said so."""
    refs = [part.strip() for part in chain.split(",") if part.strip()]
    return tuple(ref for ref in refs if "/" not in ref and ref not in aliases and ref != _DEFAULT_REF)


def classify(error: ModelError) -> str:
    """unavailable, rate-limited, timeout, server, not-configured, context, filtered, auth, bad-request."""
    if error.not_configured:
        return "not-configured"
    if error.status in {401, 402, 403} or (error.status == 429 and _NO_CREDIT.search(error.message)):
        return "auth"
    if error.status == 429:  # before the words: "too many tokens per minute" is not about the window
        return "rate-limited"
    if error.status == 413 or _TOO_LONG.search(error.message):
        return "context"
    if error.status == 200:
        return _inside(error.message)
    if error.timed_out or error.status in {408, 504}:
        return "timeout"
    if error.status is None or error.status in {502, 503, 529}:
        return "unavailable"
    if error.status >= 500:
        return "server"
    return "filtered" if _FILTERED.search(error.message) else "bad-request"


def _inside(words: str) -> str:
    """An error in an answer that claims success, and has no code of HTTP."""
    for pattern, kind in ((_NO_CREDIT, "auth"), (_LIMITED, "rate-limited"), (_FILTERED, "filtered")):
        if pattern.search(words):
            return kind
    return "unavailable" if "overloaded" in words.lower() else "server"


def decide(error: ModelError, *, waited_here: bool, jitter: float = 0.0) -> Decision:
    """What follows one failed attempt: wait, next or stop.

    `waited_here`: this model was already waited for once. `jitter` in 0..1 spreads waits nobody asked for by number,
    so that many runs do not come back at one moment.
    """
    kind = classify(error)
    if kind == "filtered":
        return Decision("stop")
    if kind == "rate-limited" and not waited_here:
        seconds = DEFAULT_WAIT * (1 + jitter) if error.retry_after is None else error.retry_after
        if seconds <= SHORT_WAIT:
            return Decision("wait", seconds)
    return Decision("next", flag_owner=kind in MISTAKES)


def at_end(errors: Iterable[ModelError], *, waits: int, jitter: float = 0.0) -> Decision:
    """What follows when no model is left: later, as soon as one of those that may recover is ready again, or stop.

    `waits`: how often the run has waited in its row already.
    """
    pause = PAUSES[min(waits, len(PAUSES) - 1)] * (1 + jitter / 10)
    ready = [error.retry_after or pause for error in errors if classify(error) in PASSING]
    if waits >= MAX_WAITS or not ready or min(ready) > max(LONGEST_PAUSE, pause):
        return Decision("stop")
    return Decision("later", min(ready))


def room(tokens: int, wanted: int, window: int | None, most_output: int | None) -> int | None:
    """Tokens that the answer to a request of `tokens` may have; None where the request does not fit the window."""
    if window is not None:
        if tokens > window:
            return None
        # Many providers count the answer's limit towards the window.
        wanted = min(wanted, max(window - tokens, LEAST_OUTPUT))
    return min(wanted, most_output or wanted)


def retry_after(header: str | None, body: str, now: datetime) -> float | None:
    """Seconds to wait from the header (seconds or date) or the body; None where nothing usable is said."""
    if header:
        text = header.strip()
        if re.fullmatch(r"\d{1,9}(\.\d+)?", text):
            return float(text)
        try:
            return max(0.0, (parsedate_to_datetime(text) - now).total_seconds())
        except (ValueError, TypeError):
            pass
    found = _RETRY_BODY.search(body[:20_000])
    if found is None or not (found[1] or found[2]):
        return None
    seconds = float(found[2] or 0) / (1_000 if (found[3] or "").lower() == "ms" else 1)
    return 60.0 * int(found[1] or 0) + seconds
