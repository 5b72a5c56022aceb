"""Ingest shares SQLite's one write lock: it ends a transaction early for whoever waits, and pauses for nobody else."""

import threading
import time

import pytest
from django.db import connection, transaction

from marketplace.ingest import Incoming, pace, store, storing, waiting
from marketplace.models import Heartbeat, Skill
from tests.keys import T0, Keys

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases have many writers at once"),
]
NOW = T0 + 1_000


class Writer(threading.Thread):
    """Somebody else who writes one row, as a request or a heartbeat does."""

    def run(self) -> None:
        try:
            with transaction.atomic():
                Heartbeat.objects.create(role="test", instance=self.name, at="2026-01-01T00:00:00Z")
        finally:
            connection.close()


def until(wanted: bool) -> None:
    ends = time.monotonic() + 10
    while waiting.others_wait() is not wanted:
        assert time.monotonic() < ends
        time.sleep(0.001)


def test_who_waits_for_the_lock_is_seen_and_comes_first() -> None:
    with pace.write():
        assert not waiting.others_wait()
        writer = Writer()
        writer.start()
        until(True)
        assert not Heartbeat.objects.exists()
    with pace.write():
        assert Heartbeat.objects.exists()
        assert not waiting.others_wait()
    writer.join()


def test_a_statement_outside_a_transaction_is_seen_too() -> None:
    def write() -> None:
        Heartbeat.objects.filter(role="none").update(detail="x")
        connection.close()

    with pace.write():
        thread = threading.Thread(target=write)
        thread.start()
        until(True)
    thread.join()
    until(False)


def test_a_batch_is_cut_short_for_a_waiting_writer(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "STEP", 2)
    seen: list[int] = []
    writer = Writer()
    take = storing._Transaction.take

    def slowly(work: storing._Transaction, step: list[storing.Checked]) -> None:
        take(work, step)
        if not writer.ident:
            writer.start()
            until(True)
        elif Heartbeat.objects.exists():
            seen.append(len(work.outcomes))

    monkeypatch.setattr(storing._Transaction, "take", slowly)
    outcomes = store([Incoming(keys.A.skill(f"s{n}", at=T0 + n)) for n in range(8)], NOW)
    writer.join()
    assert [outcome.outcome for outcome in outcomes] == ["stored"] * 8
    assert seen == [2, 4, 6]  # after the first two the writer had its turn, then the rest went as one transaction
    assert Skill.objects.count() == 8


def test_nobody_waits_and_nothing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None:
        raise AssertionError("paused for nobody")

    monkeypatch.setattr(pace.time, "sleep", sleep)
    for _ in range(20):
        with pace.write():
            pass
