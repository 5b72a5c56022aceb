"""P29, L13: many calls reserve at the same moment; run as a process, on the database named by DATABASE_URL."""

from decimal import Decimal
from typing import Any

import django


def reserved_by(run: Any, tokens: int) -> bool:
    """One call that is let through: 0.05 US dollars at the price the owner named."""
    from agents.models import Step
    from agents.runner.attempting import Attempting
    from agents.runner.journal import Journal
    from agents.runner.lease import Lease

    attempts = Attempting(run, Journal(run), Lease(run))
    step = attempts.begin("openai/dear", 1, 0, tokens, 0.0)
    assert step.state == Step.State.RUNNING or step.outcome == "budget", step.error
    return bool(step.state == Step.State.RUNNING)


def overspend() -> None:
    """Twenty calls at once with room for a few: exactly those few are let through, whatever limits them."""
    from django.utils import timezone

    from agents.models import Agent, Budget, OwnModel, Reservation, Run, Step
    from agents.runner.journal import Journal
    from tests.agents import rows
    from tests.agents.race import in_threads

    agent = rows.agent(rows.owner())
    prices = {"input": Decimal(0), "output": Decimal(50)}
    OwnModel.objects.put(agent, "openai/dear", prices, timezone.now())
    skill = f"31123:{'a' * 64}:dear"
    scopes: list[tuple[Agent | None, str, str, str]] = [
        (None, "site", "", "day"),
        (agent, "agent", "", "month"),
        (agent, "skill", skill, "day"),
        (agent, "trigger", skill, "month"),
        (agent, "run", "", "run"),
    ]
    for owner, scope, target, period in scopes:
        Run.objects.all().delete()
        Budget.objects.all().delete()
        Budget.objects.create(agent=owner, scope=scope, target=target, period=period, limit=Decimal(1))
        many = {"skill_address": skill, "trigger_kind": "cron"}
        before = rows.run(agent, **many)
        spent = Step.objects.create(run=before, position=1, kind="model", name="x", started_at=timezone.now())
        Journal(before).reserve(spent, Decimal("0.80"))
        let: list[bool] = []
        if scope == "run":  # carried out by one worker at a time
            let += [reserved_by(before, 1_000) for _ in range(20)]
        else:
            runs = [rows.run(agent, **many) for _ in range(20)]
            in_threads(20, lambda number, runs=runs, let=let: let.append(reserved_by(runs[number], 1_000)))
        used = sum((one.amount for one in Reservation.objects.all()), Decimal(0))
        assert (sum(let), used) == (4, Decimal(1)), (scope, sum(let), used)


if __name__ == "__main__":
    django.setup()
    from tests.agents import race

    race.main(overspend)
