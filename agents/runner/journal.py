"""The run's steps as rows: intent before an effect, result after it, replay after a restart."""

from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agents.engine.costs import Usage
from agents.models import Reservation, Run, Step
from agents.models.allowances import counts_as_triggered
from agents.runner import statements
from marketplace.protocol.storable import storable


class Journal:
    """All steps of one run, in order; read once, written one at a time."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.steps: list[Step] = list(run.steps.all())

    def finished(self, kind: str, turn: int, call_id: str = "") -> Step | None:
        """An earlier step of this very place, whatever its state; the newest of several attempts."""
        found = [s for s in self.steps if s.kind == kind and s.turn == turn and s.call_id == call_id]
        return found[-1] if found else None

    def begin(self, kind: str, name: str, turn: int = 0, **values: Any) -> Step:
        step = Step(
            run=self.run,
            position=self.steps[-1].position + 1 if self.steps else 1,
            kind=kind,
            name=storable(name[:200]),
            turn=turn,
            started_at=timezone.now(),
            **storable(values),
        )
        statements.insert(step)
        self.steps.append(step)
        return step

    def reserve(self, step: Step, amount: Decimal | None) -> None:
        """The worst case of a call, counted as spent until it is settled."""
        if amount:
            reservation = Reservation(
                step=step,
                agent=self.run.agent,
                skill_address=self.run.skill_address,
                triggered=counts_as_triggered(self.run),
                amount=amount,
                at=step.started_at,
            )
            statements.insert(reservation)

    def end(self, step: Step, state: str, **values: Any) -> None:
        step.state = state
        step.finished_at = timezone.now()
        self.write(step, {"state": state, "finished_at": step.finished_at, **values})

    def remember(self, step: Step, intent: dict[str, Any]) -> None:
        """Stored when it returns: what a retry must repeat exactly."""
        self.write(step, {"intent": intent})

    def charge(
        self,
        step: Step,
        used: Usage,
        cost: Decimal | None,
        estimated: bool,
        assumed: Decimal | None = None,
        **values: Any,
    ) -> bool:
        """Tokens and money of one attempt, on the step and on the run's totals, in one transaction.

        `assumed` counts against budgets where the cost is unknown; without it what was reserved does. False: it was
        charged before, by a worker that took the run over; nothing is charged twice.
        """
        tokens = {
            "input_tokens": used.input,
            "cached_tokens": used.cached,
            "output_tokens": used.output,
            "reasoning_tokens": used.reasoning,
        }
        values = storable({**tokens, "cost": cost, "estimated": estimated, **values})
        with transaction.atomic():
            if not statements.update(Step, values, pk=step.pk, state=Step.State.RUNNING):
                return False
            counts = assumed if cost is None else cost
            if counts is None:
                Reservation.objects.filter(step=step).update(settled=F("amount"))
            else:
                statements.update(Reservation, {"settled": counts}, step=step.pk)
            totals: dict[str, Any] = {name: value for name, value in tokens.items() if value}
            if cost is None:
                totals["unknown_costs"] = 1
            elif cost:
                totals["cost"] = cost
            if totals:
                statements.add(Run, totals, pk=self.run.pk)
        for name, value in values.items():
            setattr(step, name, value)
        return True

    def close(self) -> None:
        """What is still open when the run ends never got its result."""
        said = {"outcome": "abandoned", "error": "No result was recorded."}
        for step in self.steps:
            if step.state == Step.State.RUNNING and step.kind == Step.Kind.MODEL:
                self.charge_reserved(step, **said)
            elif step.state == Step.State.RUNNING:
                self.end(step, Step.State.UNKNOWN, **said)

    def charge_reserved(self, step: Step, **values: Any) -> bool:
        """An outcome nobody knows costs what was reserved, and says that it is an estimate."""
        ended: dict[str, Any] = {"state": Step.State.UNKNOWN, "finished_at": timezone.now(), **values}
        return self.charge(step, NO_USAGE, reserved(step), estimated=True, **ended)

    def write(self, step: Step, values: dict[str, Any]) -> None:
        values = storable(values)
        for name, value in values.items():
            setattr(step, name, value)
        statements.update(Step, values, pk=step.pk)


NO_USAGE = Usage(known=False)


def reserved(step: Step) -> Decimal | None:
    """What was set aside by a known price; an owner's guess says nothing about what it cost."""
    if step.input.get("assumed"):
        return None
    reservation = getattr(step, "reservation", None)
    if reservation is not None:
        return reservation.amount  # type: ignore[no-any-return]
    # There is none for what is free, nor for what has no known price.
    return Decimal(0) if step.price_version else None
