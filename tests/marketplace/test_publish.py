"""Publishing a skill: signed as shown, kept before it is sent, each relay's answer on record."""

import json
import threading
from dataclasses import replace

import pytest
from django.db import connection

from marketplace import ingest, publish, signing
from marketplace.models import ArchivedEvent, Publication, RelayAnswer, Skill, User
from marketplace.protocol import checks, kinds
from marketplace.protocol.events import Draft, Event
from marketplace.protocol.problems import NotWritable
from marketplace.protocol.skills import SkillSpec, read_skill
from tests.told_relay import ToldRelay

NOW = 1_760_000_000
SPEC = SkillSpec("esc", description="d", template="user:\n{{message}} é 🍕 / \u2028 \u007f")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice():
    return User.objects.create_user("alice")


@pytest.fixture
def identity(alice):
    return signing.create_identity(alice, "mine")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr("marketplace.publish.sending.OK_SECONDS", 0.7)


def use(settings, *relays):
    settings.WRITE_RELAYS = settings.RELAYS = [relay.url for relay in relays]


def answers(publication):
    return {answer.url: (answer.ok, answer.message) for answer in publication.answers.all()}


def test_a_real_relay_takes_the_skill_and_the_catalogue_has_it(relay, identity):
    publication = publish.skill(identity, SPEC, NOW)
    assert answers(publication) == {relay.url: (True, "")}
    event = checks.check(publication.raw)
    assert read_skill(event).template == SPEC.template
    skill = Skill.objects.get(pubkey=identity.pubkey, d="esc")
    assert (skill.event_id, skill.listed) == (publication.event_id, True)


def test_every_refusal_is_kept_by_name_and_one_yes_is_success(settings, identity):
    with ToldRelay("ok") as good, ToldRelay("refuse") as bad, ToldRelay("silent") as mute, ToldRelay("other") as odd:
        use(settings, good, bad, mute, odd)
        publication = publish.skill(identity, SPEC, NOW)
    said = answers(publication)
    assert publication.accepted
    assert said[good.url] == (True, "")
    assert said[bad.url] == (False, "blocked: pay first")
    assert said[mute.url][0] is False
    assert "no answer" in said[mute.url][1]
    assert "answered about another event" in said[odd.url][1]


def test_what_no_relay_took_is_in_no_catalogue_and_a_retry_sends_the_same_id(settings, identity):
    with ToldRelay("refuse") as relay:
        use(settings, relay)
        publication = publish.skill(identity, SPEC, NOW)
        assert not publication.accepted
        assert not ArchivedEvent.objects.filter(pk=publication.event_id).exists()
        relay.answer = "ok"
        publish.retry(publication, NOW + 60)
        assert [event["id"] for event in relay.received] == [publication.event_id] * 2
        publish.retry(publication, NOW + 90)
        assert len(relay.received) == 2  # whoever took it is left alone
    assert Publication.objects.get(pk=publication.pk).accepted
    assert Skill.objects.filter(event_id=publication.event_id).exists()


def test_a_relay_that_is_away_is_named_and_nothing_raises(settings, identity):
    settings.WRITE_RELAYS = settings.RELAYS = ["ws://127.0.0.1:1"]
    publication = publish.skill(identity, SPEC, NOW)
    assert not publication.accepted
    assert not publication.waiting_for
    assert RelayAnswer.objects.get().url == "ws://127.0.0.1:1"


def test_two_edits_in_one_second_do_not_tie(settings, identity):
    with ToldRelay() as relay:
        use(settings, relay)
        publish.skill(identity, SPEC, NOW)
        publish.skill(identity, replace(SPEC, description="two"), NOW)
        relay.answer = "refuse"
        publish.skill(identity, replace(SPEC, description="three"), NOW)
        last = publish.skill(identity, replace(SPEC, description="four"), NOW)
    assert [event["created_at"] for event in relay.received] == [NOW, NOW + 1, NOW + 2, NOW + 3]
    assert Event.from_dict(json.loads(last.raw)).created_at == NOW + 3


def test_a_version_dated_in_the_future_is_not_chased(settings, identity):
    with ToldRelay() as relay:
        use(settings, relay)
        publish.skill(identity, SPEC, NOW + 10_000)
        with pytest.raises(publish.Unpublishable, match="in the future"):
            publish.skill(identity, replace(SPEC, description="two"), NOW)
    assert len(relay.received) == 1


