"""What our own statements write is what Django's would."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from django.forms.models import model_to_dict

from agents.models import Reservation, Run, Step
from agents.runner import statements
from tests.agents.world import NOW, make_agent

VALUES: dict[str, Any] = {
    "input": {"text": "é % 'q' \" %s", "number": 1},
    "output": {"a": [1, None, {"b": "\\"}]},
    "usage": None,
    "text": "line\n“quoted” %s 🍕",
    "cost": Decimal("0.000000000001"),
    "estimated": True,
    "finished_at": NOW,
    "input_tokens": 7,
}


@pytest.fixture
def run() -> Run:
    return Run.objects.create(agent=make_agent(), created_at=NOW, occasion_key="x", cost=Decimal("1.5"))


def kept(step: Step) -> dict[str, Any]:
    found = model_to_dict(Step.objects.get(pk=step.pk))
    return {name: value for name, value in found.items() if name not in {"id", "position"}}


def made(run: Run, position: int, **values: Any) -> Step:
    return Step(run=run, kind="model", name="a/b", position=position, started_at=NOW, **values)


@pytest.mark.django_db
def test_an_inserted_row_is_the_one_django_would_insert(run: Run) -> None:
    ours, theirs = made(run, 1, **VALUES), made(run, 2, **VALUES)
    statements.insert(ours)
    theirs.save(force_insert=True)
    assert ours.pk
    assert ours.pk != theirs.pk
    assert kept(ours) == kept(theirs)
    ours.outcome = "text"
    ours.save()  # it counts as a row, and not as one to be added
    assert Step.objects.filter(run=run).count() == 2


@pytest.mark.django_db
def test_an_updated_row_is_the_one_django_would_update(run: Run) -> None:
    ours, theirs = made(run, 1), made(run, 2)
    for step in (ours, theirs):
        statements.insert(step)
    assert statements.update(Step, VALUES, pk=ours.pk) == 1
    assert Step.objects.filter(pk=theirs.pk).update(**VALUES) == 1
    assert kept(ours) == kept(theirs)


@pytest.mark.django_db
def test_only_rows_that_are_as_said_are_changed(run: Run) -> None:
    step = made(run, 1, state=Step.State.RUNNING)
    statements.insert(step)
    assert statements.update(Step, {"state": Step.State.DONE}, pk=step.pk, state=Step.State.RUNNING) == 1
    assert statements.update(Step, {"text": "late"}, pk=step.pk, state=Step.State.RUNNING) == 0
    assert (kept(step)["state"], kept(step)["text"]) == ("done", "")


@pytest.mark.django_db
def test_amounts_are_added_and_rows_found_by_what_they_belong_to(run: Run) -> None:
    statements.add(Run, {"cost": Decimal("0.25"), "input_tokens": 3}, pk=run.pk)
    statements.add(Run, {"cost": Decimal("0.25"), "input_tokens": 4}, pk=run.pk)
    run.refresh_from_db()
    assert (run.cost, run.input_tokens) == (Decimal(2), 7)
    step = made(run, 1)
    statements.insert(step)
    statements.insert(Reservation(step=step, agent=run.agent, amount=Decimal(1), at=NOW))
    assert statements.update(Reservation, {"settled": Decimal("0.5")}, step=step.pk) == 1
    assert Reservation.objects.get(step=step).settled == Decimal("0.5")


@pytest.mark.django_db(transaction=True)
def test_they_are_part_of_the_transaction_around_them(run: Run) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        statements.insert(made(run, 1))
        raise ZeroDivisionError
    assert not Step.objects.exists()
    statements.insert(made(run, 1))
    assert Step.objects.count() == 1
