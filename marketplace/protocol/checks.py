"""Our own checks of an event before it changes anything: shape, size, depth, id, signature."""

import hashlib
import json
import math
import re
from functools import lru_cache
from typing import Any, NoReturn

from coincurve import PublicKeyXOnly

from marketplace.protocol.events import HEX64, Event, canonical, canonical_verbatim

MAX_BYTES = 65_536
MAX_TAGS = 2_000
MAX_DEPTH = 64
MAX_TIME = 2**53 - 1  # the largest integer that every JSON reader keeps
FUTURE_SECONDS = 900  # further ahead is held aside until due

_HEX128 = re.compile(r"[0-9a-f]{128}\Z")
# An unfinished string runs to the end, so that each character is looked at once.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]+")


class Refused(Exception):
    """An event that changes nothing; `reason` is one short word for counters, str() a sentence."""

    def __init__(self, reason: str, words: str = "") -> None:
        super().__init__(words or reason)
        self.reason = reason


def check(raw: str | bytes | dict[str, Any]) -> Event:
    """The event, with its shape, id and signature checked. Raises Refused, nothing else."""
    event = parse(raw)
    verify(event)
    return event


def parse(raw: str | bytes | dict[str, Any]) -> Event:
    """The event by shape, size and depth only. Raises Refused."""
    row = raw if isinstance(raw, dict) else _load(raw)
    try:
        event_id, pubkey, created_at, kind = row["id"], row["pubkey"], row["created_at"], row["kind"]
        tags, content, sig = row["tags"], row["content"], row["sig"]
    except KeyError as error:
        raise Refused("shape", f"The field {error} is missing.") from None
    if type(event_id) is not str or not HEX64.match(event_id):
        _shape("id", "64 lower-case hex digits")
    if type(pubkey) is not str or not HEX64.match(pubkey):
        _shape("pubkey", "64 lower-case hex digits")
    if type(sig) is not str or not _HEX128.match(sig):
        _shape("sig", "128 lower-case hex digits")
    if type(created_at) is not int or not 0 <= created_at <= MAX_TIME:
        raise Refused("time", "created_at is not a whole number of seconds since 1970.")
    if type(kind) is not int or not 0 <= kind <= 65_535:
        _shape("kind", "a whole number up to 65535")
    if type(content) is not str:
        _shape("content", "text")
    length = _length_of_tags(tags)
    event = Event(event_id, pubkey, created_at, kind, tuple(map(tuple, tags)), content, sig)
    if length + len(content) > MAX_BYTES // 8:  # else too small, whatever its characters take as JSON
        _check_size(event)
    return event


def verify(event: Event) -> None:
    """Raises Refused unless the id and the Schnorr signature (BIP-340) are right."""
    fields = (event.pubkey, event.created_at, event.kind, event.tags, event.content)
    try:
        digest = hashlib.sha256(canonical(*fields)).digest()
        if digest.hex() != event.id:
            # Control characters: NIP-01 says verbatim, JSON says escaped; both ids are in use.
            digest = hashlib.sha256(canonical_verbatim(*fields)).digest()
    except UnicodeEncodeError:
        raise Refused("unicode", "The text holds half a surrogate pair.") from None
    if digest.hex() != event.id:
        raise Refused("bad-id", "The id is not the hash of the event.")
    try:
        valid = _key(event.pubkey).verify(bytes.fromhex(event.sig), digest)
    except ValueError:
        raise Refused("bad-key", "The public key is not on the curve.") from None
    if not valid:
        raise Refused("bad-signature", "The signature does not fit the key and the id.")


def too_far_ahead(event: Event, now: int) -> bool:
    return event.created_at > now + FUTURE_SECONDS


def strict_json(text: str) -> Any:
    """JSON without what readers disagree on: duplicate keys, NaN, giant numbers, depth over 64.

    Raises Refused.
    """
    if _too_deep(text):
        raise Refused("depth", f"The JSON is nested deeper than {MAX_DEPTH} levels.")
    try:
        return _strict.decode(text)
    except (ValueError, RecursionError) as error:
        raise Refused("json", f"This is not JSON: {str(error)[:120]}") from None


def _load(raw: str | bytes) -> dict[str, Any]:
    if len(raw) > MAX_BYTES * 6:  # every byte may have been escaped as \u00xx
        raise Refused("size", f"The event is larger than {MAX_BYTES} bytes.")
    if isinstance(raw, bytes):
        try:
            raw = raw.decode()
        except UnicodeDecodeError:
            raise Refused("unicode", "The text is not UTF-8.") from None
    row = strict_json(raw)
    if not isinstance(row, dict):
        raise Refused("shape", "An event is a JSON object.")
    return row


def _check_size(event: Event) -> None:
    """Measured as relays do, on the compact JSON."""
    try:
        size = len(event.to_json().encode())
    except UnicodeEncodeError:
        raise Refused("unicode", "The text holds half a surrogate pair.") from None
    if size > MAX_BYTES:
        raise Refused("size", f"The event is larger than {MAX_BYTES} bytes.")


@lru_cache(maxsize=4_096)  # authors come back; decompressing a key is a seventh of a check
def _key(pubkey: str) -> PublicKeyXOnly:
    return PublicKeyXOnly(bytes.fromhex(pubkey))


def _shape(field: str, wanted: str) -> NoReturn:
    raise Refused("shape", f"{field} is not {wanted}.")


def _length_of_tags(tags: object) -> int:
    """About how many characters they have as JSON; refuses what is not a list of lists of texts."""
    if not isinstance(tags, list | tuple):
        _shape("tags", "a list")
    if len(tags) > MAX_TAGS:
        raise Refused("size", f"The event has more than {MAX_TAGS} tags.")
    length = 0
    for tag in tags:
        if not isinstance(tag, list | tuple) or not tag:
            _shape("a tag", "a list with at least a name")
        try:
            length += len("".join(tag)) + 3 * len(tag)
        except TypeError:
            _shape("a tag", "a list of texts")
    return length


def _too_deep(text: str) -> bool:
    """Counts brackets outside strings, and only where there are enough of them at all."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _NO_BRACKET.sub("", _STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise ValueError("a key stands twice")
    return row


def no_constant(name: str) -> NoReturn:
    """For json.loads: NaN and Infinity are no JSON."""
    raise ValueError(f"{name} is not a JSON value")


def finite(text: str) -> float:
    """For json.loads: JSON has no infinity, but numbers that Python takes for it, such as 1e400."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is out of range")
    return number


_strict = json.JSONDecoder(object_pairs_hook=_object, parse_constant=no_constant, parse_float=finite)


__all__ = ["FUTURE_SECONDS", "HEX64", "MAX_BYTES", "Refused", "check", "parse", "strict_json", "verify"]
