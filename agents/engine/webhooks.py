"""Whether a web request is genuine, which delivery it is, and what it says.

Signatures are made over the raw bytes and compared as bytes, in constant time. Sources: GitHub's and Stripe's own
descriptions of their headers, and Standard Webhooks for the id.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from marketplace.protocol import checks
from marketplace.protocol.storable import storable
from marketplace.protocol.triggers.webhook import Param

SCHEMES = {
    "github": "GitHub: X-Hub-Signature-256 over the body",
    "stripe": "Stripe: Stripe-Signature with a time, over time and body",
    "plain": "Plain: X-Signature, the hex HMAC-SHA256 of the body",
    "bearer": "Bearer: the secret itself in Authorization",
    "none": "None: whoever knows the address may call it",
}
WINDOW = 300  # seconds that a signed time may differ from ours, as Stripe's own libraries allow
IDS = ("idempotency-key", "webhook-id", "x-github-delivery", "x-gitlab-event-uuid", "x-shopify-webhook-id")
DEEPEST = 50  # levels of JSON
LONGEST_ID = 200
_DIGITS = re.compile(r"\d{1,15}\Z", re.ASCII)


def refusal(scheme: str, secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: int) -> str:
    """Why the request is not genuine, "" when it is. Header names in lower case; `secrets`: the current one, and an
    older one while both count; `now` in unix seconds."""
    if scheme == "none":
        return ""
    if not secrets:
        return "no secret is set"
    if scheme == "bearer":
        word, _, given = headers.get("authorization", "").partition(" ")
        return "" if word.lower() == "bearer" and _one_is(given.strip(), secrets) else "wrong or missing bearer token"
    if scheme == "stripe":
        return _stripe(secrets, headers.get("stripe-signature", ""), body, now)
    given = headers.get("x-hub-signature-256" if scheme == "github" else "x-signature", "").strip()
    if scheme == "github" and not given.startswith("sha256="):
        return "wrong or missing signature"
    good = _one_is(given.removeprefix("sha256=").lower(), [_hmac(secret, body) for secret in secrets])
    return "" if good else "wrong or missing signature"


def delivery_id(scheme: str, headers: Mapping[str, str], body: bytes) -> str:
    """What the sender calls this delivery, "" where it does not say: sent again it is the same one."""
    for name in IDS:
        if headers.get(name, "").strip():
            return storable(headers[name].strip())[:LONGEST_ID]  # type: ignore[no-any-return]
    if scheme == "stripe":
        found = read_body("application/json", body)
        named = found.get("id") if isinstance(found, dict) else None
        return named[:LONGEST_ID] if isinstance(named, str) else ""
    return ""


def read_body(content_type: str, body: bytes) -> Any:
    """A JSON value, the fields of a form, or the text itself; nothing in it can raise."""
    kind = content_type.partition(";")[0].strip().lower()
    text = body.decode("utf-8", "replace")
    if kind == "application/x-www-form-urlencoded":
        try:
            return storable(dict(parse_qsl(text, keep_blank_values=True, max_num_fields=1_000)))
        except ValueError:
            return storable(text)
    if not text.strip():
        return {}
    try:
        found = json.loads(text, parse_constant=checks.no_constant, parse_float=checks.finite)
    except (ValueError, RecursionError):
        return storable(text)
    return storable(found) if _depth(found) <= DEEPEST else storable(text)


def unread(content_type: str, body: bytes, said: Any) -> str:
    """Why a body that is not text was not understood, "" where it was or is nothing."""
    kind = content_type.partition(";")[0].strip().lower()
    if isinstance(said, str) and body.strip() and (not kind or kind.endswith("json")):
        return "The body is not JSON"
    if isinstance(said, list) or (isinstance(said, int | float) and not isinstance(said, bool)):
        return "The body is JSON, but not an object"
    return ""


def arguments(params: Iterable[Param], said: Any) -> tuple[dict[str, Any], list[str]]:
    """The trigger's parameters from what was read, each of its type; and what is wrong with them, in words."""
    fields = said if isinstance(said, dict) else {}
    found: dict[str, Any] = {}
    wrong = []
    for param in params:
        if fields.get(param.name) is None:
            if param.required:
                wrong.append(f"{param.name} is missing")
            continue
        value = _typed(param.type, fields[param.name])
        if value is None:
            wrong.append(f"{param.name} is not a {param.type}")
        else:
            found[param.name] = value
    return found, wrong


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those worth keeping, without what is or may be a secret."""
    safe = {name: value for name, value in headers.items() if name in IDS or not _SECRET.search(name)}
    return {storable(name)[:100]: storable(value)[:1_000] for name, value in sorted(safe.items())[:50]}


_SECRET = re.compile(r"auth|cookie|signature|secret|token|key|password|credential|cf-|forwarded")


def _stripe(secrets: Sequence[str], header: str, body: bytes, now: int) -> str:
    parts = [part.strip().partition("=")[::2] for part in header.split(",")]
    at = next((value for name, value in parts if name == "t"), "")
    given = [value.lower() for name, value in parts if name == "v1"][:5]
    if not _DIGITS.match(at) or not given:
        return "wrong or missing signature"
    expected = [_hmac(secret, at.encode() + b"." + body) for secret in secrets]
    if not any(_one_is(one, expected) for one in given):
        return "wrong or missing signature"
    return "" if abs(now - int(at)) <= WINDOW else f"signed more than {WINDOW} seconds ago or ahead"


def _hmac(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _one_is(given: str, expected: Sequence[str]) -> bool:
    """All are compared: which one matched takes no other time. As bytes: `compare_digest` raises on other text."""
    raw = given.encode("utf-8", "replace")
    found = [hmac.compare_digest(raw, one.encode()) for one in expected]
    return any(found)


def _typed(kind: str, value: Any) -> str | int | float | bool | None:
    """None where it is not of this type. Form fields are text, so text is read where it says the type exactly."""
    if kind == "string":
        return value if isinstance(value, str) else None
    if kind == "boolean":
        if isinstance(value, bool):
            return value
        return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None
    if isinstance(value, str):
        try:
            value = json.loads(value[:400], parse_constant=checks.no_constant, parse_float=checks.finite)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _depth(value: Any) -> int:
    """Levels of lists and objects, without recursion: a stranger chose them."""
    deepest, level = 0, [value]
    while level and deepest <= DEEPEST + 1:
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        deepest += 1
    return deepest - 1
