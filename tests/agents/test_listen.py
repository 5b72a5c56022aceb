"""From an event on a relay to a run in a worker: what the listener asks for, what it fires, how fast."""

import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agents.management.commands.listen import Listener, _known_relays
from agents.management.merging import merge
from agents.management.watching import look, revision
from agents.models import Agent, Run, Trigger
from marketplace import relays
from marketplace.models import ArchivedEvent, Relay, Skill
from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter
from tests.agents.world import AT, make_agent, make_trigger, note, signed, skill_event, stranger
from tests.real_relay import LocalRelay
from tests.stack import ROOT, eventually

KEYS = [letter * 64 for letter in "abcdef"]


def some_filter(dice: random.Random) -> Filter:
    def some(values: list[Any]) -> frozenset[Any] | None:
        return frozenset(dice.sample(values, dice.randint(1, 2))) if dice.random() < 0.6 else None

    tags = {name: found for name in "pt" if (found := some(KEYS[:3]))}
    return Filter(authors=some(KEYS), kinds=some([1, 7, 1111]), tags=tags, since=dice.randint(0, 9))


def test_merged_filters_let_through_all_that_the_single_ones_do() -> None:
    """Against the slow way, on random filters and events."""
    dice = random.Random(7)
    for _ in range(200):
        single = [some_filter(dice) for _ in range(dice.randint(1, 12))]
        merged = merge(single)
        assert len(merged) <= len(single)
        assert min(item.since or 0 for item in merged) == min(item.since or 0 for item in single)
        for _ in range(30):
            tags = tuple((dice.choice("pt"), dice.choice(KEYS[:3])) for _ in range(dice.randint(0, 3)))
            event = Event("0" * 64, dice.choice(KEYS), 9, dice.choice([1, 7, 1111]), tags, "", "")
            if any(item.matches(event) for item in single):
                assert any(item.matches(event) for item in merged)


def test_a_thousand_mentions_become_a_few_filters() -> None:
    single = [Filter(kinds=frozenset({1}), tags={"p": frozenset({f"{number:064x}"})}) for number in range(1000)]
    merged = merge(single)
    assert len(merged) == 2
    assert sum(len(item.tags["p"]) for item in merged) == 1000


@pytest.fixture
def agent() -> Agent:
    return make_agent()


@pytest.fixture
def listener(agent: Agent) -> Listener:
    found = Listener()
    found.watch = look()
    return found


def came(event: Any, relay: str = "ws://127.0.0.1:1") -> relays.Incoming:
    return relays.Incoming(event, relay, checked=True)


