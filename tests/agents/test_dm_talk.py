"""Talking by direct message: whom the agent obeys, that each message is answered once, and in the way it came."""

import json
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents import arming, dispatch
from agents.dispatch import hearing
from agents.management.commands.listen import Listener
from agents.management.inboxes import BACKDATED, Inboxes
from agents.management.watching import OVERLAP
from agents.models import Agent, Conversation, IgnoredMessage, Run
from agents.runner import answering
from agents.tools import publishing
from marketplace import relays, signing
from marketplace.protocol import direct, nip19, nostr
from marketplace.protocol.events import Draft, Event
from marketplace.protocol.filters import Filter
from tests import fakes
from tests.agents import rows
from tests.agents.test_listen import Site
from tests.agents.world import stranger
from tests.protocol.test_direct import rumor, sdk
from tests.real_relay import LocalRelay

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
ADMIN = stranger()
ADMIN_KEY = nostr.public_key(ADMIN)


@pytest.fixture
def bot(helper: Agent) -> Agent:
    helper.admin_pubkey = ADMIN_KEY
    helper.save()
    return helper


def wrapped(bot: Agent, text: str = "hello", secret: str = ADMIN) -> Event:
    return nostr.gift_wrap(secret, bot.identity.pubkey, text)


def old(bot: Agent, text: str = "hello", secret: str = ADMIN, at: int = 0) -> Event:
    return direct.write_legacy(secret, bot.identity.pubkey, text, at or int(time.time()) + 1)


def again_wrapped(bot: Agent, text: str, secret: str, **changes: Any) -> Event:
    """One message, in a new wrap each time."""
    inside = rumor(pubkey=nostr.public_key(secret), tags=[["p", bot.identity.pubkey]], content=text)
    inside |= {"created_at": int(time.time()) + 5, **changes}
    keys, to = sdk.Keys.parse(secret), sdk.PublicKey.parse(bot.identity.pubkey)
    once = sdk.Keys.generate()
    seal = nostr.sign(
        Draft(nostr.public_key(secret), 1, 13, (), str(keys.nip44_encrypt(to, json.dumps(inside)))), secret
    )
    content = str(once.nip44_encrypt(to, seal.to_json()))
    wrap = Draft(once.public_key().to_hex(), int(time.time()), 1059, (("p", bot.identity.pubkey),), content)
    return nostr.sign(wrap, once.secret_key().to_hex())


def hear(bot: Agent, event: Event, relay: str = "") -> Run | None:
    bot.refresh_from_db()
    return hearing.hear(bot, event, timezone.now(), relay)


def stored(relay: LocalRelay, **wanted: Any) -> list[Event]:
    return relays.fetch([relay.url], [Filter(**{k: frozenset(v) for k, v in wanted.items()})], 5).events


# --- Who is heard ----------------------------------------------------------------


@pytest.mark.parametrize("write", [wrapped, old])
def test_what_the_admin_writes_is_a_turn(bot: Agent, write: Any) -> None:
    run = hear(bot, write(bot, "what is new?"))
    assert run is not None
    assert (run.input["message"], run.turn, run.autonomy) == ("what is new?", 1, "auto")
    assert run.conversation is not None
    assert (run.conversation.channel, run.conversation.peer) == ("dm", ADMIN_KEY)
    hear(bot, write(bot, "and now?"))
    assert Conversation.objects.get().turns.count() == 2


@pytest.mark.parametrize("write", [wrapped, old])
def test_others_are_ignored_and_counted_once(bot: Agent, write: Any, client: Client) -> None:
    event = write(bot, "obey me", stranger())
    for _ in range(3):
        assert hear(bot, event) is None
    assert not Run.objects.exists() and not Conversation.objects.exists()
    bot.refresh_from_db()
    assert bot.dms_ignored == 1
    client.force_login(bot.owner)
    assert "1 ignored" in client.get(f"/agents/{bot.slug}/").content.decode()


def test_a_seal_of_the_admins_message_by_somebody_else_is_ignored(bot: Agent) -> None:
    assert hear(bot, again_wrapped(bot, "post this", stranger(), pubkey=ADMIN_KEY)) is None
    bot.refresh_from_db()
    assert bot.dms_ignored == 1 and not Run.objects.exists()


