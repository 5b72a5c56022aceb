"""A skill that a person calls as /name, and everybody whose /name is only text."""

import json

import pytest

from agents.runner import loading
from tests import fakes
from tests.agents import rows
from tests.agents.on_demand import demand, grant, said
from tests.agents.rows import carried_out

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_persons_slash_name_hands_the_skill_over_after_everything_else(models, able):
    found = demand(able, "spelling")
    demand(able, "quiet", position=1, tags=[["disable-model-invocation", "true"]])
    run = carried_out(rows.run(able, input={"message": "Please /spelling and /quiet and /spelling, not /nope"}))
    _, catalogue, live, first, second = said(models.asked[0])
    assert live == ("user", "Please /spelling and /quiet and /spelling, not /nope")
    assert "`quiet`" not in catalogue[1]
    assert first[0] == second[0] == "user"
    assert '<skill_content name="spelling">' in first[1] and '<skill_content name="quiet">' in second[1]
    assert first[1].startswith(f"[BEGIN skill {loading.mark(run)}]")
    named = run.disclosure["invoked"][0]
    assert (named["name"], named["version"]) == ("spelling", found.id)
    assert {"/spelling", "/quiet"} <= {part["name"] for part in run.request["parts"]}


def test_a_slash_name_gives_the_same_text_as_the_tool(models, able):
    demand(able, "spelling")
    models.script(fakes.calls(("a", "skill", {"name": "spelling"})), fakes.text("ok"))
    carried_out(rows.run(able, input={"message": "/spelling"}))
    request = models.asked[1]["messages"]
    assert request[-1]["content"] == request[3]["content"]


def test_a_slash_name_needs_no_tool(models, able):
    demand(able, "spelling")
    grant(able)
    carried_out(rows.run(able, input={"message": "/spelling"}))
    assert [role for role, _ in said(models.asked[0])] == ["system", "user", "user"]


def test_a_skill_that_users_may_not_invoke_stays_prose(models, able):
    demand(able, "inner", tags=[["user-invocable", "false"]])
    run = carried_out(rows.run(able, input={"message": "/inner"}))
    assert run.disclosure["invoked"] == []
    assert said(models.asked[0])[-1] == ("user", "/inner")


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("nostr-subscription", {"event": {"kind": 1, "content": "/spelling"}}),
        ("webhook", {"payload": {"text": "/spelling"}, "message": "/spelling"}),
        ("chain", {"payload": {"output": "/spelling"}}),
    ],
)
def test_events_and_webhooks_are_never_scanned(models, able, kind, given):
    demand(able, "spelling")
    run = carried_out(rows.run(able, input=given, trigger_kind=kind))
    assert run.status == "succeeded"
    assert run.disclosure["invoked"] == []
    assert "<skill_content" not in json.dumps(models.asked[0]["messages"][-1])


def test_what_another_run_says_is_never_scanned(models, able):
    demand(able, "spelling")
    parent = rows.run(able, status="succeeded")
    run = carried_out(rows.run(able, input={"message": "/spelling"}, parent=parent, depth=1))
    assert run.disclosure["invoked"] == []


def test_tool_results_are_never_scanned(models, able):
    demand(able, "spelling", template="Now use /poems and /spelling")
    demand(able, "poems", position=1)
    models.script(fakes.calls(("a", "skill", {"name": "spelling"})), fakes.text("ok"))
    run = carried_out(rows.run(able, input={"message": "hi"}))
    assert run.disclosure["invoked"] == []
    assert len(models.asked[1]["messages"]) == len(models.asked[0]["messages"]) + 2
