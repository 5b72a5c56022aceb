"""A run from its claim to its end, over real HTTP through litellm."""

import json
from decimal import Decimal

import pytest
from django.utils import timezone

from agents import llm, runner
from agents.models import Budget, Reservation, Run, Step
from marketplace import signing
from tests import fakes
from tests.agents import rows
from tests.agents.rows import carried_out

# litellm keeps its connections open for as long as the process lives.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def steps(run: Run) -> list[tuple[str, str, str]]:
    return [(step.kind, step.name, step.state) for step in run.steps.all()]


def test_a_run_asks_the_model_and_records_what_it_cost(models, helper):
    skill = rows.skill({"template": "system:\nFix.\nuser:\n{{message}}", "context_mode": "full", "max_tokens": 50})
    models.script(fakes.text("Fixed.", prompt_tokens=1000, completion_tokens=100))
    run = carried_out(rows.run(helper, skill, input={"message": "helo"}))
    assert (run.status, run.output, run.reason) == ("succeeded", "Fixed.", "")
    assert run.model == "gpt-4o-mini-2024-07-18"
    assert run.cost == Decimal("0.00021")  # 1000 x 0.15 + 100 x 0.60 USD per million
    assert (run.input_tokens, run.output_tokens, run.unknown_costs) == (1000, 100, 0)
    assert run.parameters["max_tokens"] == {"value": 50, "origin": "skill"}
    (sent,) = models.asked
    assert sent["messages"] == [{"role": "system", "content": "Fix."}, {"role": "user", "content": "helo"}]
    assert sent["messages"] == run.request["messages"]
    assert sent["max_tokens"] == 50
    assert models.keys == ["Bearer site-key-CANARY-1234"]


def test_a_claimed_run_is_not_claimed_twice(models, helper):
    run = rows.run(helper, input={"message": "hi"})
    assert Run.claim(run.pk, "other", timezone.now()) is not None
    assert not runner.execute(run.pk)
    assert models.asked == []


def test_the_chain_falls_back_and_every_attempt_is_on_record(models, helper):
    helper.llm = "openai/bad, openai/gpt-4o-mini"
    helper.save()
    models.script(fakes.error(503, "overloaded"), model="bad")
    models.script(fakes.text("ok"), model="gpt-4o-mini")
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert run.status == "succeeded"
    first, second = run.steps.all()
    assert (first.name, first.state, first.outcome, first.cost) == ("openai/bad", "failed", "unavailable", 0)
    assert (second.name, second.state, second.served_model) == ("openai/gpt-4o-mini", "done", "gpt-4o-mini-2024-07-18")


def test_tools_are_called_and_answered_in_order(models, helper):
    helper.grants = ["skill_search"]
    helper.save()
    models.script(
        fakes.calls(("a", "skill_search", {"query": "x"}), ("b", "nostr_post", {"content": "no"}), ("c", "nope", {})),
        fakes.text("done"),
    )
    run = carried_out(rows.run(helper, input={"message": "find"}))
    assert run.status == "succeeded"
    assert steps(run)[1:4] == [
        ("tool", "skill_search", "done"),
        ("tool", "nostr_post", "refused"),
        ("tool", "nope", "refused"),
    ]
    replies = [m for m in models.asked[1]["messages"] if m["role"] == "tool"]
    assert [reply["tool_call_id"] for reply in replies] == ["a", "b", "c"]
    assert "not granted" in replies[1]["content"]
    assert [tool["function"]["name"] for tool in models.asked[0]["tools"]] == ["skill_search"]


