"""A skill that starts another: one run of it, waited for in the row, with no more rights than who started it."""

from typing import Any

import pytest
from django.utils import timezone

from agents import runner
from agents.engine.limits import MAX_DEPTH
from agents.models import Agent, Run
from agents.runner.verbs import RunVerbs
from agents.tools import TOOLS, starting
from tests import fakes
from tests.agents import rows

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

ASK = ("a", "skill_execute", {"skill": "helps", "message": "What is 2 + 2?"})


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """In these tests nobody else carries out the other run meanwhile."""
    monkeypatch.setattr(starting, "PATIENCE", 0.0)


@pytest.fixture
def able(helper: Agent) -> Agent:
    helper.grants = ["skill_execute", "memory_save", "nostr_query"]
    helper.save()
    return helper


def adopted(agent: Agent, *tags: list[str], **content: Any) -> None:
    content = {"description": "helps", "template": "Calculate.", "context_mode": "inject", **content}
    found = rows.skill(content, ["scope", "public"], *tags, d="helps")
    rows.adopt(agent, found)


def executed(run: Run) -> Run:
    assert runner.execute(run.pk)
    run.refresh_from_db()
    return run


def started(agent: Agent, **values: Any) -> Run:
    return executed(rows.run(agent, input={"message": "go"}, **values))


def test_the_parent_waits_in_its_row_and_goes_on_with_the_answer(models: Any, able: Agent) -> None:
    adopted(able)
    models.script(fakes.calls(ASK))
    parent = started(able)
    assert (parent.status, parent.reason, parent.lease_token) == ("waiting", "child", "")
    child = parent.children.get()
    assert (child.status, child.depth, child.skill_name) == ("queued", 1, "helps")
    models.script(fakes.text("4"), fakes.text("It says 4."))
    assert executed(child).output == "4"
    parent.refresh_from_db()
    assert parent.waiting_until <= timezone.now(), "the child's end wakes it"
    assert executed(parent).output == "It says 4."
    reply = next(m["content"] for m in models.asked[-1]["messages"] if m["role"] == "tool")
    assert child.pk in reply
    assert "\n4\n" in reply
    assert parent.waits == 0


def test_waking_too_early_starts_no_second_run(models: Any, able: Agent) -> None:
    adopted(able)
    models.script(fakes.calls(ASK))
    parent = started(able)
    for _ in range(2):
        Run.objects.filter(pk=parent.pk).update(waiting_until=timezone.now())
        assert executed(parent).status == "waiting"
    assert parent.children.count() == 1
    assert len(models.asked) == 1


def test_a_child_that_ends_at_once_is_answered_without_waiting(
    models: Any, able: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopted(able)
    start = RunVerbs.start

    def start_and_end(self: RunVerbs, *given: Any) -> Run:
        child = start(self, *given)
        runner.execute(child.pk)
        return child

    monkeypatch.setattr(RunVerbs, "start", start_and_end)
    models.script(fakes.calls(ASK), fakes.text("4"), fakes.text("Four."))
    parent = started(able)
    assert (parent.status, parent.output) == ("succeeded", "Four.")


def test_stopping_a_run_stops_what_it_started(models: Any, able: Agent) -> None:
    adopted(able)
    models.script(fakes.calls(ASK))
    parent = started(able)
    followed = rows.run(able, key="chain", parent=parent)  # by a trigger, not by a tool: it goes its own way
    assert parent.cancel(timezone.now(), "You stopped it.")
    assert {run.skill_name: run.status for run in parent.children.all()} == {"helps": "cancelled", "": "queued"}
    assert followed.parent == parent


@pytest.mark.parametrize("how", ["failed", "stopped"])
def test_a_child_without_an_answer_is_said(models: Any, able: Agent, how: str) -> None:
    adopted(able)
    models.script(fakes.calls(ASK))
    parent = started(able)
    child = parent.children.get()
    if how == "stopped":
        child.cancel(timezone.now(), "You stopped it.")
    else:
        models.script(fakes.text(""))
        assert executed(child).status == "failed"
    Run.objects.filter(pk=parent.pk).update(waiting_until=timezone.now())
    assert executed(parent).status == "succeeded"
    reply = next(m["content"] for m in models.asked[-1]["messages"] if m["role"] == "tool")
    assert reply.startswith(f"Error: The run {child.pk} ended as {'cancelled' if how == 'stopped' else 'failed'}")


@pytest.mark.parametrize(
    ("granted", "asked", "given"),
    [
        (["skill_execute", "memory_save"], None, {"skill_execute", "memory_save"}),
        (["skill_execute"], ["memory_save", "nostr_query"], set()),
        (["skill_execute", "memory_save"], ["memory_save", "nostr_post"], {"memory_save"}),
        (["skill_execute", "memory_save"], False, set()),
    ],
)
def test_it_may_use_what_its_parent_may_and_it_asks_for(
    models: Any, able: Agent, granted: list[str], asked: Any, given: set[str]
) -> None:
    """Y03: a run that was given little does not get more by way of another skill."""
    able.grants = sorted(TOOLS)
    able.save()
    adopted(able, **({} if asked is None else {"tools": asked}))
    models.script(fakes.calls(ASK))
    parent = started(able, overrides={"tools": granted})
    executed(parent.children.get())
    assert {tool["function"]["name"] for tool in models.asked[-1].get("tools") or ()} == given


def test_what_the_parent_must_ask_for_the_child_must_ask_for_too(models: Any, able: Agent) -> None:
    adopted(able)
    able.grants = ["skill_execute", "memory_save"]
    able.save()
    parent = rows.run(able, input={"message": "go"}, autonomy="suggest")
    models.script(fakes.calls(ASK))
    waiting = executed(parent)
    assert (waiting.status, waiting.reason) == ("waiting", "approval")
    waiting.steps.filter(state="waiting").update(outcome="approved")
    Run.objects.filter(pk=parent.pk).update(waiting_until=timezone.now())
    executed(parent)
    models.script(fakes.calls(("b", "memory_save", {"text": "x"})))
    child = executed(parent.children.get())
    assert (child.status, child.reason) == ("waiting", "approval")


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("deep", "deep"),
        ("not adopted", "No skill of this agent is called"),
        ("template", "cannot be carried out"),
        ("itself", "does not carry out itself"),
    ],
)
def test_what_cannot_be_started_is_said(models: Any, able: Agent, case: str, words: str) -> None:
    values: dict[str, Any] = {}
    if case == "template":
        tags = ["trigger", "nostr-subscription"], ["filter", '{"kinds":[1]}'], ["action", "template"]
        adopted(able, *tags, template="log: {content}", context_mode=None)
    elif case != "not adopted":
        adopted(able)
    if case == "deep":
        values["depth"] = MAX_DEPTH
    if case == "itself":
        row = able.adopted.get()
        values |= {"skill_address": row.address, "skill_event": row.pinned_event}
    models.script(fakes.calls(ASK))
    parent = started(able, **values)
    assert parent.status == "succeeded"
    assert parent.children.count() == 0
    reply = next(m["content"] for m in models.asked[-1]["messages"] if m["role"] == "tool")
    assert words in reply
