"""Signed events from real failure reports, one file per case; two keys whose secrets are public."""

import hashlib
import json
from pathlib import Path
from typing import Any

from coincurve import PrivateKey

from marketplace.protocol.events import Draft, Event

SECRET_A = hashlib.sha256(b"rv-key-a").hexdigest()
SECRET_B = hashlib.sha256(b"rv-key-b").hexdigest()
A = "69a845f76899492011c3035e7860bbb426666fd2bb2fd335d656798da39ff169"
B = "93c7f16a19a2102563dc85374db5fa193c8184bd2f3743892029b5a2cbc47696"
KEYS = {A: SECRET_A, B: SECRET_B}
C1 = r'{"description":"one","template":"user:\n{{message}}"}'
C2 = r'{"description":"two","template":"user:\n{{message}}"}'
NOW = 1_760_000_000


def load(name: str) -> dict[str, Any]:
    """The named events of one file, each as the JSON object a relay would send."""
    return json.loads((Path(__file__).parent / f"{name}.json").read_text("utf-8"))


def signed(kind: int, tags: Any = (), content: str = "", created_at: int = NOW, key: str = A) -> Event:
    """An event signed by one of the two keys; the same bytes every time."""
    draft = Draft(key, created_at, kind, tuple(tuple(tag) for tag in tags), content)
    return with_signature(draft, draft.id)


def with_signature(draft: Draft, event_id: str) -> Event:
    secret = PrivateKey(bytes.fromhex(KEYS[draft.pubkey]))
    signature = secret.sign_schnorr(bytes.fromhex(event_id), aux_randomness=bytes(32)).hex()
    return Event(event_id, draft.pubkey, draft.created_at, draft.kind, draft.tags, draft.content, signature)
