"""What holds a triggered run back, counted over the whole site; each reason stands on a row or in a count."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from agents import dispatch
from agents.models import Agent, Budget, HeldBack, Reservation, Run, Step
from tests.agents.world import AT, NOW, happened, make_agent, make_trigger, note, signed, stranger

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make_agent()


def reasons(runs: list[Run]) -> list[str]:
    return [run.reason for run in runs]


def test_a_skill_rests_after_a_run_and_runs_again_when_rested(agent: Agent) -> None:
    make_trigger(agent)
    first = dispatch.runs_for(happened(note()), NOW)
    second = dispatch.runs_for(happened(note()), NOW + timedelta(seconds=59))
    third = dispatch.runs_for(happened(note()), NOW + timedelta(seconds=60))
    assert [run.status for run in first + second + third] == ["queued", "suppressed", "queued"]
    assert reasons(second) == ["cooldown"]
    assert "59 s ago" in second[0].reason_words


def test_a_suppressed_run_keeps_what_it_would_have_run_on(agent: Agent) -> None:
    make_trigger(agent)
    dispatch.runs_for(happened(note()), NOW)
    event = note(text="kept")
    (held,) = dispatch.runs_for(happened(event), NOW)
    assert held.input["event"] == event.to_dict()
    assert held.finished_at == NOW
    again = dispatch.anyway(held, NOW)
    assert (again.status, again.input, again.skill_event) == ("queued", held.input, held.skill_event)
    assert dispatch.anyway(held, NOW).pk == again.pk


def test_llm_actions_have_a_rate_over_the_whole_site(settings: object) -> None:
    settings.LLM_ACTIONS_PER_MINUTE = 3  # type: ignore[attr-defined]
    for number in range(5):
        make_trigger(make_agent(f"bot{number}"))
    runs = dispatch.runs_for(happened(note()), NOW)
    assert sorted(reasons(runs)) == ["", "", "", "rate", "rate"]


def test_template_actions_have_a_rate_of_their_own(settings: object) -> None:
    settings.LLM_ACTIONS_PER_MINUTE, settings.TEMPLATE_ACTIONS_PER_MINUTE = 1, 2  # type: ignore[attr-defined]
    for number in range(3):
        make_trigger(make_agent(f"template{number}"), action="template")
        make_trigger(make_agent(f"llm{number}"))
    runs = dispatch.runs_for(happened(note()), NOW)
    going = sorted(run.action for run in runs if run.status == "queued")
    assert going == ["llm", "template", "template"]


def test_an_agent_with_its_own_number_counts_alone(settings: object) -> None:
    settings.LLM_ACTIONS_PER_MINUTE = 1  # type: ignore[attr-defined]
    own = make_agent("own", limits={"llm_per_minute": 3, "cooldown": 0})
    make_trigger(own)
    make_trigger(make_agent("other"))
    for _ in range(4):
        dispatch.runs_for(happened(note()), NOW)
    assert Run.objects.filter(agent=own, status="queued").count() == 3
    assert Run.objects.exclude(agent=own).filter(status="queued").count() == 1


def test_no_more_than_the_limit_are_open_at_once(settings: object) -> None:
    settings.MAX_CONCURRENT_TRIGGERS = 2  # type: ignore[attr-defined]
    for number in range(3):
        make_trigger(make_agent(f"bot{number}"))
    runs = dispatch.runs_for(happened(note()), NOW)
    assert sorted(reasons(runs)) == ["", "", "concurrency"]
    Run.objects.filter(status="queued").update(status="succeeded", finished_at=NOW)
    later = dispatch.runs_for(happened(note()), NOW + timedelta(seconds=61))
    assert sorted(reasons(later)) == ["", "", "concurrency"]


def test_manual_runs_are_not_counted(agent: Agent, settings: object) -> None:
    settings.LLM_ACTIONS_PER_MINUTE = 1  # type: ignore[attr-defined]
    trigger = make_trigger(agent)
    dispatch.manual(agent, trigger.address, trigger.event_id, "now", {}, {}, NOW, "k")
    assert reasons(dispatch.runs_for(happened(note()), NOW)) == [""]


def test_an_expired_event_makes_no_run(agent: Agent) -> None:
    make_trigger(agent)
    event = signed(stranger(), 1, "late", [["expiration", str(AT - 1)]])
    assert reasons(dispatch.runs_for(happened(event), NOW)) == ["expired"]


@pytest.mark.parametrize(
    ("fields", "reason"), [({"enabled": False}, "disabled"), ({"usable": False}, "unusable"), ({}, "")]
)
def test_a_named_trigger_says_why_it_does_not_run(agent: Agent, fields: dict[str, bool], reason: str) -> None:
    trigger = make_trigger(agent, **fields)
    assert reasons(dispatch.runs_for(happened(note()), NOW, [trigger.pk])) == [reason]


def test_a_used_up_budget_holds_llm_actions_back_and_no_others(agent: Agent) -> None:
    agent.llm = "openai/some-model"
    agent.save()
    Budget.objects.create(agent=agent, period="day", limit=Decimal("1"))
    run = dispatch.manual(agent, "", "", "x", {}, {}, NOW, "spent")
    step = Step.objects.create(run=run, position=1, kind="model", name="m", started_at=NOW)
    Reservation.objects.create(step=step, agent=agent, amount=Decimal("1.2"), settled=Decimal("1"), at=NOW)
    make_trigger(agent, "llm")
    make_trigger(agent, "template", action="template")
    runs = {run.action: run.reason for run in dispatch.runs_for(happened(note()), NOW)}
    assert runs == {"llm": "budget", "template": ""}


def test_a_flood_is_counted_instead_of_written_row_by_row(agent: Agent) -> None:
    trigger = make_trigger(agent)
    for _ in range(dispatch.FLOOD + 11):
        dispatch.runs_for(happened(note()), NOW)
    assert Run.objects.filter(status="suppressed").count() == dispatch.FLOOD
    held = HeldBack.objects.get(trigger=trigger, reason="cooldown")
    assert (held.count, held.minute) == (10, NOW.replace(second=0))


def test_two_agents_answering_each_other_come_to_an_end(agent: Agent) -> None:
    """Y06: each answer carries the depth of the run that wrote it, found by the event it signed."""
    other = make_agent("other", limits={"cooldown": 0})
    agent.limits = {"cooldown": 0}
    agent.save()
    for one in (agent, other):
        make_trigger(one)
    event, ended = note(), []
    for _ in range(10):
        runs = [run for run in dispatch.runs_for(happened(event), NOW) if run.agent_id == agent.pk or ended]
        runs = [run for run in runs if run.agent_id != (ended[-1].agent_id if ended else other.pk)]
        (run,) = runs
        ended.append(run)
        if run.status == "suppressed":
            break
        event = _answers(run)
    assert [run.depth for run in ended] == [0, 1, 2, 3, 4, 5, 6]
    assert (ended[-1].status, ended[-1].reason) == ("suppressed", "loop")


def _answers(run: Run) -> object:
    """The step that a publishing tool leaves: the signed event is its intent."""
    from marketplace import signing
    from marketplace.protocol.events import Draft

    draft = Draft(run.agent.identity.pubkey, AT, 1, (), f"answer in {run.pk}")
    event = signing.sign(run.agent.identity, draft)
    Step.objects.create(
        run=run, position=1, kind="tool", name="nostr_post", started_at=NOW, intent={"event": event.to_dict()}
    )
    return event


def test_an_agents_own_event_is_counted_and_starts_nothing(agent: Agent) -> None:
    from marketplace import signing
    from marketplace.protocol.events import Draft

    trigger = make_trigger(agent)
    own = signing.sign(agent.identity, Draft(agent.identity.pubkey, AT, 1, (("p", agent.identity.pubkey),), "me"))
    assert dispatch.runs_for(happened(own), NOW) == []
    assert not Run.objects.exists()
    assert HeldBack.objects.get(trigger=trigger).reason == "loop"


def test_a_schedule_may_run_every_minute_though_skills_rest_for_one(agent: Agent) -> None:
    trigger = make_trigger(agent, kind="cron", tags=[["trigger", "cron"], ["schedule", "* * * * *"]])
    from marketplace.protocol.triggers import Occasion, cron

    for minute in range(3):
        slot = NOW.replace(second=0) + timedelta(minutes=minute)
        late = slot + timedelta(seconds=3 - minute)  # each tick comes a little earlier than the last
        (run,) = dispatch.runs_for(Occasion("cron", cron.slot_key(slot), int(slot.timestamp())), late, [trigger.pk])
        assert run.reason == ""


def test_depth_beyond_the_limit_is_suppressed_as_a_loop(agent: Agent) -> None:
    trigger = make_trigger(agent)
    occasion = replace(happened(note()), depth=6)
    assert reasons(dispatch.runs_for(occasion, NOW, [trigger.pk])) == ["loop"]
