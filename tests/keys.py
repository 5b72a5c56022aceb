"""Deterministic keys and signed events for tests: key A is the SHA-256 of "rv-key-a"."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from marketplace.protocol import nostr
from marketplace.protocol.events import Draft, Event

T0 = 1_760_000_000


@dataclass(frozen=True)
class Key:
    """One key; `key.skill("spell")` is a signed skill of it."""

    name: str

    @cached_property
    def secret(self) -> str:
        return hashlib.sha256(f"rv-key-{self.name.lower()}".encode()).hexdigest()

    @cached_property
    def pubkey(self) -> str:
        return nostr.public_key(self.secret)

    def sign(self, kind: int, content: str = "", tags: Sequence[Sequence[str]] = (), at: int = T0) -> Event:
        frozen = tuple(tuple(tag) for tag in tags)
        return nostr.sign(Draft(self.pubkey, at, kind, frozen, content), self.secret)

    def address(self, d: str, kind: int = 31123) -> str:
        return f"{kind}:{self.pubkey}:{d}"

    def skill(self, d: str, text: str = "one", at: int = T0, tags: Sequence[Sequence[str]] = ()) -> Event:
        content = json.dumps({"description": text, "template": "user:\n{{message}}"}, separators=(",", ":"))
        return self.sign(31123, content, [["d", d], *tags], at)

    def adopts(self, *addresses: str, at: int = T0) -> Event:
        return self.sign(10123, "", [["a", address] for address in addresses], at)

    def deletes(self, *targets: str, at: int = T0) -> Event:
        return self.sign(5, "", [["a" if ":" in target else "e", target] for target in targets], at)

    def vanishes(self, at: int = T0) -> Event:
        return self.sign(62, "", [["relay", "ALL_RELAYS"]], at)

    def profile(self, name: str, at: int = T0) -> Event:
        return self.sign(0, json.dumps({"name": name}), at=at)


class Keys:
    """`keys.A`, `keys.B`, or `keys["anything"]`."""

    def __getattr__(self, name: str) -> Key:
        return Key(name)

    def __getitem__(self, name: str) -> Key:
        return Key(name)
