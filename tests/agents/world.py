"""Owners, agents, skills and triggers as rows, signed with real keys, for the tests of dispatch and arming."""

import json
from datetime import UTC, datetime
from typing import Any

from agents.models import Agent, Trigger
from marketplace import ingest, signing
from marketplace.models import User
from marketplace.protocol import kinds, nostr
from marketplace.protocol.events import Draft, Event
from marketplace.protocol.triggers import Occasion

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
AT = int(NOW.timestamp())


def signed(secret: str, kind: int, content: str = "", tags: Any = (), at: int = AT) -> Event:
    draft = Draft(nostr.public_key(secret), at, kind, tuple(tuple(tag) for tag in tags), content)
    return nostr.sign(draft, secret)


def stranger() -> str:
    return nostr.generate_secret()


def make_agent(name: str = "bot", **fields: Any) -> Agent:
    """An agent with its own owner, key, and an admin key."""
    owner = User.objects.create(username=f"owner of {name}")
    identity = signing.create_identity(owner, name)
    fields.setdefault("admin_pubkey", nostr.public_key(stranger()))
    return Agent.objects.create(owner=owner, identity=identity, name=name, slug=name, **fields)


def make_trigger(agent: Agent, d: str = "answer", **fields: Any) -> Trigger:
    """Armed on every note, for a skill of a made-up author; no event stands behind it."""
    tags = [["trigger", "nostr-subscription"], ["filter", json.dumps({"kinds": [1]})]]
    values = {
        "address": f"31123:{'a' * 64}:{d}",
        "event_id": "b" * 64,
        "kind": "nostr-subscription",
        "tags": tags,
        "armed_at": AT,
        "autonomy": "auto",
    }
    return Trigger.objects.create(agent=agent, **(values | fields))


def note(secret: str | None = None, text: str = "hello", tags: Any = (), at: int = AT) -> Event:
    return signed(secret or stranger(), kinds.NOTE, text, tags, at)


def happened(event: Event, depth: int = 0) -> Occasion:
    return Occasion("nostr-subscription", event.id, AT, event=event, relay="ws://127.0.0.1:1", depth=depth)


def skill_event(secret: str, d: str = "answer", at: int = AT, tags: Any = (), **content: Any) -> Event:
    content = {"description": f"does {d}", "template": "Answer kindly."} | content
    return signed(secret, kinds.SKILL, json.dumps(content), [["d", d], ["scope", "public"], *tags], at)


def adoption_list(agent: Agent, *addresses: str, at: int = AT) -> Event:
    """Signed with the agent's own key, as its owner would from any client."""
    draft = Draft(agent.identity.pubkey, at, kinds.ADOPTIONS, tuple(("a", address) for address in addresses), "")
    return signing.sign(agent.identity, draft)


def arrive(*events: Event, at: int = AT) -> list[ingest.Outcome]:
    return ingest.store([ingest.Incoming(event) for event in events], at)