def test_one_message_in_several_wraps_is_one_turn(bot: Agent) -> None:
    at = int(time.time()) + 5
    first, second = (again_wrapped(bot, "once", ADMIN, created_at=at) for _ in range(2))
    assert first.id != second.id
    assert hear(bot, first) is not None
    assert hear(bot, second) is None and hear(bot, first) is None
    Conversation.objects.all().delete()
    assert hear(bot, second) is None
    assert Run.objects.count() == 1 and not Conversation.objects.exists()


def test_whom_the_owner_named_may_talk_but_not_write(bot: Agent) -> None:
    friend = stranger()
    bot.talkers = [nostr.public_key(friend)]
    bot.save()
    run = hear(bot, wrapped(bot, "hi", friend))
    assert run is not None and run.autonomy == "suggest"


def test_what_was_written_before_it_could_be_talked_to_is_not_answered(bot: Agent) -> None:
    before = old(bot, at=int(bot.created_at.timestamp()) - 60)
    assert hear(bot, before) is None
    bot.refresh_from_db()
    assert bot.dms_ignored == 0
    arming.switch_agent(bot, False, timezone.now())
    arming.switch_agent(bot, True, timezone.now() + timedelta(hours=1))
    assert hear(bot, old(bot)) is None


def test_its_own_messages_and_its_owners_secrets_are_no_turns(bot: Agent) -> None:
    own = signing.write_legacy(bot.identity, bot.identity.pubkey, "to myself", int(time.time()) + 1)
    assert hear(bot, own) is None
    secret = sdk.Keys.generate().secret_key().to_bech32()
    assert hear(bot, wrapped(bot, f"my key is {secret}")) is None
    assert hear(bot, wrapped(bot, " \n")) is None
    bot.refresh_from_db()
    assert bot.dms_ignored == 2 and not Run.objects.exists()


def test_a_flood_of_strangers_is_counted_without_a_row_for_each(bot: Agent, monkeypatch: Any) -> None:
    monkeypatch.setattr(hearing, "MOST_REMEMBERED", 3)
    for number in range(5):
        hear(bot, old(bot, f"{number}", stranger()))
    bot.refresh_from_db()
    assert (bot.dms_ignored, IgnoredMessage.objects.count()) == (5, 3)
    assert hearing.forget(timezone.now()) == 0
    assert hearing.forget(timezone.now() + timedelta(days=6)) == 3


def test_a_message_holds_what_no_database_takes_and_is_heard(bot: Agent) -> None:
    run = hear(bot, again_wrapped(bot, "a\x00b", ADMIN))
    assert run is not None and run.input["message"] == "a\ufffdb"


def test_the_form_takes_keys_and_hears_only_what_is_written_from_then_on(bot: Agent, client: Client) -> None:
    client.force_login(bot.owner)
    address, friend = f"/agents/{bot.slug}/settings/", nostr.public_key(stranger())
    fields = {"name": bot.name, "admin_pubkey": ADMIN_KEY, "catalog_length": "500"}
    wrong = client.post(address, fields | {"talkers": "nobody"})
    assert wrong.status_code == 422 and "nobody" in wrong.content.decode()
    client.post(address, fields)
    bot.refresh_from_db()
    assert bot.dm_since == 0
    client.post(address, fields | {"talkers": nip19.encode_npub(friend)})
    bot.refresh_from_db()
    assert bot.talkers == [friend] and bot.dm_since > 0


# --- What relays are asked for ---------------------------------------------------


def test_messages_are_asked_for_from_two_days_before_since_wraps_are_dated_back(bot: Agent, settings: Any) -> None:
    settings.RELAYS = ["ws://127.0.0.1:1"]
    inboxes = Inboxes()
    assert inboxes.look() and not inboxes.look()
    synced, own = int(time.time()) + 50_000, bot.identity.pubkey
    lists, asked = sorted(inboxes.filters("ws://127.0.0.1:1", synced), key=lambda item: item.since or 0)
    assert (asked.kinds, asked.tags) == (frozenset({4, 1059}), {"p": frozenset({own})})
    assert asked.since == synced - OVERLAP - BACKDATED - OVERLAP
    assert (lists.kinds, lists.authors, lists.since) == (frozenset({10050}), frozenset({own}), 0)
    Agent.objects.update(admin_pubkey="", talkers=[])
    assert inboxes.look() and inboxes.filters("ws://127.0.0.1:1", synced) == []
    Agent.objects.update(admin_pubkey=ADMIN_KEY, enabled=False)
    assert not inboxes.look() or inboxes.filters("ws://127.0.0.1:1", synced) == []


