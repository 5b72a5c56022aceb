"""What a run leaves behind whatever happens to it: one reply per call, money accounted for, storable rows."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.utils import timezone

from agents import llm, runner
from agents.models import Budget, Reservation, Step
from agents.tools import TOOLS
from tests import fakes
from tests.agents import rows
from tests.agents.race import in_threads
from tests.agents.rows import carried_out

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def replies(models):
    return {m["tool_call_id"]: m["content"] for m in models.asked[-1]["messages"] if m["role"] == "tool"}


def test_a_tool_that_breaks_is_a_reply_and_the_run_goes_on(models, helper, monkeypatch, caplog):
    def breaks(ctx):
        raise ZeroDivisionError("with details of ours")

    helper.grants = ["tool_list", "skill_list"]
    helper.save()
    monkeypatch.setitem(TOOLS, "tool_list", replace(TOOLS["tool_list"], function=breaks))
    models.script(fakes.calls(("a", "skill_list", {}), ("b", "tool_list", {}), ("c", "skill_list", {})))
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert run.status == "succeeded"
    assert list(replies(models)) == ["a", "b", "c"]
    assert "ZeroDivisionError" in replies(models)["b"]
    assert "details" not in replies(models)["b"]
    assert [s.state for s in run.steps.filter(kind="tool")] == ["done", "failed", "done"]
    assert "details of ours" in caplog.text


def test_a_worker_that_died_between_two_calls_leaves_a_valid_history(models, helper):
    helper.grants = ["tool_list", "skill_list"]
    helper.save()
    run = rows.run(helper, input={"message": "hi"})
    asked = fakes.calls(("a", "tool_list", {}), ("b", "skill_list", {})).body
    common = {"run": run, "turn": 1, "started_at": timezone.now()}
    Step.objects.create(position=1, kind="model", name="m", state="done", output={"response": asked}, **common)
    Step.objects.create(
        position=2, kind="tool", name="tool_list", call_id="a", state="done", text="kept", risk="reads", **common
    )
    run = carried_out(run)
    assert run.status == "succeeded"
    assert replies(models) == {"a": "kept", "b": "No skills are adopted."}


def test_two_calls_with_one_id_are_each_answered_and_one_is_carried_out(models, helper):
    helper.grants = ["tool_list"]
    helper.save()
    models.script(fakes.calls(("a", "tool_list", {}), ("a", "tool_list", {})))
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert [s.state for s in run.steps.filter(kind="tool")] == ["done", "refused"]
    assert len(replies(models)) == 2


def test_a_call_that_was_out_when_the_worker_died_is_settled_at_its_reservation(models, helper):
    run = rows.run(helper, input={"message": "hi"})
    now = timezone.now()
    step = Step.objects.create(run=run, position=1, kind="model", name="openai/gpt-4o-mini", turn=1, started_at=now)
    Reservation.objects.create(step=step, agent=helper, amount=Decimal("0.5"), at=now)
    run = carried_out(run)
    step.refresh_from_db()
    assert (step.state, step.cost, step.estimated) == ("unknown", Decimal("0.5"), True)
    assert run.cost == Decimal("0.5") + run.steps.get(position=2).cost


def test_a_broken_connection_costs_what_was_reserved_and_a_refusal_nothing(models, helper):
    helper.llm = "openai/gpt-4o-mini, openai/gpt-4o"
    helper.save()
    models.script(fakes.broken_off(), model="gpt-4o-mini")
    models.script(fakes.error(500, "oops"), model="gpt-4o")
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    lost, refused = run.steps.all()
    assert (lost.estimated, refused.estimated) == (True, False)
    assert lost.cost == lost.reservation.amount == lost.reservation.settled > 0
    assert refused.cost == refused.reservation.settled == 0


def test_a_lost_answer_of_unknown_price_is_unknown(models, helper, monkeypatch):
    monkeypatch.setattr(llm.Endpoint, "is_local", False)
    helper.llm = "openai/acme-unknown-1"
    helper.save()
    models.script(fakes.broken_off())
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert run.steps.get().cost is None
    assert run.unknown_costs == 1


def test_a_model_without_price_or_estimate_is_refused_while_a_budget_applies(models, helper, monkeypatch):
    monkeypatch.setattr(llm.Endpoint, "is_local", False)
    helper.llm = "openai/acme-unknown-1"
    helper.save()
    Budget.objects.create(agent=helper, period="month", limit=1)
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert (run.status, run.reason) == ("failed", "budget")
    assert models.asked == []


def test_a_cheaper_model_of_the_chain_may_still_fit_the_budget(models, helper):
    helper.llm = "openai/gpt-4o, openai/gpt-4o-mini"
    helper.save()
    Budget.objects.create(agent=helper, period="day", limit=Decimal("0.01"))
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert run.status == "succeeded"
    assert [(s.name, s.outcome) for s in run.steps.all()] == [
        ("openai/gpt-4o", "budget"),
        ("openai/gpt-4o-mini", "text"),
    ]


def test_what_no_database_takes_is_marked_and_kept(models, helper):
    helper.grants = ["memory_save"]
    helper.save()
    models.script(
        fakes.calls(("a", "memory_save", {"text": "nul \0 half \ud800 end"})), fakes.text("so \0 \ud800 be it")
    )
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert (run.status, run.output) == ("succeeded", "so � � be it")
    assert helper.memories.get().text == "nul � half � end"


def test_a_run_that_fails_leaves_no_step_open(models, helper, monkeypatch):
    monkeypatch.setattr("agents.runner.attempting.outcomes.read", lambda *_: 1 / 0)
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert (run.status, run.reason) == ("failed", "bug")
    assert "ZeroDivisionError" in run.reason_words
    assert [s.state for s in run.steps.all()] == ["unknown"]


@pytest.mark.django_db(transaction=True)
def test_parallel_runs_never_spend_more_than_the_budget(models):
    helper = rows.agent(rows.owner(), llm="openai/gpt-4o-mini", max_tokens=10_000)
    runs = [rows.run(helper, input={"message": "hi"}, trigger_kind="nostr-subscription") for _ in range(4)]
    # Each may cost 0.006 for its answer and a little for its question: two fit.
    Budget.objects.create(agent=helper, period="day", limit=Decimal("0.0125"))
    models.script(*[replace(fakes.text("ok", completion_tokens=10_000, finish="stop"), delay=0.5) for _ in range(4)])
    in_threads(4, lambda number: runner.execute(runs[number].pk))
    for run in runs:
        run.refresh_from_db()
    assert sorted(run.status for run in runs) == ["failed", "failed", "succeeded", "succeeded"]
    assert {run.reason for run in runs} == {"", "budget"}
    assert sum(run.cost for run in runs) <= Decimal("0.0125")
    assert len(models.asked) == 2
