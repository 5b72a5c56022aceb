"""Signing and encryption through nostr_sdk, without I/O: the core's only door to it.

It is loaded at first use: it takes 9 MB, and most processes sign nothing.
"""

import ctypes
import json
import struct
from functools import lru_cache
from typing import Any

from marketplace.protocol.events import HEX64, Draft, Event


@lru_cache(maxsize=1)
def _sdk() -> Any:
    import nostr_sdk
    from nostr_sdk import nostr_sdk as bindings

    def write(self: Any, value: Any) -> None:
        """Copies a text into Rust at once; the generated code copies byte by byte in Python."""
        length = len(value)
        if not length:
            return
        buffer = self.rbuf
        if buffer.len + length > buffer.capacity:
            buffer = self.rbuf = bindings._UniffiRustBuffer.reserve(buffer, length)
        ctypes.memmove(ctypes.addressof(buffer.data.contents) + buffer.len, bytes(value), length)
        buffer.len += length

    # 130 to 290 times faster at 16 to 60 kB; a test fails when these private names change.
    builder = bindings._UniffiRustBufferBuilder
    builder.write = write
    builder._pack_into = lambda self, size, layout, value: write(self, struct.pack(layout, value))
    return nostr_sdk


def generate_secret() -> str:
    """A new secret key, 64 hex digits."""
    return str(_sdk().Keys.generate().secret_key().to_hex())


def read_secret(text: str) -> str:
    """The secret key as hex, from `nsec1…` or hex. Raises ValueError that does not repeat it."""
    try:
        return str(_sdk().Keys.parse(text.strip()).secret_key().to_hex())
    except Exception:
        raise ValueError("This is not a private key (nsec1… or 64 hex digits).") from None


def public_key(secret: str) -> str:
    return str(_keys(secret).public_key().to_hex())


def sign(draft: Draft, secret: str) -> Event:
    """The signed event. Raises ValueError when the secret is not the draft's own key."""
    keys = _keys(secret)
    if keys.public_key().to_hex() != draft.pubkey:
        raise ValueError("The key does not belong to the draft.")
    signature = str(keys.sign_schnorr(bytes.fromhex(draft.id)))
    return Event(draft.id, draft.pubkey, draft.created_at, draft.kind, draft.tags, draft.content, signature)


def encrypt_to_self(secret: str, text: str) -> str:
    """NIP-44 to the own key, as private skills are stored."""
    keys = _keys(secret)
    return str(keys.nip44_encrypt(keys.public_key(), text))


def decrypt_own(secret: str, pubkey: str, payload: str) -> str:
    """What `payload` says: JSON in clear, NIP-44 or NIP-04. Raises ValueError."""
    if payload.lstrip()[:1] == "{":
        return payload
    keys, other = _keys(secret), _sdk().PublicKey.parse(pubkey)
    try:
        if "?iv=" in payload:
            return str(_sdk().nip04_decrypt(keys.secret_key(), other, payload))
        return str(keys.nip44_decrypt(other, payload))
    except Exception:
        raise ValueError("The content cannot be decrypted with this key.") from None


def gift_wrap(secret: str, receiver: str, text: str) -> Event:
    """A direct message as a NIP-17 gift wrap to one receiver."""
    wrap = _sdk().nip17_make_private_msg(_keys(secret), _sdk().PublicKey.parse(receiver), text, None, [])
    return Event.from_dict(json.loads(wrap.as_json()))


def decrypt(secret: str, other: str, payload: str) -> str:
    """What was encrypted between this key and another (NIP-44). Raises ValueError."""
    try:
        return str(_keys(secret).nip44_decrypt(_sdk().PublicKey.parse(other), payload))
    except Exception:
        raise ValueError("The message cannot be opened with this key.") from None


def decrypt_legacy(secret: str, other: str, payload: str) -> str:
    """The same for NIP-04. Raises ValueError."""
    try:
        return str(_sdk().nip04_decrypt(_keys(secret).secret_key(), _sdk().PublicKey.parse(other), payload))
    except Exception:
        raise ValueError("The message cannot be opened with this key.") from None


def encrypt_legacy(secret: str, receiver: str, text: str) -> str:
    """NIP-04, only for those who write in that way themselves."""
    return str(_sdk().nip04_encrypt(_keys(secret).secret_key(), _sdk().PublicKey.parse(receiver), text))


def _keys(secret: str) -> Any:
    if not HEX64.match(secret):
        raise ValueError("A secret key is 64 lower-case hex digits.")
    return _sdk().Keys.parse(secret)
