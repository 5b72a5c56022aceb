"""Direct messages as their receiver reads them: gift wraps (NIP-17, NIP-59), and kind 4 (NIP-04)."""

import json
from dataclasses import dataclass
from typing import Any

from marketplace.protocol import checks, kinds, nostr
from marketplace.protocol.events import HEX64, Draft, Event

SEAL, CHAT = 13, 14
UNREADABLE = "The message cannot be opened with this key."


@dataclass(frozen=True, slots=True)
class DirectMessage:
    """What was said, by whom, when by their own account."""

    id: str  # of the message itself: every wrap of it holds the same
    sender: str
    receivers: tuple[str, ...]
    text: str
    created_at: int
    legacy: bool  # NIP-04


def read(secret: str, event: Event) -> DirectMessage:
    """A message that this key wrote or got, from an event whose own signature was checked. Raises ValueError."""
    if event.kind == kinds.ENCRYPTED_DM:
        return _legacy(secret, event)
    if event.kind != kinds.GIFT_WRAP:
        raise ValueError("This is no direct message.")
    return _wrapped(secret, event)


def write_legacy(secret: str, receiver: str, text: str, now: int) -> Event:
    """A signed kind 4, for those who wrote in that way: it hides the words, not who talks to whom."""
    content = nostr.encrypt_legacy(secret, receiver, text)
    draft = Draft(nostr.public_key(secret), now, kinds.ENCRYPTED_DM, (("p", receiver),), content)
    return nostr.sign(draft, secret)


def _legacy(secret: str, event: Event) -> DirectMessage:
    own, receivers = nostr.public_key(secret), event.values("p")
    other = event.pubkey if event.pubkey != own else next(iter(receivers), "")
    if own not in {event.pubkey, *receivers} or not HEX64.match(other):
        raise ValueError(UNREADABLE)
    text = nostr.decrypt_legacy(secret, other, event.content)
    return DirectMessage(event.id, event.pubkey, tuple(receivers), text, event.created_at, legacy=True)


def _wrapped(secret: str, event: Event) -> DirectMessage:
    """The seal's own signature says who wrote it; the message inside is unsigned and must name the same key."""
    try:
        seal = checks.check(nostr.decrypt(secret, event.pubkey, event.content))
    except checks.Refused:
        raise ValueError("The message’s seal is not signed by whom it names.") from None
    if seal.kind != SEAL:
        raise ValueError(UNREADABLE)
    message = _unsigned(nostr.decrypt(secret, seal.pubkey, seal.content))
    if message.pubkey != seal.pubkey:
        raise ValueError("The message's author is not who sealed it.")
    if message.kind != CHAT:
        raise ValueError(f"A message of kind {message.kind} is not read here.")
    receivers = tuple(tag[1] for tag in message.tags if len(tag) > 1 and tag[0] == "p")
    return DirectMessage(message.id, message.pubkey, receivers, message.content, message.created_at, legacy=False)


def _unsigned(text: str) -> Draft:
    """The event inside a seal; its id is computed, whatever it claims."""
    try:
        row: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(UNREADABLE) from None
    # A signature that is none: parse() looks at shapes, and this one is never verified.
    shaped = {**row, "id": "0" * 64, "sig": "0" * 128} if isinstance(row, dict) else {}
    try:
        event = checks.parse(shaped)
        draft = Draft(event.pubkey, event.created_at, event.kind, event.tags, event.content)
        draft.id.encode()  # a lone surrogate has no id
    except (checks.Refused, UnicodeEncodeError):
        raise ValueError(UNREADABLE) from None
    return draft
