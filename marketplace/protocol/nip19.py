"""Names for keys, events and addresses (NIP-19, NIP-21), in plain Python: a page encodes fifty of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor

from marketplace.protocol.events import HEX64, Address

_CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUES = {character: value for value, character in enumerate(_CHARSET)}
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
# What each value of the top five bits folds in; looked up, since a page of fifty rows takes 15,000 steps.
_TOPS = [reduce(xor, (g for bit, g in enumerate(_GENERATOR) if top >> bit & 1), 0) for top in range(32)]
MAX_LENGTH = 5_000
NSEC = re.compile(r"nsec1[02-9ac-hj-np-z]{20,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Npub:
    pubkey: str


@dataclass(frozen=True, slots=True)
class Nprofile:
    pubkey: str
    relays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    id: str


@dataclass(frozen=True, slots=True)
class Nevent:
    id: str
    relays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Naddr:
    address: Address
    relays: tuple[str, ...] = ()


Entity = Npub | Nprofile | Note | Nevent | Naddr


def encode_npub(pubkey: str) -> str:
    return _encode("npub", bytes.fromhex(pubkey))


def encode_note(event_id: str) -> str:
    return _encode("note", bytes.fromhex(event_id))


def encode_nevent(event_id: str, relays: Iterable[str] = ()) -> str:
    return _encode("nevent", _tlv([(0, bytes.fromhex(event_id)), *_hints(relays)]))


def encode_naddr(address: Address, relays: Iterable[str] = ()) -> str:
    """Raises ValueError where `d` is longer than the 255 bytes that the format can hold."""
    fields = [(0, address.d.encode()), *_hints(relays), (2, bytes.fromhex(address.pubkey))]
    return _encode("naddr", _tlv([*fields, (3, address.kind.to_bytes(4, "big"))]))


def decode(text: str) -> Entity:
    """What the text names, with or without `nostr:`. Raises ValueError in words; refuses `nsec`."""
    text = text.strip()
    if text[:6].lower() == "nostr:":
        text = text[6:]
    if looks_like_nsec(text):
        raise ValueError("This is a private key. Never paste it here.")
    prefix, data = _decode(text)
    if prefix == "npub":
        return Npub(_hex32(data))
    if prefix == "note":
        return Note(_hex32(data))
    fields = _read_tlv(data)
    relays = tuple(value.decode("utf-8", "replace") for kind, value in fields if kind == 1)
    first = dict(reversed(fields))
    if prefix == "nprofile":
        return Nprofile(_hex32(first.get(0, b"")), relays)
    if prefix == "nevent":
        return Nevent(_hex32(first.get(0, b"")), relays)
    if prefix == "naddr" and {0, 2, 3} <= first.keys() and len(first[3]) == 4:
        kind = int.from_bytes(first[3], "big")
        if kind <= 65_535:
            return Naddr(Address(kind, _hex32(first[2]), first[0].decode()), relays)
    raise ValueError("This is not a name of a key, a note or a skill.")


def read_key(text: str) -> str:
    """A public key as lower-case hex, from npub, nprofile or hex in any case. Raises ValueError in words."""
    text = text.strip()
    if HEX64.match(text.lower()):
        return text.lower()
    found = decode(text)
    if isinstance(found, Npub | Nprofile):
        return found.pubkey
    raise ValueError("This names an event, not a key.")


def looks_like_nsec(text: str) -> bool:
    """Whether somebody pasted a private key, or what was meant as one, where none belongs."""
    return "nsec1" in text.lower()


def holds_nsec(text: str) -> bool:
    """Whether a private key stands somewhere in a text, which may well speak of `nsec1…` without holding one."""
    return NSEC.search(text) is not None


def without_nsec(text: str) -> str:
    """The text with every private key in it replaced by what says that one stood there."""
    return NSEC.sub("nsec1…", text)


def short_npub(pubkey: str) -> str:
    npub = encode_npub(pubkey)
    return f"{npub[:10]}…{npub[-4:]}"


def _hints(relays: Iterable[str]) -> list[tuple[int, bytes]]:
    return [(1, url.encode()) for url in relays]


def _tlv(fields: Sequence[tuple[int, bytes]]) -> bytes:
    if any(len(value) > 255 for _, value in fields):
        raise ValueError("A name longer than 255 bytes has no naddr.")
    return b"".join(bytes((kind, len(value))) + value for kind, value in fields)


def _read_tlv(data: bytes) -> list[tuple[int, bytes]]:
    fields, at = [], 0
    while at + 2 <= len(data):
        kind, length = data[at], data[at + 1]
        value = data[at + 2 : at + 2 + length]
        if len(value) != length:
            raise ValueError("The name is cut off.")
        fields.append((kind, value))
        at += 2 + length
    return fields


def _hex32(data: bytes) -> str:
    if len(data) != 32:
        raise ValueError("The name does not hold 32 bytes.")
    return data.hex()


def _polymod(values: Iterable[int]) -> int:
    checksum = 1
    for value in values:
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value ^ _TOPS[checksum >> 25]
    return checksum


def _expand(prefix: str) -> list[int]:
    return [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]


def _encode(prefix: str, data: bytes) -> str:
    """Bech32 (BIP-173) without its length limit, as NIP-19 uses it."""
    bits = len(data) * 8
    groups = -(-bits // 5)
    number = int.from_bytes(data, "big") << (groups * 5 - bits)
    values = [number >> 5 * (groups - 1 - at) & 31 for at in range(groups)]
    checksum = _polymod([*_expand(prefix), *values, 0, 0, 0, 0, 0, 0]) ^ 1
    values += [checksum >> 5 * (5 - at) & 31 for at in range(6)]
    return prefix + "1" + "".join([_CHARSET[value] for value in values])


def _decode(text: str) -> tuple[str, bytes]:
    if len(text) > MAX_LENGTH or not text.isascii() or (text.lower() != text and text.upper() != text):
        raise ValueError("This is not a Nostr name.")
    prefix, separator, rest = text.lower().rpartition("1")
    try:
        values = [_VALUES[character] for character in rest]
    except KeyError:
        raise ValueError("This is not a Nostr name.") from None
    if not separator or not prefix or len(values) < 6:
        raise ValueError("This is not a Nostr name.")
    if _polymod([*_expand(prefix), *values]) != 1:
        raise ValueError("The name has a typing mistake: its checksum does not fit.")
    number = 0
    for value in values[:-6]:
        number = number << 5 | value
    spare = len(values[:-6]) * 5 % 8
    if spare > 4 or number & (1 << spare) - 1:
        raise ValueError("The name has a typing mistake: its padding is not empty.")
    return prefix, (number >> spare).to_bytes(len(values[:-6]) * 5 // 8, "big")
