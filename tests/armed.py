"""The demo agent of a running product, armed with a skill that a tagged note fires, and what its tests ask of it."""

import json
import textwrap
import time
from typing import Any

from websockets.sync.client import ClientConnection, connect

from marketplace.protocol import nostr
from marketplace.protocol.events import Draft, Event
from tests.stack import Stack, eventually

TOPIC = "called-for"

# Through the product's own code: publish the skill, adopt it, pin it, and let it act by itself.
ARM = """
from django.conf import settings
from django.utils import timezone
from agents import arming
from agents.models import Agent, Trigger
from marketplace import ingest, publish, relays
from marketplace.protocol.events import Address, Event
event = Event.from_dict({event!r})
now = timezone.now()
assert all(answer.ok for answer in relays.publish(event, settings.WRITE_RELAYS, 8.0))
ingest.store([ingest.Incoming(event)], int(now.timestamp()))
agent = Agent.objects.select_related("identity").get(slug="demo")
agent.grants = sorted({{*agent.grants, *{tools!r}}})
agent.save(update_fields=["grants"])
publish.adopt(agent.identity, event.address, int(now.timestamp()))
arming.pin(agent, str(event.address), event.id, timezone.now())
assert Trigger.objects.filter(agent=agent, usable=True).update(autonomy="auto") == 1
print(agent.identity.pubkey)
"""

TOKEN = """
from marketplace.models import ApiToken, User
print(ApiToken.issue(User.objects.get(username="owner"), "test", ["read", "run"]))
"""


def shell(stack: Stack, code: str) -> str:
    """The last line that this code prints inside the product."""
    printed = stack.manage("shell", "-v0", "--no-imports", "-c", textwrap.dedent(code)).strip()
    return printed.splitlines()[-1] if printed else ""


def token(stack: Stack) -> dict[str, str]:
    """Headers of the owner's API token."""
    return {"Authorization": f"Bearer {shell(stack, TOKEN)}"}


def signed(kind: int, content: str, tags: list[list[str]], secret: str = "") -> Event:
    secret = secret or nostr.generate_secret()
    draft = Draft(nostr.public_key(secret), int(time.time()), kind, tuple(map(tuple, tags)), content)
    return nostr.sign(draft, secret)


def arm(stack: Stack, *tools: str) -> str:
    """Arm the demo agent on notes tagged TOPIC; its public key, once the listener knows of it."""
    content = {"description": "Answers a call", "template": "Answer the call below.\n\n{{triggering_event}}"}
    tags = [["d", "answer-a-call"], ["scope", "public"], ["trigger", "nostr-subscription"]]
    tags += [["filter", json.dumps({"kinds": [1], "#t": [TOPIC]})], ["tools", *tools]]
    event = signed(31123, json.dumps(content), tags)
    pubkey = shell(stack, ARM.format(event=event.to_dict(), tools=set(tools)))
    seen = (
        "from marketplace.models import Heartbeat; print([h.detail for h in Heartbeat.objects.filter(role='listener')])"
    )
    eventually(30, lambda: " 1 triggers" in shell(stack, seen), "the listener follows the trigger")
    return pubkey


def call(content: str) -> Event:
    """A note that fires the trigger."""
    return signed(1, content, [["t", TOPIC]])


def send(socket: ClientConnection, event: Event) -> None:
    """To the relay, which must take it."""
    socket.send(json.dumps(["EVENT", event.to_dict()]))
    answer = json.loads(socket.recv(10))
    assert answer[:3] == ["OK", event.id, True], answer


def notes(stack: Stack, pubkey: str) -> list[str]:
    """What the relay holds of this key's notes."""
    found: list[str] = []
    with connect(stack.relay) as socket:
        socket.send(json.dumps(["REQ", "notes", {"authors": [pubkey], "kinds": [1], "limit": 500}]))
        while True:
            answer: list[Any] = json.loads(socket.recv(10))
            if answer[0] == "EOSE":
                return found
            if answer[0] == "EVENT":
                found.append(answer[2]["content"])


RUNS = """
import json
from agents.models import Run
fields = "occasion_key", "status", "reason", "deliveries"
print(json.dumps(list(Run.objects.filter(trigger_kind="nostr-subscription").values(*fields))))
"""


def runs(stack: Stack) -> list[dict[str, Any]]:
    """Every run that a trigger started."""
    found: list[dict[str, Any]] = json.loads(shell(stack, RUNS))
    return found