def test_one_form_token_is_one_event_however_often_it_is_sent(settings, identity):
    with ToldRelay() as relay:
        use(settings, relay)
        first = publish.skill(identity, SPEC, NOW, "token")
        second = publish.skill(identity, replace(SPEC, description="other"), NOW + 5, "token")
    assert first.pk == second.pk
    assert len(relay.received) == 1


def test_two_submits_at_once_become_one_private_event(settings, identity):
    found = []

    def submit():
        try:
            found.append(publish.skill(identity, replace(SPEC, public=False), NOW, "token").pk)
        finally:
            connection.close()

    with ToldRelay() as relay:
        use(settings, relay)
        threads = [threading.Thread(target=submit) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert len(found) == 3
    assert len(set(found)) == 1
    assert len(relay.received) == 1  # two encryptions of one text differ, so an id alone would not catch it


def test_a_private_skill_is_readable_by_its_own_key_only(settings, identity):
    with ToldRelay() as relay:
        use(settings, relay)
        publication = publish.skill(identity, replace(SPEC, public=False, template="user:\nhush"), NOW)
    event = Event.from_dict(json.loads(publication.raw))
    assert event.kind == kinds.PRIVATE_SKILL
    assert "hush" not in publication.raw
    assert read_skill(event, signing.decrypt(identity, event.content)).template == "user:\nhush"
    assert not Skill.objects.public().filter(event_id=event.id).exists()


def test_a_skill_that_may_not_be_written_is_not_signed(settings, identity):
    with pytest.raises(NotWritable, match="bytes"):
        publish.skill(identity, replace(SPEC, template="x" * 200_000), NOW)
    assert not Publication.objects.exists()


def test_the_row_is_there_before_the_relay_is_asked(settings, identity, monkeypatch):
    def gone(*_):
        assert Publication.objects.count() == 1
        raise KeyboardInterrupt

    monkeypatch.setattr("marketplace.publish.sending.relays.publish", gone)
    settings.WRITE_RELAYS = ["ws://127.0.0.1:1"]
    with pytest.raises(KeyboardInterrupt):
        publish.skill(identity, SPEC, NOW)
    assert Publication.objects.get().waiting_for == ["ws://127.0.0.1:1"]


def test_what_a_browser_signed_is_published_when_it_equals_the_draft(settings, alice):
    secret = "5d" * 32
    from marketplace.protocol import nostr

    identity = signing.register_browser_key(alice, "extension", nostr.public_key(secret))
    draft = publish.unsigned_skill(identity, SPEC, NOW)
    with ToldRelay() as relay:
        use(settings, relay)
        publication = publish.signed_skill(identity, draft, nostr.sign(draft, secret).to_json(), NOW)
        assert publication.accepted
        other = Draft(draft.pubkey, NOW, draft.kind, draft.tags, "{}")
        with pytest.raises(signing.Differs):
            publish.signed_skill(identity, draft, nostr.sign(other, secret).to_json(), NOW)
        ahead = Draft(draft.pubkey, NOW + 5_000, draft.kind, draft.tags, draft.content)
        with pytest.raises(publish.Unpublishable, match="clock"):
            publish.signed_skill(identity, draft, nostr.sign(ahead, secret).to_json(), NOW)
    assert len(relay.received) == 1


def test_unknown_fields_and_tags_of_a_skill_survive_an_edit(settings, identity):
    content = '{"template":"one","x-odd": {"b":1.50,  "a":[null]},"description":"d"}'
    tags = (("d", "esc"), ("x-mine", "1", "2"), ("client", "other", "é"))
    event = signing.sign(identity, Draft(identity.pubkey, NOW - 10, kinds.SKILL, tags, content))
    ingest.store([ingest.Incoming(event)], NOW)
    with ToldRelay() as relay:
        use(settings, relay)
        publication = publish.skill(identity, replace(read_skill(event), template="two"), NOW)
    after = Event.from_dict(json.loads(publication.raw))
    assert '{"b":1.50,  "a":[null]}' in after.content
    assert {("x-mine", "1", "2"), ("client", "other", "é")} <= set(after.tags)