def test_the_relays_that_its_own_list_names_are_read_too(bot: Agent, settings: Any) -> None:
    settings.RELAYS = ["ws://127.0.0.1:1"]
    inboxes = Inboxes()
    inboxes.look()
    assert inboxes.relays == {"ws://127.0.0.1:1"}

    def listed(at: int, *urls: str) -> Event:
        draft = Draft(bot.identity.pubkey, at, 10050, tuple(("relay", url) for url in urls), "")
        return signing.sign(bot.identity, draft)

    inboxes.take(listed(10, "wss://Inbox.example/", "nonsense"), "", timezone.now())
    assert inboxes.look() and not inboxes.look()
    assert inboxes.relays == {"ws://127.0.0.1:1", "wss://inbox.example"}
    inboxes.take(listed(9, "wss://older.example"), "", timezone.now())
    assert not inboxes.look()
    inboxes.take(listed(11), "", timezone.now())
    assert inboxes.look() and inboxes.relays == {"ws://127.0.0.1:1"}


def test_the_listener_takes_each_message_once(bot: Agent) -> None:
    listener = Listener()
    listener.inboxes.look()
    event = wrapped(bot)
    for number in range(3):
        listener._take([relays.Incoming(event, f"ws://127.0.0.1:{number}", checked=True)])
    other = Listener()  # another one, or this one after a restart
    other.inboxes.look()
    other._take([relays.Incoming(event, "ws://127.0.0.1:1", checked=True)])
    assert Run.objects.get().input["dm"]["relay"] == "ws://127.0.0.1:0"


# --- The answer ------------------------------------------------------------------


@pytest.mark.parametrize(("write", "kind"), [(wrapped, 1059), (old, 4)])
def test_it_is_answered_in_kind_and_by_an_ordinary_step(
    models: fakes.ModelServer, bot: Agent, relay: LocalRelay, write: Any, kind: int
) -> None:
    models.script(fakes.text("All is well."))
    run = hear(bot, write(bot, "how is it?"), relay.url)
    assert run is not None
    rows.carried_out(run)
    assert (run.status, run.output) == ("succeeded", "All is well.")
    (sent,) = stored(relay, kinds=[kind])
    message = direct.read(ADMIN, sent)
    assert (message.sender, message.text) == (bot.identity.pubkey, "All is well.")
    step = run.steps.get(name="dm_answer")
    assert step.state == "done" and step.intent["event"]["id"] == sent.id


def test_a_worker_that_died_while_sending_sends_the_same_event_again(
    models: fakes.ModelServer, bot: Agent, relay: LocalRelay, monkeypatch: Any
) -> None:
    run = hear(bot, wrapped(bot), relay.url)
    assert run is not None

    class Killed(BaseException):
        pass

    real = publishing.relays.publish

    def sends_and_dies(*arguments: Any) -> None:
        real(*arguments)
        raise Killed

    monkeypatch.setattr(publishing.relays, "publish", sends_and_dies)
    with pytest.raises(Killed):
        rows.carried_out(run)
    monkeypatch.setattr(publishing.relays, "publish", real)
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    rows.carried_out(run)
    assert run.status == "succeeded" and run.deliveries == 2
    assert len(models.asked) == 1
    assert len(stored(relay, kinds=[1059])) == 1
    assert run.steps.filter(name="dm_answer").count() == 1


def test_what_could_not_be_sent_is_shown_on_the_run(models: fakes.ModelServer, bot: Agent, settings: Any) -> None:
    settings.RELAYS = settings.WRITE_RELAYS = ["ws://127.0.0.1:1"]
    run = hear(bot, old(bot), "ws://127.0.0.1:1")
    assert run is not None
    rows.carried_out(run)
    assert (run.status, run.reason, run.output) == ("failed", "unsent", "It is done.")
    assert "No relay took the event" in run.reason_words
    assert run.steps.get(name="dm_answer").state == "failed"


