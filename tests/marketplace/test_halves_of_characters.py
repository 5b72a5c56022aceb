"""JSON inside an event may spell half a character or NUL, which no database takes: nothing of it stops anything."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, OperationalError
from django.test import Client

from marketplace import ingest, signing
from marketplace.ingest import Incoming, skills
from marketplace.models import ArchivedEvent, Author, Facet, Relay, Skill, User
from marketplace.protocol import nip19
from marketplace.protocol.events import Address, Draft, Event
from marketplace.relays import Status, record
from tests.keys import T0, Keys

pytestmark = pytest.mark.django_db
NOW = T0 + 100
HALVES = r'{"template":"x","description":"surr \ud800 d","llm":"a\udc00","topics":["\ud801"],"name":"n\ud800"}'
LATER = [["trigger", "cron"], ["tools", r'["\ud800","nostr_post"]'], ["t", "a\0"]]
WATCHES = [["trigger", "nostr-subscription"], ["filter", r'{"#t":["\ud800"],"search":"\udfff"}']]
PROFILE = r'{"name":"n\ud800","display_name":"\udfff","about":"a\ud800","nip05":"\u0000@x"}'


def store(*events: Event) -> list[str]:
    return [outcome.outcome for outcome in ingest.store([Incoming(event) for event in events], NOW)]


def test_a_skill_and_a_profile_are_stored_with_marks_and_their_bytes_are_kept(keys: Keys) -> None:
    event = keys.A.sign(31123, HALVES, [["d", "surr"], *LATER])
    watching = keys.B.sign(31123, r'{"description":"w","\ud800":"\ud800"}', [["d", "watching"], *WATCHES])
    profile = keys.A.sign(0, PROFILE)
    assert store(keys.A.skill("before"), event, watching, profile, keys.A.skill("after")) == ["stored"] * 5
    skill = Skill.objects.get(d="surr")
    assert (skill.description, skill.llm, skill.tools) == ("surr \ufffd d", "a\ufffd", ["nostr_post"])
    assert skill.problem_count
    assert Skill.objects.get(d="watching").problem_count
    assert list(Facet.objects.filter(name="topic").values_list("value", flat=True)) == ["a\ufffd"]
    author = Author.objects.get(pk=keys.A.pubkey)
    assert (author.name, author.about, author.nip05) == ("\ufffd", "a\ufffd", "\ufffd@x")
    assert json.loads(ArchivedEvent.objects.get(pk=event.id).raw)["content"] == HALVES


def test_a_file_with_such_events_is_read_to_its_end(keys: Keys, tmp_path: Path, settings: Any) -> None:
    events = [keys.A.sign(31123, HALVES, [["d", "surr"]]), keys.A.sign(0, PROFILE), keys.A.skill("after")]
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(event.to_json() for event in events))
    call_command("ingest", str(file))
    assert {skill.d for skill in Skill.objects.public()} == {"surr", "after"}


def test_an_event_that_raises_is_refused_alone_and_told_once(
    keys: Keys, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, written = skills.prepare, skills.project

    def prepare(event: Event) -> skills.Projected:
        if event.value("d") == "unreadable":
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        return real(event)

    def project(rows: Sequence[skills.Projected], first: Any) -> None:
        written(rows, first)
        if any(row.key.d == "unwritable" for row in rows):
            raise OverflowError("too large")

    monkeypatch.setattr(skills, "prepare", prepare)
    monkeypatch.setattr(skills, "project", project)
    names = ["one", "two", "unreadable", "three", "unwritable", "four", "five"]
    with caplog.at_level(logging.ERROR, logger="marketplace.ingest.storing"):
        found = ingest.store([Incoming(keys.A.skill(name), "wss://r.example") for name in names], NOW)
    assert [one.outcome for one in found] == ["refused" if name.startswith("un") else "stored" for name in names]
    assert {one.reason for one in found if one.outcome == "refused"} == {"unstorable"}
    assert {skill.d for skill in Skill.objects.public()} == {"one", "two", "three", "four", "five"}
    assert ArchivedEvent.objects.count() == 5
    assert len(caplog.records) == 2


def test_a_database_that_is_away_is_no_fault_of_an_event(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    def project(*_: Any) -> None:
        raise OperationalError("the disk is full")

    monkeypatch.setattr(skills, "project", project)
    with pytest.raises(DatabaseError):
        ingest.store([Incoming(keys.A.skill("one")), Incoming(keys.A.skill("two"))], NOW)


def test_a_relays_words_are_stored_whatever_they_hold() -> None:
    record(Status("ws://127.0.0.1:1", Relay.State.AWAY, "it said: \ud800\0"))
    assert Relay.objects.get().detail == "it said: \ufffd\ufffd"


CONTENT = r'{"template":"a\u0000b\ud800","context_mode":"inject","x_own":"\ud800","\udc00":[1]}'


@pytest.mark.parametrize("private", [False, True])
def test_every_page_and_file_of_such_a_skill_opens(client: Client, keys: Keys, private: bool) -> None:
    from tests.agents import rows

    user: User = rows.owner()
    client.force_login(user)
    rows.agent(user, "Demo")
    identity = signing.create_identity(user, "mine")
    kind = 31124 if private else 31123
    content = signing.encrypt(identity, CONTENT) if private else CONTENT
    tags = (("d", "odd"), ("trigger", "nostr-subscription"), ("filter", WATCHES[1][1]), ("tools", LATER[1][1]))
    event = signing.sign(identity, Draft(identity.pubkey, T0, kind, tags, content))
    profile = signing.sign(identity, Draft(identity.pubkey, T0, 0, (), PROFILE))
    assert store(event, profile) == ["stored", "stored"]
    naddr = nip19.encode_naddr(Address(kind, identity.pubkey, "odd"))
    for path in (
        f"/skills/{naddr}/",
        f"/skills/{naddr}/SKILL.md",
        f"/skills/{naddr}/?tab=versions",
        f"/drafts/new/?from={naddr}",
        f"/compare/new/?agent=demo&skill={naddr}",
        f"/api/v1/skills/{naddr}",
        f"/api/v1/skills/{naddr}/versions",
        f"/events/{event.id}/",
        f"/authors/{nip19.encode_npub(identity.pubkey)}/",
        "/?q=odd",
    ):
        response = client.get(path)
        assert response.status_code == 200 or (private and path.startswith(("/api/", "/events/"))), path
        assert response.status_code < 500