@pytest.mark.django_db
class TestFiring:
    def test_an_event_fires_once_however_many_relays_deliver_it(self, listener: Listener, agent: Agent) -> None:
        make_trigger(agent)
        listener.watch = look()
        event = note()
        for number in range(4):
            listener._take([came(event, f"ws://127.0.0.1:{number}"), came(event)])
        assert Run.objects.count() == 1
        assert Trigger.objects.get().last_seen == AT

    def test_an_event_is_kept_with_its_run_and_not_in_the_archive(self, listener: Listener, agent: Agent) -> None:
        make_trigger(agent)
        listener.watch = look()
        event = note()
        listener._take([came(event)])
        assert Run.objects.get().input["event"]["id"] == event.id
        assert not ArchivedEvent.objects.exists()

    def test_what_was_signed_before_the_trigger_was_armed_does_not_fire(self, listener: Listener, agent: Agent) -> None:
        make_trigger(agent)
        listener.watch = look()
        listener._take([came(note(at=AT - 1))])
        assert not Run.objects.exists()

    def test_what_is_dated_far_ahead_neither_fires_nor_moves_the_cursor(self, listener: Listener, agent: Agent) -> None:
        make_trigger(agent)
        listener.watch = look()
        listener._take([came(note(at=int(time.time()) + 5_000))])
        assert not Run.objects.exists()
        assert Trigger.objects.get().last_seen == 0

    def test_skills_go_to_the_catalogue_and_may_fire_as_well(self, listener: Listener, agent: Agent) -> None:
        make_trigger(agent, tags=[["trigger", "nostr-subscription"], ["filter", '{"kinds":[31123]}']])
        listener.watch = look()
        listener._take([came(skill_event(stranger(), "found"))])
        assert Skill.objects.get().d == "found"
        assert Run.objects.get().input["event"]["kind"] == 31123

    def test_words_of_a_search_are_asked_for_too(self, listener: Listener, agent: Agent) -> None:
        filters = '{"kinds":[1],"search":"good Coffee"}'
        make_trigger(agent, tags=[["trigger", "nostr-subscription"], ["filter", filters]], address="31123:x:y")
        listener.watch = look()
        assert listener.watch.fired(note(text="tea")) == []
        assert len(listener.watch.fired(note(text="coffee is good"))) == 1

    def test_each_change_of_a_live_trigger_is_another_revision(self, agent: Agent) -> None:
        from agents import arming
        from tests.agents.world import NOW

        seen = {revision()}
        trigger = make_trigger(agent)
        for change in (
            lambda: None,
            lambda: arming.switch(trigger, False, NOW),
            lambda: arming.switch(trigger, True, NOW),
            lambda: arming.switch_agent(agent, False, NOW),
            lambda: arming.switch_agent(agent, True, NOW),
            lambda: make_trigger(agent, "another"),
        ):
            change()
            seen.add(revision())
        assert len(seen) == 5  # off by its own switch and off with its agent look the same: nothing is live

    def test_a_relay_is_asked_from_its_last_complete_sync_or_from_arming(self, agent: Agent, settings: Any) -> None:
        settings.RELAYS = ["ws://127.0.0.1:1"]
        make_trigger(agent)
        watch = look()
        assert [item.since for item in watch.filters("ws://127.0.0.1:1", 0)] == [AT]
        assert [item.since for item in watch.filters("ws://127.0.0.1:1", AT + 5_000)] == [AT + 5_000 - 600]
        assert watch.filters("ws://127.0.0.1:2", 0) == []

    def test_an_agents_own_relay_is_asked_for_its_triggers_only(self, agent: Agent, settings: Any) -> None:
        settings.RELAYS = ["ws://127.0.0.1:1"]
        agent.relays = ["ws://127.0.0.1:2/"]
        agent.save()
        make_trigger(agent)
        mine = [["trigger", "nostr-subscription"], ["filter", '{"kinds":[7]}']]
        make_trigger(make_agent("other"), tags=mine)
        watch = look()
        assert watch.own_relays == {"ws://127.0.0.1:2"}
        assert [item.kinds for item in watch.filters("ws://127.0.0.1:2", 0)] == [frozenset({1})]
        assert [item.kinds for item in watch.filters("ws://127.0.0.1:1", 0)] == [frozenset({1, 7})]


class Site:
    """Listener and worker as processes, on a database, a broker folder and a relay of their own."""

    def __init__(self, folder: Path, relay: LocalRelay) -> None:
        self.folder, self.relay = folder, relay
        self.environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "JOURNEYMAN_VAR": str(folder),
            "JOURNEYMAN_EMBEDDED_RELAY": "false",
            "JOURNEYMAN_RELAYS": relay.url,
            "JOURNEYMAN_LOG_LEVEL": "WARNING",
            "JOURNEYMAN_TRIGGER_COOLDOWN": "0",
            "JOURNEYMAN_TEMPLATE_ACTIONS_PER_MINUTE": "1000",
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.manage("migrate", "--verbosity", "0", "--skip-checks")

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def listen(self) -> None:
        self.start("listener", "manage.py", "listen")

    def work(self) -> None:
        worker = ("-m", "celery", "-A", "marketplace.celery", "worker", "-l", "WARNING", "-Q", "runs", "-n", "runs@x")
        self.start("worker", *worker, "-c", "1", "--without-gossip", "--without-mingle")

    def end(self, name: str, number: int = signal.SIGTERM) -> float:
        """Seconds it took."""
        process, started = self.processes.pop(name), time.monotonic()
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)  # its children too
        else:
            process.send_signal(number)
        process.wait(10)
        return time.monotonic() - started

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        database = sqlite3.connect(self.folder / "journeyman.sqlite3", timeout=10)
        try:
            return database.execute(query, values).fetchall()
        finally:
            database.close()

    def until(self, seconds: float, happened: Callable[[], object], what: str) -> None:
        try:
            eventually(seconds, happened, what)
        except AssertionError:
            for log in sorted(self.folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}")
            raise

    def time_to_claim(self, event: Event) -> float:
        """Seconds from publishing it to a worker's claim of its run."""
        event = signed(stranger(), event.kind, event.content, event.tags, int(time.time()) + 1)
        query = "SELECT started_at FROM agents_run WHERE occasion_key = ? AND started_at IS NOT NULL"
        started = datetime.now(UTC)
        assert relays.publish(event, [self.relay.url])[0].ok
        self.until(5, lambda: self.rows(query, event.id), "it was claimed")
        claimed = datetime.fromisoformat(self.rows(query, event.id)[0][0]).replace(tzinfo=UTC)
        return (claimed - started).total_seconds()

    def beats(self, role: str) -> bool:
        return bool(self.rows("SELECT 1 FROM marketplace_heartbeat WHERE role = ?", role))


