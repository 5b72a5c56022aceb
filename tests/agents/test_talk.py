"""Conversations: turns in order, each an ordinary run on record, composed from what was said before."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents import dispatch, runner, tasks
from agents.dispatch import talking
from agents.models import Agent, Conversation, Run
from tests import fakes
from tests.agents import rows
from tests.agents.race import in_threads

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def talk(helper: Agent) -> Conversation:
    return talking.open_conversation(helper, "page", timezone.now())


def say(talk: Conversation, message: str, key: str = "", **values: Any) -> Run:
    return talking.say(talk, message, timezone.now(), key or message, **values)


def asked(models: fakes.ModelServer, at: int = -1) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in models.asked[at]["messages"]]


def test_each_turn_is_a_run_and_later_ones_know_what_was_said(models, talk):
    talk.agent.soul = "Be kind."
    talk.agent.save()
    models.script(fakes.text("Hello Ann."), fakes.text("You are Ann."))
    first = rows.carried_out(say(talk, "I am Ann."))
    second = rows.carried_out(say(talk, "Who am I?"))
    assert [(run.turn, run.status, run.output) for run in (first, second)] == [
        (1, "succeeded", "Hello Ann."),
        (2, "succeeded", "You are Ann."),
    ]
    assert asked(models, 0) == [("system", "Be kind."), ("user", "I am Ann.")]
    assert asked(models) == [
        ("system", "Be kind."),
        ("user", "I am Ann."),
        ("assistant", "Hello Ann."),
        ("user", "Who am I?"),
    ]
    assert second.rule == "compose" and second.cost > 0
    talk.refresh_from_db()
    assert talk.title == "I am Ann."


def test_the_same_key_is_one_turn(talk):
    first, again = say(talk, "hi", "token"), say(talk, "hi", "token")
    assert first.pk == again.pk
    assert talk.turns.count() == 1


@pytest.mark.django_db(transaction=True)
def test_messages_at_the_same_moment_get_numbers_without_gaps_or_doubles(helper):
    talk = talking.open_conversation(helper, "page", timezone.now())
    in_threads(5, lambda number: say(talk, f"message {number}"))
    in_threads(5, lambda number: say(talk, "sent twice", "message 1"))
    assert sorted(talk.turns.values_list("turn", flat=True)) == [1, 2, 3, 4, 5]


def test_a_turn_waits_for_the_one_before(models, talk):
    first, second = say(talk, "one"), say(talk, "two")
    assert not runner.execute(second.pk)
    assert Run.claim(first.pk, "a worker", timezone.now()) is not None
    assert not runner.execute(second.pk)
    assert first.cancel(timezone.now(), "You stopped it.")
    assert runner.execute(second.pk)
    # What was stopped got no answer, so it is not part of what was said.
    assert asked(models) == [("user", "two")]


def test_the_next_turn_is_announced_when_the_one_before_ends(models, talk, django_capture_on_commit_callbacks):
    first, second = say(talk, "one"), say(talk, "two")
    assert second.announced_at is None
    with django_capture_on_commit_callbacks(execute=True):
        rows.carried_out(first)
    second.refresh_from_db()
    assert second.announced_at is not None


def test_the_tick_announces_what_waited_for_a_stopped_turn(talk, monkeypatch):
    sent: list[str] = []
    monkeypatch.setattr(dispatch, "announce", lambda ids, now: sent.extend(ids) or len(sent))
    first, second = say(talk, "one"), say(talk, "two")
    later = timezone.now() + timedelta(minutes=1)
    tasks.announce(later)
    first.cancel(later, "You stopped it.")
    tasks.announce(later)
    assert sent == [first.pk, second.pk]


def test_too_many_messages_at_once_are_refused_in_words(talk):
    for number in range(talking.MOST_OPEN):
        say(talk, f"message {number}")
    with pytest.raises(talking.Busy, match="5 messages wait"):
        say(talk, "one more")
    assert talk.turns.count() == talking.MOST_OPEN


def test_turns_that_failed_are_left_out_and_only_the_newest_messages_are_sent(models, talk):
    for number in range(12):
        models.script(fakes.text(f"answer {number}"))
        rows.carried_out(say(talk, f"question {number}"))
    models.script(fakes.text(None, finish="content_filter"))
    assert rows.carried_out(say(talk, "something bad")).status == "failed"
    last = rows.carried_out(say(talk, "and now?"))
    said = asked(models)
    assert said[0] == ("user", "question 2")
    assert said[-2:] == [("assistant", "answer 11"), ("user", "and now?")]
    assert len(said) == 21
    assert "4 older messages were left out." in last.warnings


def test_a_run_taken_up_again_is_composed_the_same(models, talk):
    rows.carried_out(say(talk, "one"))
    run = say(talk, "two")
    claimed = Run.claim(run.pk, "a worker that dies", timezone.now() - timedelta(minutes=5))
    assert claimed is not None
    rows.carried_out(run)
    first = run.request
    Run.objects.filter(pk=run.pk).update(status="queued", request={})
    run.steps.all().delete()
    rows.carried_out(run)
    assert run.request == first and len(first["messages"]) == 3


def test_two_conversations_know_nothing_of_each_other(models, talk):
    rows.carried_out(say(talk, "a secret"))
    other = talking.open_conversation(talk.agent, "page", timezone.now())
    rows.carried_out(say(other, "hello"))
    assert asked(models) == [("user", "hello")]


def test_deleting_a_conversation_keeps_its_runs_and_what_they_cost(models, talk):
    run = rows.carried_out(say(talk, "hi"))
    talk.delete()
    run.refresh_from_db()
    assert run.conversation is None and run.cost > 0


def test_there_is_one_conversation_with_each_writer_of_direct_messages(helper):
    now = timezone.now()
    one = talking.open_conversation(helper, "dm", now, peer="a" * 64)
    assert talking.open_conversation(helper, "dm", now, peer="a" * 64) == one
    assert talking.open_conversation(helper, "dm", now, peer="b" * 64) != one


@pytest.mark.parametrize(("message", "title"), [("  a\n b ", "a b"), ("x" * 100, "x" * 59 + "…"), ("", "")])
def test_the_first_message_names_it(message, title):
    assert talking.title_of(message) == title