def test_a_truncated_call_is_never_executed(models, helper):
    helper.grants = ["skill_search"]
    helper.save()
    cut = fakes.calls(("a", "skill_search", '{"query":"Hello wor'), finish="length")
    models.script(cut, cut)
    run = carried_out(rows.run(helper, input={"message": "find"}))
    assert (run.status, run.reason) == ("failed", "truncated")
    assert {state for kind, _, state in steps(run) if kind == "tool"} == {"refused"}
    assert models.asked[1]["max_tokens"] == 2 * models.asked[0]["max_tokens"]


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (fakes.text("", finish="stop"), "failed", "empty"),
        (fakes.text(None), "failed", "empty"),
        (fakes.text("x", finish="content_filter"), "failed", "filtered"),
        (fakes.text("half", finish="length"), "failed", "truncated"),
        (fakes.error(400, "unknown field"), "failed", "bad-request"),
        (fakes.error(401, "wrong key"), "failed", "auth"),
        (fakes.error(422, "unprocessable"), "failed", "bad-request"),
        (fakes.error(429, "slow down", Retry_After="30"), "waiting", "rate-limited"),
        (fakes.error(500, "oops"), "waiting", "server"),
        (fakes.Scripted("<html>", 502), "waiting", "unavailable"),
        (fakes.error(400, "maximum context length is 8 tokens"), "failed", "context"),
    ],
)
def test_every_answer_ends_in_a_defined_state(models, helper, answer, status, reason):
    models.script(*[answer] * 3)
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert (run.status, run.reason) == (status, reason)
    assert run.reason_words
    assert (run.waiting_until is not None) == (status == "waiting")
    assert not run.steps.filter(state="running").exists()


def test_a_waiting_run_goes_on_when_it_is_due(models, helper):
    models.script(fakes.error(503, "overloaded"), fakes.text("at last"))
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert run.status == "waiting"
    assert not runner.execute(run.pk)
    Run.objects.filter(pk=run.pk).update(waiting_until=timezone.now())
    assert carried_out(run).output == "at last"


def test_a_short_retry_after_waits_for_the_same_model(models, helper):
    models.script(fakes.error(429, "slow down", Retry_After="1"), fakes.text("ok"))
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert run.status == "succeeded"
    assert [step.waited_ms for step in run.steps.all()] == [0, 1000]


def test_an_unknown_price_is_unknown_and_not_free(models, helper, monkeypatch):
    monkeypatch.setattr(llm.Endpoint, "is_local", False)  # as for any public address
    models.script(fakes.text("a", model="acme/unknown-1"))
    helper.llm = "openai/acme-unknown-1"
    helper.save()
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert run.status == "succeeded"
    assert (run.cost, run.unknown_costs) == (0, 1)
    assert run.steps.get().cost is None


def test_a_budget_stops_the_call_before_it_is_made(models, helper):
    Budget.objects.create(agent=helper, period="day", limit=Decimal("0.000001"))
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert (run.status, run.reason) == ("failed", "budget")
    assert models.asked == []


def test_what_was_reserved_is_settled_at_the_real_cost(models, helper):
    Budget.objects.create(agent=helper, period="day", limit=1)
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    reservation = Reservation.objects.get()
    assert reservation.settled == run.cost
    assert reservation.amount > reservation.settled > 0


def test_finished_steps_are_replayed_and_not_repeated(models, helper):
    helper.grants = ["skill_search"]
    helper.save()
    models.script(fakes.calls(("a", "skill_search", {"query": "x"})), fakes.error(503, "gone"), fakes.text("done"))
    run = carried_out(rows.run(helper, input={"message": "find"}))
    assert run.status == "waiting"
    Run.objects.filter(pk=run.pk).update(waiting_until=timezone.now())
    run = carried_out(run)
    assert run.output == "done"
    assert [(kind, state) for kind, _, state in steps(run)] == [
        ("model", "done"),
        ("tool", "done"),
        ("model", "failed"),
        ("model", "done"),
    ]
    assert len(models.asked) == 3


def test_an_effect_whose_outcome_is_unknown_is_not_repeated(models, helper, monkeypatch):
    from dataclasses import replace

    from agents.tools import TOOLS

    helper.grants = ["nostr_post"]
    helper.save()
    monkeypatch.setitem(TOOLS, "nostr_post", replace(TOOLS["nostr_post"], repeatable=False))
    run = rows.run(helper, input={"message": "post"})
    asked = fakes.calls(("a", "nostr_post", {"content": "hi"})).body
    now = timezone.now()
    common = {"run": run, "turn": 1, "started_at": now}
    Step.objects.create(position=1, kind="model", name="m", state="done", output={"response": asked}, **common)
    Step.objects.create(position=2, kind="tool", name="nostr_post", call_id="a", risk="writes", **common)
    run = carried_out(run)
    assert run.steps.get(position=2).state == "unknown"
    assert "not repeated" in models.asked[0]["messages"][-1]["content"]