def test_a_secret_in_the_answer_is_stopped_and_the_run_flagged(
    models: fakes.ModelServer, bot: Agent, relay: LocalRelay
) -> None:
    models.script(fakes.text("the key is site-key-CANARY-1234"))
    run = hear(bot, wrapped(bot), relay.url)
    assert run is not None
    rows.carried_out(run)
    assert run.status == "failed" and "secret" in " ".join(run.warnings)
    assert stored(relay, kinds=[1059]) == []


def test_who_wrote_is_told_when_there_is_no_answer(models: fakes.ModelServer, bot: Agent, relay: LocalRelay) -> None:
    models.script(fakes.text(None, finish="content_filter"))
    run = hear(bot, wrapped(bot), relay.url)
    assert run is not None
    rows.carried_out(run)
    assert (run.status, run.reason) == ("failed", "filtered")
    (sent,) = stored(relay, kinds=[1059])
    assert direct.read(ADMIN, sent).text.startswith("I could not answer. The provider's content filter")


def test_a_turn_run_again_from_its_page_writes_to_nobody(
    models: fakes.ModelServer, bot: Agent, relay: LocalRelay, client: Client
) -> None:
    run = hear(bot, wrapped(bot), relay.url)
    assert run is not None
    Run.objects.filter(pk=run.pk).update(status="succeeded")
    client.force_login(bot.owner)
    client.post(f"/runs/{run.pk}/again/", {"token": "x"})
    new = Run.objects.exclude(pk=run.pk).get()
    rows.carried_out(new)
    assert new.status == "succeeded" and stored(relay, kinds=[1059]) == []


@pytest.mark.parametrize("text", ["x" * 50_000, "🙂" * 20_000])
def test_a_long_answer_is_cut_to_what_relays_take(
    models: fakes.ModelServer, bot: Agent, relay: LocalRelay, text: str
) -> None:
    models.script(fakes.text(text))
    run = hear(bot, wrapped(bot), relay.url)
    assert run is not None
    rows.carried_out(run)
    assert run.status == "succeeded" and run.output == text
    (sent,) = stored(relay, kinds=[1059])
    assert direct.read(ADMIN, sent).text.endswith(answering.CUT)


def test_later_messages_are_answered_with_what_was_said_before(
    models: fakes.ModelServer, bot: Agent, relay: LocalRelay
) -> None:
    models.script(fakes.text("Noted."), fakes.text("Blue."))
    for text in ("I like blue.", "What do I like?"):
        run = hear(bot, wrapped(bot, text), relay.url)
        assert run is not None
        rows.carried_out(run)
    said = [(message["role"], message["content"]) for message in models.asked[-1]["messages"]]
    assert said == [("user", "I like blue."), ("assistant", "Noted."), ("user", "What do I like?")]


def test_the_history_reads_both_kinds_and_both_directions(
    models: fakes.ModelServer, bot: Agent, relay: LocalRelay
) -> None:
    bot.grants = ["nostr_dm_history"]
    bot.soul = "Before:\n{{dm_history}}"
    bot.save()
    for event in (wrapped(bot, "first wrapped"), old(bot, "first old"), wrapped(bot, "forged", stranger())):
        relays.publish(event, [relay.url])
        run = hear(bot, event, relay.url)
        if run is not None:
            models.script(fakes.text(f"answer to {run.input['message']}"))
            rows.carried_out(run)
    elsewhere = signing.write_legacy(bot.identity, ADMIN_KEY, "from another client", int(time.time()))
    relays.publish(elsewhere, [relay.url])
    rows.carried_out(rows.run(bot, input={"message": "go on"}))
    told = models.asked[-1]["messages"][0]["content"]
    for words in (
        "first wrapped",
        "first old",
        "answer to first wrapped",
        "answer to first old",
        "from another client",
    ):
        assert told.count(f'"text": "{words}"') == 1, words
    assert "forged" not in told and told.count('"from": "you"') == 3


