"""The listener's half of a relay: catch-up, live, breaks, and relays that misbehave, over real websockets."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from marketplace import relays
from marketplace.protocol.filters import Filter
from marketplace.relays import Incoming, Reader, Status, session
from tests.keys import T0, Key, Keys
from tests.real_relay import LocalRelay

SKILLS = Filter(kinds=frozenset({31123}))
Handler = Callable[[ServerConnection], Awaitable[None]]


class Heard:
    """A sink and a report that remember."""

    def __init__(self) -> None:
        self.events: list[Incoming] = []
        self.statuses: list[Status] = []

    async def sink(self, batch: list[Incoming]) -> None:
        assert 0 < len(batch) <= 200
        self.events += batch

    async def report(self, status: Status) -> None:
        self.statuses.append(status)

    @property
    def ids(self) -> list[str]:
        return [incoming.raw.id for incoming in self.events]  # type: ignore[union-attr]

    @property
    def refusals(self) -> Counter[str]:
        return sum((status.refusals for status in self.statuses), Counter())

    @property
    def states(self) -> list[str]:
        return [status.state for status in self.statuses]


async def until(happened: Callable[[], object], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not happened():
            await asyncio.sleep(0.01)


def reading(
    url: str, heard: Heard, story: Callable[[Reader], Coroutine[Any, Any, None]], filters: Any = None, since: int = 0
) -> None:
    """Run a Reader while the story is told, and end it."""

    async def run() -> None:
        reader = Reader(url, filters or (lambda: [SKILLS]), heard.sink, heard.report, since=since)
        task = asyncio.create_task(reader.run())
        try:
            await story(reader)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


class Told:
    """A relay that does as its handler says, in a thread; on loopback, and configured by the settings."""

    def __init__(self, handler: Handler, settings: Any) -> None:
        self.handler = handler
        self.settings = settings
        self.ready = threading.Event()

    def __enter__(self) -> "Told":
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(self._run()), daemon=True)
        self.thread.start()
        assert self.ready.wait(10)
        self.settings.RELAYS = [self.url]
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(10)
        self.loop.close()

    async def _run(self) -> None:
        self.stop = asyncio.Event()
        async with serve(self._safely, "127.0.0.1", 0, compression=None, max_size=None) as server:
            self.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            self.ready.set()
            await self.stop.wait()

    async def _safely(self, socket: ServerConnection) -> None:
        try:
            await self.handler(socket)
        except Exception:
            pass


async def say(socket: ServerConnection, *row: Any) -> None:
    await socket.send(json.dumps(row))


# --- a real relay ------------------------------------------------------------


def test_stored_events_come_first_and_new_ones_as_they_are_published(relay: LocalRelay, keys: Keys) -> None:
    stored = [keys.A.skill(f"s{n}", at=T0 + n) for n in range(5)]
    for event in stored:
        assert relays.publish(event, [relay.url])[0].ok
    heard = Heard()

    async def story(reader: Reader) -> None:
        await until(lambda: "live" in heard.states)
        assert sorted(heard.ids) == sorted(event.id for event in stored)
        # Dated long ago, as a backdated event is: live all the same.
        fresh = keys.A.skill("fresh", at=5)
        assert (await relays.publish_async(fresh, [relay.url]))[0].ok
        await until(lambda: fresh.id in heard.ids, 2)
        assert len(heard.ids) == len(set(heard.ids))
        assert {incoming.relay for incoming in heard.events} == {relay.url}

    reading(relay.url, heard, story)


def test_a_relay_with_a_small_limit_is_read_to_its_end(settings: Any, keys: Keys) -> None:
    with LocalRelay(limit=20) as relay:
        settings.RELAYS = [relay.url]
        events = [keys.A.skill(f"s{n}", at=T0 + n // 4) for n in range(90)]
        asyncio.run(_publish_all(events, relay.url))
        heard = Heard()

        async def story(reader: Reader) -> None:
            await until(lambda: "live" in heard.states)

        reading(relay.url, heard, story)
    assert set(heard.ids) == {event.id for event in events}
    assert not heard.refusals


async def _publish_all(events: list[Any], url: str) -> None:
    async with await relays.wire.Wire.to(url) as wire:
        for event in events:
            await wire.send("EVENT", event.to_dict())
        answered = 0
        while answered < len(events):
            frame = await wire.receive(5)
            assert frame
            answered += frame.verb == "OK"


def test_after_a_break_everything_published_meanwhile_is_read_once(settings: Any, keys: Keys) -> None:
    now = int(time.time())
    with LocalRelay() as relay:
        settings.RELAYS = [relay.url]
        heard = Heard()
        before = keys.A.skill("before", at=now)

        async def story(reader: Reader) -> None:
            await until(lambda: "live" in heard.states)
            await relays.publish_async(before, [relay.url])
            await until(lambda: before.id in heard.ids)
            await asyncio.to_thread(relay.stop)
            await until(lambda: "away" in heard.states)
            heard.statuses.clear()
            await asyncio.to_thread(relay.start)
            missed = [keys.A.skill(f"m{n}", at=now + n) for n in range(50)]
            await _publish_all(missed, relay.url)
            await until(lambda: len(heard.ids) == 51, 15)
            await until(lambda: "live" in heard.states)
            assert len(set(heard.ids)) == 51

        reading(relay.url, heard, story, since=now)


def test_changed_filters_are_followed_within_two_seconds(relay: LocalRelay, keys: Keys) -> None:
    earlier, later = keys.A.sign(1, "earlier", at=T0), keys.A.sign(1, "later", at=T0 + 1)
    relays.publish(earlier, [relay.url])
    wanted = [SKILLS]
    heard = Heard()

    async def story(reader: Reader) -> None:
        await until(lambda: "live" in heard.states)
        wanted.append(Filter(kinds=frozenset({1}), since=T0 + 1))
        reader.refresh()
        await asyncio.sleep(1)
        await relays.publish_async(later, [relay.url])
        await until(lambda: later.id in heard.ids, 2)
        assert earlier.id not in heard.ids  # before the filter's own since
        wanted.pop()
        reader.refresh()
        await asyncio.sleep(1)
        await relays.publish_async(keys.A.sign(1, "after"), [relay.url])
        skill = keys.A.skill("still")
        await relays.publish_async(skill, [relay.url])
        await until(lambda: skill.id in heard.ids, 2)
        assert len(heard.ids) == 2

    reading(relay.url, heard, story, filters=lambda: list(wanted))


# --- relays that misbehave -----------------------------------------------------


def test_what_was_not_asked_for_or_is_forged_is_counted_and_the_relay_shown_as_faulty(
    settings: Any, keys: Keys
) -> None:
    good = keys.A.skill("s")
    wanted = Filter(kinds=frozenset({31123}), authors=frozenset({keys.A.pubkey}))

    async def handler(socket: ServerConnection) -> None:
        name = json.loads(await socket.recv())[1]
        page = json.loads(await socket.recv())[1]
        await say(socket, "EVENT", name, {**good.to_dict(), "content": "{}"})
        await say(socket, "EVENT", name, {**good.to_dict(), "sig": ""})
        await say(socket, "EVENT", name, keys.A.sign(1, "x").to_dict())
        await say(socket, "EVENT", name, keys.B.skill("s").to_dict())
        await say(socket, "EVENT", "other", good.to_dict())
        await say(socket, "EOSE", page)
        await socket.wait_closed()

    heard = Heard()

    async def story(reader: Reader) -> None:
        await until(lambda: "faulty" in heard.states)

    with Told(handler, settings) as told:
        reading(told.url, heard, story, filters=lambda: [wanted])
    assert heard.events == []
    assert heard.refusals == Counter({"bad-id": 1, "shape": 1, "filter": 2, "unknown-subscription": 1})
    assert "5 of 5 events refused" in heard.statuses[-1].detail


def test_a_list_that_never_ends_is_given_up_and_live_events_still_come(
    settings: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "EOSE_SECONDS", 0.3)
    event = keys.A.skill("s")

    async def handler(socket: ServerConnection) -> None:
        name = json.loads(await socket.recv())[1]
        await asyncio.sleep(1.5)
        await say(socket, "EVENT", name, event.to_dict())
        await socket.wait_closed()

    heard = Heard()

    async def story(reader: Reader) -> None:
        await until(lambda: event.id in heard.ids and "faulty" in heard.states)
        assert reader.synced_until == 0  # what it did not tell must be asked for again

    with Told(handler, settings) as told:
        reading(told.url, heard, story)
    assert "never ends" in heard.statuses[-1].detail


def test_a_relay_that_closes_our_request_is_away_with_its_words(settings: Any) -> None:
    async def handler(socket: ServerConnection) -> None:
        await say(socket, "NOTICE", "slow down")
        name = json.loads(await socket.recv())[1]
        await say(socket, "CLOSED", name, "rate-limited: too fast")
        await socket.wait_closed()

    heard = Heard()

    async def story(reader: Reader) -> None:
        await until(lambda: any("trying again" in status.detail for status in heard.statuses))

    with Told(handler, settings) as told:
        reading(told.url, heard, story)
    away = [status for status in heard.statuses if status.state == "away"][-1]
    assert "rate-limited: too fast" in away.detail
    assert "slow down" in away.detail


def test_a_flood_of_junk_neither_ends_reading_nor_hides_good_events(settings: Any, keys: Keys) -> None:
    good = [keys.A.skill(f"g{n}", at=T0 + n) for n in range(20)]
    forged = json.dumps({**keys.B.skill("junk").to_dict(), "sig": "0" * 128})
    junk = [
        '["EVENT","%s",' + forged + "]",
        '["EVENT","%s",{"content":"' + "x" * 1_000_000 + '"}]',
        '["EVENT","%s",{"tags":[' + ",".join(['["t","x"]'] * 2_500) + "]}]",
        '["EVENT","%s",' + "[" * 3_000 + "]",
        "\\" * 50,
    ]

    async def handler(socket: ServerConnection) -> None:
        await socket.recv()
        page = json.loads(await socket.recv())[1]
        for n in range(400):
            text = junk[n % len(junk)]
            await socket.send(text % page if "%s" in text else text)
            if n % 20 == 0:
                await say(socket, "EVENT", page, good[n // 20].to_dict())
        await say(socket, "EOSE", page)
        await socket.wait_closed()

    heard = Heard()

    async def story(reader: Reader) -> None:
        await until(lambda: len(heard.ids) == 20, 20)
        await until(lambda: "faulty" in heard.states)

    with Told(handler, settings) as told:
        reading(told.url, heard, story)
    assert heard.refusals.total() >= 400


def test_a_slow_sink_makes_the_relay_wait_and_loses_nothing(settings: Any) -> None:
    key = Key("busy")
    events = [key.skill(f"s{n}", at=T0 + n) for n in range(1_000)]
    sent: list[int] = []

    async def handler(socket: ServerConnection) -> None:
        name = json.loads(await socket.recv())[1]
        for n, event in enumerate(events):
            sent.append(n)
            await say(socket, "EVENT", name, event.to_dict())
        await socket.wait_closed()

    heard = Heard()

    async def slow(batch: list[Incoming]) -> None:
        await asyncio.sleep(0.05)
        await Heard.sink(heard, batch)

    heard.sink = slow  # type: ignore[method-assign]

    async def story(reader: Reader) -> None:
        await until(lambda: len(heard.ids) == 1_000, 20)

    with Told(handler, settings) as told:
        reading(told.url, heard, story)
    assert len(set(heard.ids)) == 1_000


def test_a_relay_that_asks_who_we_are_is_answered(settings: Any, keys: Keys) -> None:
    event = keys.A.skill("s")

    async def handler(socket: ServerConnection) -> None:
        await say(socket, "AUTH", "prove it")
        known = False
        async for text in socket:
            row = json.loads(text)
            if row[0] == "AUTH":
                known = row[1]["kind"] == 22242 and ["challenge", "prove it"] in row[1]["tags"]
                await say(socket, "OK", row[1]["id"], known, "")
            elif row[0] == "REQ" and not known:
                await say(socket, "CLOSED", row[1], "auth-required: who are you?")
            elif row[0] == "REQ":
                await say(socket, "EVENT", row[1], event.to_dict())
                await say(socket, "EOSE", row[1])

    heard = Heard()

    async def story(reader: Reader) -> None:
        await until(lambda: event.id in heard.ids and "live" in heard.states)

    with Told(handler, settings) as told:
        reading(told.url, heard, story)
        fetched = relays.fetch(told.url, [SKILLS])
        assert [found.id for found in fetched.events] == [event.id]
        assert fetched.finished == {told.url: True}


def test_an_address_that_is_not_public_is_never_connected_to() -> None:
    met: list[object] = []

    async def handler(socket: ServerConnection) -> None:
        met.append(socket)

    class Nobody:
        RELAYS: list[str] = []

    with Told(handler, Nobody()) as told:
        answer = relays.publish(Key("a").skill("s"), [told.url])[0]
        fetched = relays.fetch([told.url], [SKILLS], 2)
    assert not answer.ok
    assert "not public" in answer.message
    assert fetched.problems[told.url] == "its address is not public"
    assert met == []
