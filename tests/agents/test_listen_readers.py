"""A reader that ends by our own fault is said beside its relay, and reads again."""

import asyncio
import logging

import pytest
from django.db import OperationalError

from agents.management.commands import listen
from agents.management.commands.listen import Listener
from marketplace import relays
from marketplace.models import Relay, Skill
from marketplace.protocol.events import Event
from tests.keys import Keys

URL = "ws://127.0.0.1:1"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Instead of waiting."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(listen.asyncio, "sleep", sleep)
    return found


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[relays.Status]:
    found: list[relays.Status] = []

    async def report(self: Listener, status: relays.Status) -> None:
        found.append(status)
        if len(found) == 2:
            raise OperationalError("the disk is full")

    monkeypatch.setattr(Listener, "_report", report)
    return found


def test_it_starts_again_with_growing_pauses_until_cancelled(
    pauses: list[float], told: list[relays.Status], caplog: pytest.LogCaptureFixture
) -> None:
    class Failing:
        url = URL
        passed = {"a" * 64: None}
        started = 0

        async def run(self) -> None:
            self.started += 1
            if self.started == 10:
                raise asyncio.CancelledError
            raise ValueError(f"no. {self.started}")

    async def read() -> None:
        with pytest.raises(asyncio.CancelledError):
            await Listener()._keep_reading(reader)  # type: ignore[arg-type]

    reader = Failing()
    with caplog.at_level(logging.ERROR, logger="agents.management.commands.listen"):
        asyncio.run(read())
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert {status.state for status in told} == {Relay.State.FAULTY}
    assert told[0].detail == "reading it failed here: ValueError: no. 1; starting again in 1 s"
    assert reader.passed == {}
    assert len([record for record in caplog.records if record.getMessage().startswith(f"reading {URL} ended")]) == 9


@pytest.mark.django_db
def test_an_event_that_cannot_be_dealt_with_takes_no_other_with_it(
    keys: Keys, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = Listener._fire

    def fire(self: Listener, event: Event, relay: str) -> None:
        if event.value("d") == "odd":
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        real(self, event, relay)

    monkeypatch.setattr(Listener, "_fire", fire)
    batch = [relays.Incoming(keys.A.skill(name), URL, checked=True) for name in ("one", "odd", "two")]
    listener = Listener()
    listener._take(batch)
    assert set(listener.seen) == {batch[0].raw.id, batch[2].raw.id}  # type: ignore[union-attr]
    assert Skill.objects.count() == 3
    assert len(caplog.records) == 1