@pytest.fixture
def site(tmp_path: Path, relay: LocalRelay) -> Iterator[Site]:
    running = Site(tmp_path, relay)
    yield running
    for name in list(running.processes):
        running.end(name, signal.SIGKILL)


OWNER = """
from tests.agents.world import make_agent
agent = make_agent()
print(agent.identity.pubkey, agent.identity.sealed)
"""


@pytest.mark.stack
def test_an_event_published_by_another_client_is_run_by_a_worker_at_once(site: Site, tmp_path: Path) -> None:
    author, now = stranger(), int(time.time())
    tags = [
        ["trigger", "nostr-subscription"],
        ["filter", json.dumps({"kinds": [1], "#p": ["<agent_pubkey>"]})],
        ["action", "template"],
    ]
    skill = skill_event(author, "greet", now - 10, tags, template="LOG: {content}")
    pubkey = site.manage("shell", "--no-imports", "-c", OWNER).split()[0]
    relays.publish(skill, [site.relay.url])
    site.listen()
    site.work()
    site.until(30, lambda: site.beats("worker") and site.beats("listener"), "both are alive")
    site.until(10, lambda: site.rows("SELECT 1 FROM marketplace_skill"), "the skill was found on the relay")
    # The owner adopts it with another client: the list arrives over the relay and arms the trigger.
    adopt = f"""
from marketplace import relays, signing
from marketplace.models import Identity
from marketplace.protocol.events import Draft
identity = Identity.objects.get(pubkey="{pubkey}")
draft = Draft(identity.pubkey, {now}, 10123, (("a", "{skill.address}"),), "")
relays.publish(signing.sign(identity, draft), ["{site.relay.url}"])
"""
    site.manage("shell", "--no-imports", "-c", adopt)
    site.until(5, lambda: site.rows("SELECT 1 FROM agents_trigger WHERE usable"), "the trigger is armed")
    time.sleep(2)  # a change takes effect within two seconds
    took = [site.time_to_claim(note(text=f"hello {number}", tags=[["p", pubkey]])) for number in range(21)]
    print(f"event to claim: median {statistics.median(took) * 1000:.0f} ms, worst {max(took) * 1000:.0f} ms")
    assert statistics.median(took) < 0.150
    site.until(10, lambda: not site.rows("SELECT 1 FROM agents_run WHERE status != 'succeeded'"), "all ended")
    assert len(site.rows("SELECT 1 FROM agents_run")) == 21
    _a_gap_is_made_good(site, pubkey)


def _a_gap_is_made_good(site: Site, pubkey: str) -> None:
    """What came while the listener was away fires once when it is back, and what fired before does not again."""
    assert site.end("listener") < 2
    event = signed(stranger(), 1, "while you were away", [["p", pubkey]], int(time.time()) + 1)
    relays.publish(event, [site.relay.url])
    site.listen()
    query = "SELECT 1 FROM agents_run WHERE occasion_key = ?"
    site.until(15, lambda: site.rows(query, event.id), "it was caught up with")
    site.until(5, lambda: site.rows("SELECT 1 FROM marketplace_relay WHERE state = 'live'"), "it is live again")
    assert len(site.rows("SELECT 1 FROM agents_run")) == 22
    assert not site.rows("SELECT 1 FROM agents_run WHERE status = 'suppressed'")


@pytest.mark.django_db
def test_a_relay_that_was_only_published_to_is_read_once_it_is_wanted() -> None:
    Relay.objects.create(url="ws://127.0.0.1:1", reads=False)
    Relay.objects.create(url="ws://127.0.0.1:2", reads=False, state=Relay.State.AWAY)  # somebody switched it off
    known = _known_relays({"ws://127.0.0.1:1", "ws://127.0.0.1:2"})
    assert {url: reads for url, (reads, _) in known.items()} == {"ws://127.0.0.1:1": True, "ws://127.0.0.1:2": False}
