"""What litellm raises becomes the engine's error: classified by what happened, and without secrets.

ModelFailed    one attempt failed; `.error` is the engine's ModelError
"""

import ast
import base64
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.conf import settings

from agents.engine.fallback import ModelError, retry_after
from marketplace import addresses

LONGEST_MESSAGE = 1_000
# Keys of providers inside error texts: in addresses, headers and by their usual shapes.
_SECRETS = re.compile(
    r"(?i)((?:api[-_]?key|key|token|authorization|secret)[\"']?\s*[=:]\s*[\"']?(?:bearer\s+)?)[^\s\"'&,;)}\]]+"
    r"|(bearer\s+)[\w.~+/=-]+|\b(sk-|xai-|gsk_|AIza)[\w-]{6,}"
)
_ENDINGS = ("_API_KEY", "_SECRET_KEY", "_ACCESS_KEY", "_TOKEN")  # of variables in which providers' keys stand
SHORTEST_KEY = 8  # characters; what is shorter would blank ordinary words
_UNKNOWN_PROVIDER = "LLM Provider NOT provided"  # how litellm says it, whatever the error's class
_NO_CHOICES = "LiteLLM: provider returned "  # … a response with no 'choices', or such as are no list
_RAW = re.compile(r"'response_object': (\{.*?\}), 'model_response_object'", re.DOTALL)
# By name: some doors of litellm go through httpx, others through httpx2, and both have them.
_TIMED_OUT = frozenset({"Timeout", "APITimeoutError"})  # of litellm, and of openai where a stream falls silent
_NEVER_LEFT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})


class ModelFailed(Exception):
    """The attempt failed."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(error.message)
        self.error = error


def read(error: Exception, key: str, began: bool = False) -> ModelError:
    """The engine's view of it. `began`: part of an answer had already come."""
    causes = list(_causes(error))
    if any(isinstance(cause, addresses.NotAllowed) for cause in causes):
        words = "Its address is neither public nor allowed here (JOURNEYMAN_ALLOW_ADDRESSES)."
        return ModelError(None, words, not_configured=True)
    if _UNKNOWN_PROVIDER in str(error):
        return ModelError(None, "No provider of that name is known here.", not_configured=True)
    told = next((told for cause in causes if (told := _inside(cause)) is not None), None)
    if told is not None:
        return inside(told, key, began)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    status = _status(error, causes)
    never_left = any(type(cause).__name__ in _NEVER_LEFT for cause in causes) and not began
    timed_out = type(error).__name__ in _TIMED_OUT and not headers
    # Without headers the status is litellm's own invention for "no answer", except for mistakes it found itself.
    whole = bool(headers) or (status is not None and 400 <= status < 500 and not timed_out)
    if not whole and not timed_out:
        status = None
    words = str(error).partition("Traceback")[0].rstrip()
    # What kind of mistake it was may stand in a code alone.
    words += "".join(f" [{code}]" for code in _codes(causes) if code.lower() not in words.lower())
    message = f"{type(error).__name__}: {scrub(words, key)}"
    return ModelError(
        status=status,
        message=message[:LONGEST_MESSAGE],
        retry_after=retry_after(_asked(headers), str(error), datetime.now(UTC)),
        timed_out=timed_out,
        maybe_spent=began or not (whole or never_left),
    )


def inside(told: Any, key: str, began: bool = False) -> ModelError:
    """An error in the body of an answer that claims success; its code, where it is one of HTTP, is the status."""
    row = told if isinstance(told, dict) else {"message": told}
    code = str(row.get("code") or row.get("status") or "")
    status = int(code) if code.isascii() and code.isdigit() and 400 <= int(code[:4]) < 600 else 200
    words = " ".join(str(row[name]) for name in ("message", "type") if row.get(name)) or str(told)
    words += f" [{code}]" if code and code.lower() not in words.lower() else ""
    wait = retry_after(None, str(told), datetime.now(UTC))
    message = f"The answer held an error: {scrub(words, key)}"[:LONGEST_MESSAGE]
    return ModelError(status, message, wait, maybe_spent=began)


def _inside(cause: BaseException) -> Any:
    """What the body said, where it came with status 200: litellm raises a bare Exception, openai an APIError."""
    if type(cause) is Exception and hasattr(cause, "status_code"):
        code = cause.status_code
        # 422 is what litellm puts where there is no code.
        return {"message": getattr(cause, "message", ""), "code": "" if code == 422 else code}
    if type(cause).__name__ == "APIError" and type(cause).__module__ == "openai":
        return getattr(cause, "body", None) or {"message": str(cause)}
    return None


def _status(error: Exception, causes: list[BaseException]) -> int | None:
    """As it came over HTTP; litellm calls a request that is too large (413) one too many (429)."""
    for cause in causes:
        if type(cause).__module__.partition(".")[0] in {"openai", "httpx"}:
            status = getattr(getattr(cause, "response", None), "status_code", None)
            if isinstance(status, int):
                return status
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _codes(causes: list[BaseException]) -> list[str]:
    """Words that providers put beside the message: `content_filter`, `context_length_exceeded`."""
    bodies = [body for cause in causes if isinstance(body := getattr(cause, "body", None), dict)]
    found = [body.get(name) for body in bodies for name in ("code", "type")]
    return list(dict.fromkeys(code for code in found if isinstance(code, str) and code))


def _asked(headers: Any) -> str | None:
    """How long a provider asks for patience: in seconds or as a date, or in OpenAI's own header in milliseconds."""
    milliseconds = str(headers.get("retry-after-ms") or "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", milliseconds):
        return str(float(milliseconds) / 1_000)
    found = headers.get("retry-after")
    return None if found is None else str(found)


def recovered(error: Exception) -> dict[str, Any] | None:
    """The completion that did come, where litellm could not read its shape: a null message, for one."""
    if _NO_CHOICES in str(error):
        return {"choices": []}
    found = _RAW.search(str(error)) if "Invalid response object" in str(error) else None
    try:
        raw = ast.literal_eval(found[1]) if found else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return raw if isinstance(raw, dict) and "choices" in raw else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def scrub(text: str, key: str = "") -> str:
    """The text without any key in any of its spellings, and without what looks like one."""
    for secret in {key, settings.LLM_API_KEY, *_environment()}:
        if len(secret) >= SHORTEST_KEY:
            text = _spellings(secret).sub("[key]", text)
    return _SECRETS.sub(lambda match: f"{match[1] or match[2] or ''}[key]", text)


@lru_cache(maxsize=64)
def _spellings(secret: str) -> re.Pattern[str]:
    """As it is, with any of its characters escaped for an address, and in base64."""
    escaped = "".join(f"(?:{re.escape(char)}|{_hex(char)})" for char in secret)
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return re.compile(f"{escaped}|{re.escape(encoded)}=*", re.IGNORECASE)


def _hex(char: str) -> str:
    return "".join(f"%{byte:02x}" for byte in char.encode())


def _environment() -> Iterator[str]:
    return (value for name, value in os.environ.items() if name.endswith(_ENDINGS))
