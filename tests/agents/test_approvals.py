"""Calls that wait for their owner: all of a turn together, decided on one page or by API, and not for ever."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents import dispatch, runner
from agents.models import Run, Step
from marketplace.models import ApiToken
from tests import fakes
from tests.agents import rows
from tests.agents.rows import carried_out

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def waiting(models, helper):
    """A run whose first turn asks for a look and two writes."""
    helper.grants = ["memory_save", "skill_list"]
    helper.save()
    wanted = ("a", "memory_save", {"text": "one"}), ("b", "skill_list", {}), ("c", "memory_save", {"text": "two"})
    models.script(fakes.calls(*wanted))
    return carried_out(rows.run(helper, input={"message": "hi"}, autonomy="suggest"))


def taken_up(run: Run) -> Run:
    """As the worker that the decision wakes would."""
    runner.execute(run.pk)
    run.refresh_from_db()
    return run


def waiting_steps(run: Run) -> list[Step]:
    return list(run.steps.filter(state="waiting", outcome=""))


def test_the_writes_of_one_turn_wait_together_and_what_only_reads_does_not(waiting, helper):
    assert (waiting.status, waiting.reason) == ("waiting", "approval")
    assert waiting.reason_words == "2 calls wait for your approval."
    assert [step.call_id for step in waiting_steps(waiting)] == ["a", "c"]
    assert helper.memories.count() == 0


def test_the_run_goes_on_once_each_of_them_is_decided(waiting, helper, models):
    first, second = waiting_steps(waiting)
    assert dispatch.decide(second, True, timezone.now())
    assert not taken_up(waiting).is_final
    assert waiting.reason == "approval"
    assert dispatch.decide(first, False, timezone.now(), "not now")
    assert taken_up(waiting).status == "succeeded"
    assert [memory.text for memory in helper.memories.all()] == ["two"]
    replies = {m["tool_call_id"]: m["content"] for m in models.asked[-1]["messages"] if m["role"] == "tool"}
    assert replies["a"] == "Error: The owner declined this call: not now"
    assert replies["c"].startswith("Remembered")


def test_what_was_decided_stays_decided(waiting):
    first, _ = waiting_steps(waiting)
    assert dispatch.decide(first, False, timezone.now())
    assert not dispatch.decide(first, True, timezone.now())
    first.refresh_from_db()
    assert first.outcome == "declined"


def test_nobody_deciding_is_a_no_with_its_reason(waiting, models, helper, settings):
    assert waiting.waiting_until > timezone.now() + timedelta(days=6)
    long_ago = timezone.now() - timedelta(days=settings.APPROVAL_DAYS)
    waiting.steps.filter(state="waiting").update(started_at=long_ago)
    Run.objects.filter(pk=waiting.pk).update(waiting_until=timezone.now())
    assert taken_up(waiting).status == "succeeded"
    assert helper.memories.count() == 0
    replies = [m["content"] for m in models.asked[-1]["messages"] if m["role"] == "tool"]
    assert sum("Nobody approved this call within 7 days" in reply for reply in replies) == 2
    assert waiting.waits == 0, "waiting for a person uses up no wait for a model"


def test_a_call_that_would_be_refused_anyway_is_not_put_before_the_owner(models, helper):
    helper.grants = ["memory_save"]
    helper.save()
    models.script(fakes.calls(("a", "memory_save", {"words": "one"}), ("b", "nostr_post", {"content": "x"})))
    run = carried_out(rows.run(helper, input={"message": "hi"}, autonomy="suggest"))
    assert run.status == "succeeded"
    assert [(step.state, step.outcome) for step in run.steps.filter(kind="tool")] == [("refused", "refused")] * 2


def test_all_are_decided_with_one_click(waiting, client, helper):
    client.force_login(helper.owner)
    page = client.get(f"/runs/{waiting.pk}/").content.decode()
    assert "2 calls wait for you" in page
    assert "Approve all 2" in page
    first, second = waiting_steps(waiting)
    form = {"decision": "approve", "position": [first.position, second.position, "x", 2**40]}
    assert client.post(f"/runs/{waiting.pk}/steps/", form).status_code == 302
    assert taken_up(waiting).status == "succeeded"
    assert sorted(memory.text for memory in helper.memories.all()) == ["one", "two"]


def test_a_call_the_page_did_not_show_is_not_decided(waiting, client, helper):
    client.force_login(helper.owner)
    first, second = waiting_steps(waiting)
    client.post(f"/runs/{waiting.pk}/steps/", {"decision": "approve", "position": first.position})
    assert [step.pk for step in waiting_steps(waiting)] == [second.pk]


@pytest.mark.parametrize("decision", ["", "perhaps", "é" * 200_000])
def test_neither_yes_nor_no_decides_nothing(waiting, client, helper, decision):
    client.force_login(helper.owner)
    first, _ = waiting_steps(waiting)
    assert client.post(f"/runs/{waiting.pk}/steps/{first.position}/", {"decision": decision}).status_code == 302
    assert len(waiting_steps(waiting)) == 2


def test_a_reason_with_a_secret_key_is_not_kept(waiting, client, helper):
    client.force_login(helper.owner)
    first, _ = waiting_steps(waiting)
    form = {"decision": "decline", "reason": "nsec1" + "q" * 58}
    client.post(f"/runs/{waiting.pk}/steps/{first.position}/", form)
    first.refresh_from_db()
    assert (first.outcome, first.error) == ("", "")


def test_a_program_decides_with_a_token_that_may(waiting, client, helper):
    first, second = waiting_steps(waiting)
    address = f"/api/v1/runs/{waiting.pk}/steps/{first.position}"
    given = {"data": {"decision": "decline", "reason": "no\u2028thanks"}, "content_type": "application/json"}
    reads = {"Authorization": f"Bearer {ApiToken.issue(helper.owner, 'r', ['read', 'run'])}"}
    assert client.post(address, **given, headers=reads).status_code == 403
    may = {"Authorization": f"Bearer {ApiToken.issue(helper.owner, 'w', ['write'])}"}
    assert client.post(address, **{**given, "data": {"decision": "maybe"}}, headers=may).status_code == 400
    answer = client.post(address, **given, headers=may)
    assert answer.status_code == 200
    assert [step["outcome"] for step in answer.json()["steps"] if step["position"] == first.position] == ["declined"]
    assert client.post(address, **given, headers=may).status_code == 409
    assert client.post(address.replace(f"/{first.position}", "/99"), **given, headers=may).status_code == 404
    assert [step.pk for step in waiting_steps(waiting)] == [second.pk]
