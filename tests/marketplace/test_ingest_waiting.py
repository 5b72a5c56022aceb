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


def test_who_is_stopped_in_its_turn_does_not_stop_others_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LONGEST", 0.02)
    with waiting.turn():  # and no transaction: as if it hung before or after it
        writer = Writer()
        writer.start()
        writer.join()
    assert Heartbeat.objects.exists()


def test_a_batch_is_cut_short_for_a_waiting_writer(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "STEP", 2)
    monkeypatch.setattr(storing, "SHORT", 1)
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


def test_steps_are_short_while_others_come_and_go(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    take = storing._Transaction.take

    def noted(work: storing._Transaction, step: list[storing.Checked]) -> None:
        sizes.append(len(step))
        take(work, step)

    monkeypatch.setattr(storing._Transaction, "take", noted)
    events = [Incoming(keys.A.skill(f"s{n}", at=T0 + n)) for n in range(40)]
    monkeypatch.setattr(waiting, "lately", lambda: True)
    store(events[:30], NOW)
    monkeypatch.setattr(waiting, "lately", lambda: False)
    store(events[30:], NOW)
    assert sizes == [20, 10, 10]


def test_the_log_is_copied_back_after_so_many_rows(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(pace, "CHECKPOINT", 10)
    with connection.execute_wrapper(lambda run, sql, *rest: (told.append(sql), run(sql, *rest))[1]):
        store([Incoming(keys.A.skill(f"s{n}", at=T0 + n)) for n in range(20)], NOW)
        store([Incoming(keys.A.skill("s0", at=T0))], NOW)
    assert told.count("PRAGMA wal_checkpoint(PASSIVE)") == 1
    assert told.index("PRAGMA wal_checkpoint(PASSIVE)") > told.index("BEGIN IMMEDIATE")


def test_nobody_waits_and_nothing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None:
        raise AssertionError("paused for nobody")

    monkeypatch.setattr(pace.time, "sleep", sleep)
    for _ in range(20):
        with pace.write():
            pass
