"""The tick makes good what messages missed, one failing part stops no other, and a broker folder stays small."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Consumer, Exchange, Queue
from kombu.transport import TRANSPORT_ALIASES

from agents import dispatch, tasks
from agents.dispatch import announcing
from agents.models import Agent, HeldBack, Run
from marketplace import celery
from marketplace.models import Heartbeat
from tests.agents.world import NOW, happened, make_agent, make_trigger, note
from tests.stack import ROOT


@pytest.fixture
def agent() -> Agent:
    return make_agent(limits={"cooldown": 0, "concurrent": 10_000, "llm_per_minute": 10_000})


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    ids: list[str] = []
    monkeypatch.setattr(celery.app, "send_task", lambda name, args, **_: ids.append(args[0]))
    return ids


def queued(agent: Agent, **fields: Any) -> Run:
    values = {"occasion_key": Run().pk, "created_at": NOW} | fields
    return Run.objects.create(agent=agent, **values)


def seconds(number: int) -> Any:
    return NOW + timedelta(seconds=number)


@pytest.mark.django_db
class TestAnnouncing:
    def test_what_was_never_announced_goes_out_at_once(self, agent: Agent, sent: list[str]) -> None:
        run = queued(agent)
        assert tasks.announce(NOW) == 1
        assert sent == [run.pk]
        assert tasks.announce(seconds(1)) == 0

    def test_a_message_that_led_to_nothing_is_sent_again_with_growing_pauses(
        self, agent: Agent, sent: list[str]
    ) -> None:
        queued(agent)
        times = [second for second in range(0, 400, 5) if tasks.announce(seconds(second))]
        assert times == [0, 35, 70, 140, 280]

    def test_a_run_left_by_a_dead_worker_goes_out_when_its_lease_ends(self, agent: Agent, sent: list[str]) -> None:
        queued(agent, status="running", announced_at=NOW, lease_until=seconds(60), deliveries=1)
        assert tasks.announce(seconds(59)) == 0
        assert tasks.announce(seconds(61)) == 1

    def test_a_waiting_run_goes_out_when_its_time_comes(self, agent: Agent, sent: list[str]) -> None:
        queued(agent, status="waiting", announced_at=NOW, waiting_until=seconds(7))
        assert tasks.announce(seconds(6)) == 0
        assert tasks.announce(seconds(8)) == 1

    def test_a_run_that_waits_for_its_owner_stays(self, agent: Agent, sent: list[str]) -> None:
        queued(agent, status="waiting", announced_at=NOW, waiting_until=None)
        assert tasks.announce(seconds(600)) == 0

    def test_a_run_that_kills_its_workers_is_parked(self, agent: Agent, sent: list[str]) -> None:
        """P23."""
        run = queued(agent, status="running", lease_until=seconds(60), deliveries=3)
        again = queued(agent, status="running", lease_until=seconds(60), deliveries=2)
        assert tasks.park(seconds(61)) == 1
        run.refresh_from_db()
        assert (run.status, run.reason, run.finished_at) == ("failed", "parked", seconds(61))
        tasks.announce(seconds(61))
        assert sent == [again.pk]


@pytest.mark.django_db
class TestSchedules:
    def test_a_due_slot_makes_one_run_and_moves_on(self, agent: Agent) -> None:
        slot = NOW.replace(second=0)
        tags = [["trigger", "cron"], ["schedule", "* * * * *"]]
        trigger = make_trigger(agent, kind="cron", tags=tags, next_run_at=slot)
        assert [tasks.fire(NOW) for _ in range(3)] == [1, 0, 0]
        assert Run.objects.get().occasion_key == "2026-03-01T12:00:00Z"
        trigger.refresh_from_db()
        assert trigger.next_run_at == slot + timedelta(minutes=1)

    def test_after_hours_away_there_is_one_run_and_no_burst(self, agent: Agent) -> None:
        """P27."""
        tags = [["trigger", "cron"], ["schedule", "* * * * *"]]
        make_trigger(agent, kind="cron", tags=tags, next_run_at=NOW - timedelta(hours=3))
        for second in range(20):
            tasks.fire(seconds(second))
        assert Run.objects.count() == 1


@pytest.mark.django_db(transaction=True)
class TestTick:
    def test_one_failing_part_stops_no_other_and_is_named(
        self, agent: Agent, sent: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def expire(now: Any) -> int:
            raise RuntimeError("disk full")

        monkeypatch.setattr(tasks, "PARTS", (tasks.park, expire, tasks.announce))
        run = queued(agent)
        assert tasks.tick() == {"park": 0, "expire": -1, "announce": 1}
        assert sent == [run.pk]
        assert Heartbeat.objects.get(role="tick").detail == "expire"

    def test_with_nothing_to_do_it_costs_few_queries(self, agent: Agent, django_assert_max_num_queries: Any) -> None:
        make_trigger(agent)
        tasks.tick()
        with django_assert_max_num_queries(22):
            tasks.tick()

    def test_all_parts_run(self, sent: list[str]) -> None:
        assert all(count >= 0 for count in tasks.tick().values())

    def test_old_counts_and_signs_of_life_are_dropped(self, agent: Agent) -> None:
        trigger = make_trigger(agent)
        hour = NOW.replace(minute=0, second=0)
        HeldBack.objects.create(trigger=trigger, minute=hour - timedelta(days=31), reason="cooldown", count=3)
        Heartbeat.beat("worker", "long gone", hour - timedelta(days=2))
        assert tasks.tidy(hour) == 2


def test_the_command_ticks_and_ends_at_a_signal() -> None:
    """Itself in a process of its own; what a tick does is replaced by a line."""
    program = """
import django
django.setup()
from agents import tasks
tasks.tick = lambda: print("tick", flush=True)
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "tick"])
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["tick\n", "tick\n"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


@pytest.fixture
def folder(tmp_path: Path) -> dict[str, Any]:
    return celery.transport_options("filesystem://", tmp_path)


def test_the_folder_transport_is_ours_and_looks_into_it_besides_listening(folder: dict[str, Any]) -> None:
    assert TRANSPORT_ALIASES["filesystem"] == "marketplace.celery:AtomicTransport"
    with Connection("filesystem://", transport_options=folder) as connection:
        assert isinstance(connection.transport, celery.AtomicTransport)
        assert connection.transport.polling_interval == 0.25


def test_every_message_arrives_once_and_whole_whoever_reads_and_writes(folder: dict[str, Any]) -> None:
    """Two writers, three readers: kombu's own transport hands out half-written messages here."""
    sent, read, errors = 150, [], []
    writing = threading.Event()
    body = "x" * 200_000  # long enough to be caught half-written

    def write(part: int) -> None:
        with Connection("filesystem://", transport_options=folder) as connection:
            queue = connection.SimpleQueue(Queue("runs", Exchange("runs"), "runs"))
            for number in range(sent):
                queue.put([part, number, body])

    def take() -> None:
        with Connection("filesystem://", transport_options=folder) as connection:
            queue = connection.SimpleQueue(Queue("runs", Exchange("runs"), "runs"))
            while True:
                all_sent = writing.is_set()
                try:
                    message = queue.get(block=False)
                    read.append((*message.payload[:2], len(message.payload[2])))
                    message.ack()
                except queue.Empty:
                    if all_sent:
                        return
                except Exception as error:
                    errors.append(error)
                    return

    readers = [threading.Thread(target=take) for _ in range(3)]
    writers = [threading.Thread(target=write, args=(part,)) for part in range(2)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join(30)
    writing.set()
    for thread in readers:
        thread.join(30)
    assert errors == []
    assert sorted(read) == [(part, number, len(body)) for part in range(2) for number in range(sent)]
    assert list(Path(folder["data_folder_in"]).iterdir()) == []


def test_a_message_is_heard_at_once_and_an_answer_makes_room_for_the_next(folder: dict[str, Any]) -> None:
    """By a real event loop, which is never given the time to look by itself."""
    from kombu.asynchronous import Hub

    folder["polling_interval"] = 3_600
    taken: list[Any] = []
    queue = Queue("runs", Exchange("runs"), "runs")
    with Connection("filesystem://", transport_options=folder) as hears, closing(Hub()) as loop:
        channel = hears.channel()
        channel.basic_qos(0, 1, False)
        consumer = Consumer(channel, [queue], on_message=taken.append)
        consumer.consume()
        hears.transport.register_with_event_loop(hears.transport, loop)
        turn = loop.create_loop()
        with Connection("filesystem://", transport_options=folder) as sends:
            producer = sends.Producer()
            for number in range(2):
                producer.publish({"number": number}, exchange="runs", routing_key="runs")
        until(lambda: next(turn), lambda: taken)
        assert [message.payload["number"] for message in taken] == [0], "one at a time is what it has room for"
        taken[0].ack()
        until(lambda: next(turn), lambda: len(taken) == 2)
        taken[1].ack()
        consumer.cancel()


def until(act: Callable[[], object], reached: Callable[[], object]) -> None:
    for _ in range(10_000):
        if reached():
            return
        act()
    raise AssertionError("never")


def test_nobody_listening_is_no_reason_to_wait(tmp_path: Path) -> None:
    celery.ring(tmp_path)
    with celery.hear(tmp_path) as bell:
        for _ in range(70_000):  # more than a pipe holds
            celery.ring(tmp_path)
        assert bell.read(4_096)
    celery.ring(tmp_path)


def test_a_message_needs_nothing_that_somebody_must_have_set_up(folder: dict[str, Any]) -> None:
    """By kombu's own a message goes nowhere while the table of queues is being written, or is gone."""
    with Connection("filesystem://", transport_options=folder) as connection:
        connection.Producer().publish({}, exchange="runs", routing_key="runs")
    assert [path.name.partition(".")[2] for path in Path(folder["data_folder_in"]).iterdir()] == ["runs.msg"]


@pytest.mark.django_db(transaction=True)
def test_no_more_than_two_hundred_messages_wait_in_the_folder(
    agent: Agent, folder: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcing, "folder", lambda: Path(folder["data_folder_out"]))
    monkeypatch.setattr(celery.app, "send_task", lambda name, args, **_: write(args[0]))

    def write(run_id: str) -> None:
        (Path(folder["data_folder_out"]) / f"{run_id}.runs.msg").touch()

    for _ in range(230):
        queued(agent)
    assert tasks.announce(NOW) == 200
    assert tasks.announce(seconds(1)) == 0
    for path in list(Path(folder["data_folder_in"]).iterdir())[:20]:
        path.unlink()
    assert tasks.announce(seconds(2)) == 20


def test_each_broker_is_told_what_it_needs(tmp_path: Path) -> None:
    redis = celery.transport_options("redis://127.0.0.1:6379/0", tmp_path)
    assert (redis["unacked_restore_interval"], redis["unacked_restore_throttle"]) == (2, 1)
    assert celery.transport_options("amqp://guest@127.0.0.1//", tmp_path) == {"confirm_publish": True}
    assert celery.transport_options("memory://", tmp_path) == {}


def test_nothing_waits_in_the_broker_and_nothing_is_kept_of_results() -> None:
    """P25: no ETA, no countdown, no schedule; time is kept by the tick alone."""
    conf = celery.app.conf
    assert conf.task_ignore_result
    assert not conf.result_backend
    assert not conf.beat_schedule
    root = Path(celery.__file__).resolve().parent.parent
    for path in [*root.glob("agents/**/*.py"), *root.glob("marketplace/**/*.py")]:
        text = path.read_text()
        assert "countdown=" not in text, path
        assert "eta=" not in text, path


@pytest.mark.django_db(transaction=True)
def test_a_second_message_for_a_run_finds_nothing_to_do(agent: Agent) -> None:
    run = queued(agent, status="succeeded", finished_at=NOW)
    assert tasks.execute_run(run.pk) is False


@pytest.mark.django_db(transaction=True)
def test_a_triggered_run_is_announced_by_its_id_alone(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """P60: nothing but an id stands in the broker."""
    calls: list[Any] = []
    monkeypatch.setattr(celery.app, "send_task", lambda *args, **kwargs: calls.append((args, kwargs)))
    make_trigger(agent)
    (run,) = dispatch.runs_for(happened(note(text="private words")), NOW)
    ((args, kwargs),) = calls
    assert (args[0], kwargs["args"]) == ("agents.tasks.execute_run", [run.pk])
    assert "private words" not in str(calls)
