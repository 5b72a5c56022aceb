"""What lasts of skills on demand: through a conversation, a source that fails, a worker that dies."""

import json

import pytest
from django.utils import timezone

from agents import runner
from agents.engine import disclosure
from agents.models import AdoptedSkill, Conversation, Run
from tests import fakes
from tests.agents import rows
from tests.agents.on_demand import demand, grant, said
from tests.agents.rows import carried_out

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def talk(agent):
    now = timezone.now()
    return Conversation.objects.create(agent=agent, created_at=now, updated_at=now)


def turn(agent, conversation, number, message="hi"):
    return carried_out(rows.run(agent, input={"message": message}, conversation=conversation, turn=number))


def test_a_conversation_keeps_its_catalogue_until_something_changes(models, able):
    demand(able, "spelling")
    conversation = talk(able)
    first, second = turn(able, conversation, 1), turn(able, conversation, 2)
    assert said(models.asked[1])[:2] == said(models.asked[0])[:2]
    assert second.disclosure["digest"] == first.disclosure["digest"]
    assert json.dumps(models.asked[1]).count("<available_skills>") == 1
    demand(able, "poems", position=1)
    third = turn(able, conversation, 3)
    request = said(models.asked[2])
    assert request[:2] == said(models.asked[0])[:2]  # what was told stays where it was
    assert (
        "replaces every earlier one" in request[-2][1]
        and "`poems`" in request[-2][1]
        and "`spelling`" in request[-2][1]
    )
    assert request[-1] == ("user", "hi")
    assert third.disclosure["digest"] != second.disclosure["digest"]
    turn(able, conversation, 4)
    assert said(models.asked[3])[-2] == request[-2]  # durable: told once more, byte for byte


def test_names_are_taken_back_when_everything_is_gone(models, able):
    demand(able, "spelling")
    conversation = talk(able)
    turn(able, conversation, 1)
    AdoptedSkill.objects.all().delete()
    second = turn(able, conversation, 2)
    assert "Do not use any name" in said(models.asked[1])[-2][1]
    assert second.disclosure["digest"] == ""
    turn(able, conversation, 3)
    assert said(models.asked[2])[-2] == said(models.asked[1])[-2]
    demand(able, "poems")
    turn(able, conversation, 4)
    assert "`poems`" in said(models.asked[3])[-2][1]


def test_names_are_taken_back_when_the_tool_is(models, able):
    demand(able, "spelling")
    conversation = talk(able)
    turn(able, conversation, 1)
    grant(able, "tool_list")
    turn(able, conversation, 2)
    assert "Do not use any name" in said(models.asked[1])[-2][1]


def test_a_change_of_a_body_alone_tells_nothing(models, able):
    found = demand(able, "spelling")
    conversation = talk(able)
    turn(able, conversation, 1)
    other = rows.skill({"description": "Does spelling", "template": "Another body."}, d="spelling")
    AdoptedSkill.objects.filter(pinned_event=found.id).update(pinned_event=other.id)
    turn(able, conversation, 2)
    assert json.dumps(models.asked[1]).count("<available_skills>") == 1


def test_a_single_run_knows_nothing_of_earlier_ones(models, able):
    demand(able, "spelling")
    carried_out(rows.run(able, input={"message": "hi"}))
    demand(able, "poems", position=1)
    carried_out(rows.run(able, input={"message": "hi"}))
    assert "The following skills are available" in said(models.asked[1])[1][1]


def test_a_source_that_does_not_answer_keeps_the_last_good_view(models, able, monkeypatch):
    from agents.sources import Listing, Merged, Report, disclosing

    demand(able, "spelling")
    carried_out(rows.run(able, input={"message": "hi"}))
    broken = Listing((), (Report("", "/skills", 0, "the disk is gone"),), complete=False)
    monkeypatch.setattr(disclosing, "sources_for", lambda agent: Merged([]))
    monkeypatch.setattr(Merged, "list_skills", lambda self: broken)
    run = carried_out(rows.run(able, input={"message": "hi"}))
    assert said(models.asked[1])[1] == said(models.asked[0])[1]
    assert run.disclosure["reports"][0]["reason"] == "the disk is gone"
    assert any("did not answer" in words for words in run.warnings)


def test_a_run_taken_up_again_keeps_its_catalogue_and_loads_once(models, able, monkeypatch):
    demand(able, "spelling")
    models.script(fakes.calls(("a", "skill", {"name": "spelling"})), fakes.text("ok"))
    run = rows.run(able, input={"message": "hi"})

    class Killed(BaseException):
        pass

    whole = disclosure.handed

    def killed_after(entry, fenced):
        monkeypatch.undo()
        whole(entry, fenced)
        raise Killed

    monkeypatch.setattr(disclosure, "handed", killed_after)
    with pytest.raises(Killed):
        runner.execute(run.pk)
    demand(able, "poems", position=1)
    able.soul = "Another soul."
    able.save()
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now())
    run = carried_out(run)
    assert run.status == "succeeded"
    assert said(models.asked[1])[:3] == said(models.asked[0])[:3]
    assert [row["name"] for row in run.disclosure["loaded"]] == ["spelling"]
    assert run.disclosure["listed"] == ["spelling"]
    assert [(step.name, step.state) for step in run.steps.filter(kind="tool")] == [("skill", "done")]


def test_a_call_that_ended_on_record_is_not_loaded_again(models, able):
    found = demand(able, "spelling")
    models.script(fakes.calls(("a", "skill", {"name": "spelling"})), fakes.error(503, "gone"), fakes.text("ok"))
    run = carried_out(rows.run(able, input={"message": "hi"}))
    assert run.status == "waiting"
    AdoptedSkill.objects.filter(pinned_event=found.id).delete()
    Run.objects.filter(pk=run.pk).update(waiting_until=timezone.now())
    run = carried_out(run)
    assert run.status == "succeeded"
    assert "Do spelling carefully." in models.asked[2]["messages"][-1]["content"]
    assert len(run.disclosure["loaded"]) == 1