def test_who_wrote_is_told_once_what_waits_for_the_owner(
    models: fakes.ModelServer, bot: Agent, relay: LocalRelay
) -> None:
    friend = stranger()
    bot.talkers, bot.grants = [nostr.public_key(friend)], ["nostr_post"]
    bot.save()
    models.script(fakes.calls(("a", "nostr_post", {"content": "Hi all"})), fakes.text("Posted."))
    run = hear(bot, wrapped(bot, "post hi", friend), relay.url)
    assert run is not None
    rows.carried_out(run)
    assert (run.status, run.reason) == ("waiting", "approval")
    (sent,) = stored(relay, kinds=[1059])
    said = direct.read(friend, sent).text
    assert "nostr_post waits for my owner's approval: http" in said and f"/talk/{run.conversation_id}/" in said
    dispatch.decide(run.steps.get(name="nostr_post"), True, timezone.now())
    rows.carried_out(run)
    assert run.status == "succeeded" and len(stored(relay, kinds=[1])) == 1
    texts = {direct.read(friend, event).text for event in stored(relay, kinds=[1059])}
    assert texts == {said, "Posted."}


def test_the_owner_publishes_where_it_reads_once(bot: Agent, relay: LocalRelay, client: Client) -> None:
    client.force_login(bot.owner)
    address = f"/agents/{bot.slug}/talk/inbox/"
    assert client.post(address)["Location"].startswith("/publications/")
    (listed,) = stored(relay, kinds=[10050])
    assert (listed.pubkey, listed.tags) == (bot.identity.pubkey, (("relay", relay.url),))
    assert client.post(address)["Location"] == f"/agents/{bot.slug}/talk/"
    assert "has published such a list already" in client.get(f"/agents/{bot.slug}/talk/").content.decode()
    assert stored(relay, kinds=[10050]) == [listed]
    relay.stop()
    assert "No relay told us" in client.post(address, follow=True).content.decode()
    relay.start()


# --- The whole, as processes -----------------------------------------------------


@pytest.fixture
def site(tmp_path: Path, relay: LocalRelay, models: fakes.ModelServer) -> Iterator[Site]:
    running = Site(tmp_path, relay)
    running.environment |= {
        "JOURNEYMAN_LLM_BASE_URL": models.url,
        "JOURNEYMAN_LLM_API_KEY": "test",
        "JOURNEYMAN_DEFAULT_LLM": "openai/gpt-4o-mini",
    }
    yield running
    for name in list(running.processes):
        running.end(name, signal.SIGKILL)


@pytest.mark.stack
def test_on_two_relays_with_two_listeners_each_message_is_answered_once(
    site: Site, relay: LocalRelay, models: fakes.ModelServer, settings: Any
) -> None:
    with LocalRelay() as second:
        both = settings.RELAYS = [relay.url, second.url]
        site.environment["JOURNEYMAN_RELAYS"] = ",".join(both)
        make = (
            f"from tests.agents.world import make_agent\nprint(make_agent(admin_pubkey='{ADMIN_KEY}').identity.pubkey)"
        )
        pubkey = site.manage("shell", "-v0", "--no-imports", "-c", make).split()[-1]
        site.listen()
        site.start("listener-2", "manage.py", "listen")
        site.work()
        site.until(60, lambda: site.beats("worker") and site.beats("listener"), "both are alive")
        at = int(time.time()) + 2
        events = [nostr.gift_wrap(ADMIN, pubkey, "by gift wrap"), direct.write_legacy(ADMIN, pubkey, "by old kind", at)]
        events += [nostr.gift_wrap(stranger(), pubkey, "obey")]
        for event in events:
            assert all(answer.ok for answer in relays.publish(event, both))
        ended = "SELECT 1 FROM agents_run WHERE status = 'succeeded'"
        site.until(60, lambda: len(site.rows(ended)) == 2, "both are answered")
        site.until(10, lambda: site.rows("SELECT 1 FROM agents_agent WHERE dms_ignored = 1"), "one is ignored")
        site.end("listener", signal.SIGKILL)
        site.listen()  # reads the last days again
        site.until(30, lambda: site.beats("listener"), "it is back")
        time.sleep(3)
        assert len(site.rows("SELECT 1 FROM agents_run")) == len(models.asked) == 2
        answers: dict[str, Event] = {}
        for found in (relay, second):
            for kind in (4, 1059):
                answers |= {event.id: event for event in stored(found, kinds=[kind])}
        read = [direct.read(ADMIN, event) for event in answers.values() if ADMIN_KEY in event.values("p")]
        assert sorted((one.sender == pubkey, one.legacy, one.text) for one in read) == [
            (True, False, "It is done."),
            (True, True, "It is done."),
        ]
        assert site.rows("SELECT dms_ignored FROM agents_agent") == [(1,)]
