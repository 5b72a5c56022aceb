"""Rows that tests of runs start from: an owner, an agent with a key, archived skills."""

import json
import threading
from typing import Any

from django.db import connection
from django.utils import timezone

from agents import runner
from agents.models import AdoptedSkill, Agent, Run
from marketplace import signing
from marketplace.models import ArchivedEvent, User
from marketplace.protocol import kinds, nostr
from marketplace.protocol.events import Draft, Event


def owner(name: str = "alice") -> User:
    return User.objects.create_user(name, password="a long pass phrase")


def agent(user: User, name: str = "Helper", **values: Any) -> Agent:
    identity = signing.create_identity(user, name, None)
    return Agent.objects.create(
        owner=user, identity=identity, name=name, slug=name.lower(), **{"llm": "openai/gpt-4o-mini", **values}
    )


def event(content: dict[str, Any] | str, tags: list[list[str]], kind: int = kinds.SKILL, secret: str = "") -> Event:
    secret = secret or nostr.generate_secret()
    text = content if isinstance(content, str) else json.dumps(content)
    draft = Draft(nostr.public_key(secret), 1_760_000_000, kind, tuple(tuple(tag) for tag in tags), text)
    return nostr.sign(draft, secret)


def archived(found: Event) -> ArchivedEvent:
    return ArchivedEvent.objects.create(
        id=found.id,
        kind=found.kind,
        pubkey=found.pubkey,
        d=found.value("d"),
        created_at=found.created_at,
        raw=found.to_json(),
        received_at=found.created_at,
    )


def skill(content: dict[str, Any] | str, *tags: list[str], d: str = "demo", secret: str = "") -> Event:
    found = event(content, [["d", d], *tags], secret=secret)
    archived(found)
    return found


def adopt(of: Agent, found: Event, position: int = 0) -> AdoptedSkill:
    return AdoptedSkill.objects.create(agent=of, address=str(found.address), position=position, pinned_event=found.id)


def run(of: Agent, found: Event | None = None, key: str = "", **values: Any) -> Run:
    invoked = {}
    if found is not None:
        invoked = {"skill_event": found.id, "skill_address": str(found.address), "skill_name": found.value("d")}
    now = timezone.now()
    return Run.objects.create(
        agent=of, occasion_key=key or nostr.generate_secret(), created_at=now, **{**invoked, **values}
    )


def carried_out(of: Run) -> Run:
    """The run as it stands after a worker had it."""
    assert runner.execute(of.pk)
    of.refresh_from_db()
    return of


def worker(of: Run) -> threading.Thread:
    """A started thread that carries out the run, and leaves no connection behind."""

    def work() -> None:
        try:
            runner.execute(of.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread
