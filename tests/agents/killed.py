"""A worker killed at every point of a model call; run as a process, on the database named by DATABASE_URL."""

import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import django

# What is killed where, and what the steps are after another worker took the run over: (state, estimated).
GONE, DONE = ("unknown", True), ("done", False)
POINTS: dict[str, list[tuple[str, bool]]] = {
    "while it is reserved": [DONE],  # rolled back: there never was a call
    "before it leaves": [GONE, DONE],
    "while it is out": [GONE, DONE],
    "before it is charged": [GONE, DONE],
    "after it is charged": [DONE],  # replayed, not asked again
}


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(work: Callable[..., Any]) -> Callable[..., Any]:
    def both(*given: Any, **named: Any) -> None:
        work(*given, **named)
        die()

    return both


def worker(run_id: str, point: str) -> None:
    """The child: carries out the run until it is killed."""
    from agents import runner
    from agents.runner.attempting import Attempting
    from agents.runner.journal import Journal

    if point == "while it is reserved":
        Journal.reserve = after(Journal.reserve)  # type: ignore[method-assign]
    elif point == "before it leaves":
        Attempting.ask = die  # type: ignore[method-assign,assignment]
    elif point == "before it is charged":
        Journal.charge = die  # type: ignore[method-assign,assignment]
    elif point == "after it is charged":
        Journal.charge = after(Journal.charge)  # type: ignore[method-assign]
    runner.execute(run_id)


def killed_at(point: str, run_id: str, server: Any) -> None:
    from django.db import connections

    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            worker(run_id, point)
        except BaseException:
            traceback.print_exc()
        os._exit(3)
    until, asked = time.monotonic() + 30, len(server.asked)
    while point == "while it is out" and len(server.asked) == asked and time.monotonic() < until:
        time.sleep(0.02)
    if point == "while it is out":
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), (point, status)


def check(run: Any, expected: list[tuple[str, bool]], point: str) -> None:
    from agents.models import Reservation
    from agents.models.allowances import allowances

    run.refresh_from_db()
    steps = list(run.steps.all())
    assert [(step.state, step.estimated) for step in steps] == expected, (point, [step.state for step in steps])
    assert run.cost == sum((step.cost for step in steps), Decimal(0)), point
    kept = Reservation.objects.filter(step__run=run)
    assert [one.settled for one in kept.order_by("step__position")] == [step.cost for step in steps], point
    assert all(one.settled == one.amount for one in kept if one.step.estimated), point
    (left,) = allowances(run.agent, steps[-1].started_at)
    counted = (one.amount if one.settled is None else one.settled for one in Reservation.objects.all())
    assert left.used == sum(counted, Decimal(0)), point


def everywhere() -> None:
    from django.conf import settings
    from django.utils import timezone

    from agents import runner
    from agents.llm.library import litellm
    from agents.models import Budget, Run
    from agents.runner import settling
    from tests import fakes
    from tests.agents import rows

    litellm()  # its import once, before there are children
    owner = rows.owner()
    agent = rows.agent(owner)
    Budget.objects.create(agent=agent, period="month", limit=100)
    with fakes.ModelServer() as server:
        settings.LLM_BASE_URL, settings.LLM_API_KEY, settings.LLM_TIMEOUT = server.url, "key", 10
        # All die before the parent asks a model itself: a child must not share its connections.
        server.script(replace(fakes.text("too late"), delay=10.0), model="gpt-4o")
        runs = {}
        for point in [*POINTS, "stopped"]:
            chain = {"llm": "openai/gpt-4o"} if point == "while it is out" else {}
            runs[point] = rows.run(agent, input={"message": point}, overrides=chain)
            killed_at(point if point in POINTS else "before it leaves", runs[point].pk, server)
        for point, expected in POINTS.items():
            run = runs[point]
            Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
            assert runner.execute(run.pk)
            check(run, expected, point)
            assert run.status == "succeeded", point
        # The last one is stopped: nobody takes it over, the tick settles what was left.
        run = runs["stopped"]
        run.cancel(timezone.now(), "Stopped.")
        assert settling.settle(timezone.now()) == 0
        assert settling.settle(timezone.now() + timedelta(minutes=3)) == 1
        assert settling.settle(timezone.now() + timedelta(minutes=3)) == 0
        check(run, [GONE], "stopped")


if __name__ == "__main__":
    django.setup()
    from tests.agents import race

    race.main(everywhere)