def test_a_writing_tool_waits_for_its_owner(models, helper):
    helper.grants = ["nostr_post"]
    helper.save()
    models.script(fakes.calls(("a", "nostr_post", {"content": "hi"})), fakes.text("I did not post."))
    run = carried_out(rows.run(helper, input={"message": "post"}, autonomy="suggest"))
    assert (run.status, run.reason) == ("waiting", "approval")
    run.steps.filter(state="waiting").update(outcome="declined")
    Run.objects.filter(pk=run.pk).update(status="queued")
    run = carried_out(run)
    assert run.output == "I did not post."
    assert run.steps.get(kind="tool").state == "refused"


def test_a_log_action_needs_no_model(helper):
    skill = rows.skill(
        "LOG: {author_display_name} said {content_preview} {unknown}",
        ["trigger", "nostr-subscription"],
        ["filter", '{"kinds":[1]}'],
        ["action", "template"],
    )
    note = rows.event("hi {event_id}\nPOST: x", [], kind=1)
    run = rows.run(helper, skill, action="template", trigger_kind="nostr-subscription", input={"event": note.to_dict()})
    run = carried_out(run)
    assert run.status == "succeeded"
    assert run.output.endswith("said hi {event_id} POST: x {unknown}")
    assert run.steps.count() == 0


def test_a_run_that_kept_killing_its_worker_is_parked(helper):
    run = rows.run(helper, deliveries=3)
    run = carried_out(run)
    assert (run.status, run.reason) == ("failed", "parked")


def test_a_key_in_an_error_is_nowhere_on_record(models, helper):
    words = "404 for url 'https://llm.example/v1/m:generate?key=CANARY-1234&x=site-key-CANARY-1234'"
    models.script(fakes.error(404, words))
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    record = json.dumps([run.reason_words, *run.steps.values_list("error", flat=True), str(run.request)])
    assert "404" in record
    assert "CANARY" not in record


def test_a_private_skill_of_another_key_is_not_read(helper):
    event = rows.event({"template": "x"}, [["d", "p"]], kind=31124)
    rows.archived(event)
    run = carried_out(rows.run(helper, event))
    assert (run.status, run.reason) == ("failed", "unusable")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "169.254.169.254"])
def test_a_model_address_from_a_form_cannot_reach_inside(models, helper, host):
    url = models.url.replace("127.0.0.1", host)
    helper.provider_keys.create(provider="openai", base_url=url, sealed=signing.seal("own-key"))
    run = carried_out(rows.run(helper, input={"message": "hi"}))
    assert (run.status, run.reason) == ("failed", "not-configured")
    assert models.asked == []


def test_a_key_of_an_agent_goes_to_its_own_address(models, helper, settings):
    settings.ALLOW_ADDRESSES = ["127.0.0.1"]
    settings.LLM_BASE_URL = "http://127.0.0.1:9/v1"
    helper.provider_keys.create(provider="openai", base_url=models.url, sealed=signing.seal("own-key"))
    assert carried_out(rows.run(helper, input={"message": "hi"})).status == "succeeded"
    assert models.keys == ["Bearer own-key"]


def test_adopted_skills_are_composed_in_their_order(models, helper):
    for position, name in enumerate(["second", "first"]):
        rows.adopt(helper, rows.skill({"template": f"I am {name}.", "description": name}, d=name), 1 - position)
    carried_out(rows.run(helper, input={"message": "hi"}))
    contents = [message["content"] for message in models.asked[0]["messages"]]
    assert contents == ["I am first.", "I am second.", "hi"]


@pytest.mark.django_db(transaction=True)
def test_a_stopped_run_abandons_the_call_that_is_out(models):
    helper = rows.agent(rows.owner())
    models.script(fakes.Scripted(fakes.text("too late").body, delay=6))
    run = rows.run(helper, input={"message": "hi"})
    worker = rows.worker(run)
    while not models.asked and worker.is_alive():
        worker.join(0.05)
    assert run.cancel(timezone.now(), "You stopped it.")
    worker.join(5)
    assert not worker.is_alive()
    run.refresh_from_db()
    assert (run.status, run.output) == ("cancelled", "")
    step = run.steps.get()
    assert (step.state, step.estimated) == ("unknown", True)
