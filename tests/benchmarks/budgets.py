"""How long a call waits for its budgets: a hundred thousand calls on record, every scope limited.

On a throw-away SQLite file, or in a database of its own on the PostgreSQL that TEST_DATABASE_URL names.
"""

import os
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import django

CALLS, TIMES = 100_000, 200
SKILLS = 50


def filled() -> object:
    """A month of one agent: its calls spread over many skills, half of them triggered."""
    from django.utils import timezone

    from agents.models import Budget, Reservation, Step
    from tests.agents import rows

    agent, now = rows.agent(rows.owner()), timezone.now()
    start = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    span = max((now - start).total_seconds(), 3_600)
    runs = [rows.run(agent, skill_address=f"31123:aa:{number}") for number in range(SKILLS)]
    for first in range(0, CALLS, 5_000):
        steps = Step.objects.bulk_create(
            Step(run=runs[at % SKILLS], position=at, kind="model", name="m", started_at=now)
            for at in range(first, first + 5_000)
        )
        Reservation.objects.bulk_create(
            Reservation(
                step=step,
                agent=agent,
                skill_address=step.run.skill_address,
                triggered=at % 2 == 0,
                amount=Decimal("0.01"),
                settled=Decimal("0.001"),
                at=start + timedelta(seconds=span * (first + at) / CALLS),
            )
            for at, step in enumerate(steps)
        )
    for scope, target in (("agent", ""), ("skill", runs[0].skill_address), ("trigger", runs[0].skill_address)):
        for period in ("day", "month"):
            Budget.objects.create(agent=agent, scope=scope, target=target, period=period, limit=1_000)
    Budget.objects.create(agent=agent, scope="run", period="run", limit=1_000)
    runs[0].trigger_kind = "cron"
    return runs[0]


def middle(work: Callable[[], object]) -> float:
    """Milliseconds, the median."""
    took = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return sorted(took)[TIMES // 2] * 1_000


def main() -> None:
    from django.utils import timezone

    from agents.models.allowances import allowances, overview

    run = filled()
    agent = run.agent  # type: ignore[attr-defined]
    one = middle(lambda: allowances(agent, timezone.now(), run=run))  # type: ignore[arg-type]
    page = middle(lambda: overview([agent], timezone.now()))
    print(f"{CALLS:,} calls this month, 7 budgets: a call looks for {one:.1f} ms, the page for {page:.1f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="journeyman-bench-") as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "marketplace.settings",
            "JOURNEYMAN_VAR": folder,
            "DATABASE_URL": os.environ.get("TEST_DATABASE_URL") or f"sqlite:///{folder}/budgets.sqlite3",
        }
        django.setup()
        from tests.agents import race

        race.main(main)
