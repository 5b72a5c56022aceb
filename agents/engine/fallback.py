"""Which model is tried next, and when: the chain, classes of errors, Retry-After."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

MAX_CANDIDATES = 20
SHORT_WAIT = 5.0  # seconds a worker may wait in place
DEFAULT_WAIT = 2.0
LONGEST_WAIT = 3_600.0
MAX_WAITS = 3  # times a run may go to `waiting`
CONTEXT = "context"
_DEFAULT_REF = "default"

# Words of providers for "the input does not fit"; their status is a plain 400, or even 200.
_TOO_LONG = re.compile(
    r"context.{0,3}(length|window|limit)|maximum context|too many (input )?tokens|input is too long|prompt is too long"
    r"|longer than the model|exceeds? (the )?(maximum|max|model).{0,20}(token|length|context)|exceed context",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content.?(filter|policy|management)|safety system|prohibited_content", re.IGNORECASE)
_RETRY_BODY = re.compile(r"retry.?delay\W{1,5}(\d{1,6}(?:\.\d{1,6})?)s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelError:
    """What went wrong with one attempt, without secrets."""

    status: int | None  # None: no answer at all
    message: str
    retry_after: float | None = None  # seconds, already read
    timed_out: bool = False
    not_configured: bool = False


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
    _open(chain or _DEFAULT_REF, {**aliases}, default, found, ())
    _open(default, {**aliases}, default, found, (_DEFAULT_REF,))
    return tuple(found)[:MAX_CANDIDATES]


def _open(chain: str, aliases: dict[str, str], default: str, found: dict[str, None], within: tuple[str, ...]) -> None:
    for ref in (part.strip() for part in chain.split(",")):
        if not ref or ref in within or len(within) > 10:
            continue
        if ref in aliases:
            _open(aliases[ref], aliases, default, found, (*within, ref))
        elif ref == _DEFAULT_REF:
            _open(default, aliases, default, found, (*within, ref))
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
    if _TOO_LONG.search(error.message):
        return CONTEXT
    if error.timed_out or error.status in {408, 504}:
        return "timeout"
    if error.status is None or error.status in {502, 503, 529}:
        return "unavailable"
    if error.status == 429:
        return "rate-limited"
    if error.status in {401, 403}:
        return "auth"
    if error.status >= 500:
        return "server"
    return "filtered" if _FILTERED.search(error.message) else "bad-request"


def decide(error: ModelError, *, last: bool, waited_here: bool, waits: int) -> Decision:
    """What follows an error. `last`: no model is left; `waited_here`: this model was already waited for."""
    kind = classify(error)
    if kind == "filtered":
        return Decision("stop")
    flag = kind in {"auth", "bad-request"}
    if kind == "rate-limited" and not waited_here:
        seconds = DEFAULT_WAIT if error.retry_after is None else error.retry_after
        if seconds <= SHORT_WAIT:
            return Decision("wait", seconds)
    if not last:
        return Decision("next", flag_owner=flag)
    if kind in {"rate-limited", "unavailable", "timeout", "server"} and waits < MAX_WAITS:
        # A minute, then five, then twenty: together well under an hour.
        seconds = error.retry_after or (60.0, 300.0, 1_200.0)[min(waits, 2)]
        if seconds <= LONGEST_WAIT / MAX_WAITS:
            return Decision("later", seconds)
    return Decision("stop", flag_owner=flag)


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
    return float(found[1]) if found else None
