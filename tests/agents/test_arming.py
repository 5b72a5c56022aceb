"""Triggers follow the agent's own list and the versions its owner saw, and nothing else."""

import json
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from agents import arming
from agents.models import AdoptedSkill, Agent, Delivery, Hook, Trigger
from marketplace import signing
from marketplace.protocol import kinds, nostr
from marketplace.protocol.events import Draft
from tests.agents.world import AT, NOW, adoption_list, arrive, make_agent, signed, skill_event, stranger

pytestmark = pytest.mark.django_db(transaction=True)

MENTIONS = {"kinds": [1], "#p": ["<agent_pubkey>"], "authors": ["<admin_pubkey>"]}


def on(filters: Any = MENTIONS, *more: list[str]) -> list[list[str]]:
    return [["trigger", "nostr-subscription"], ["filter", json.dumps(filters)], *more]


@pytest.fixture
def agent() -> Agent:
    return make_agent(grants=["nostr_query", "nostr_post"])


@pytest.fixture
def author() -> str:
    return stranger()


def adopt(agent: Agent, author: str, d: str = "answer", at: int = AT, **content: Any) -> str:
    """Publish a skill with a trigger and put it on the agent's list; its address."""
    event = skill_event(author, d, at, content.pop("tags", on()), **content)
    arrive(event, adoption_list(agent, str(event.address), at=at))
    return str(event.address)


def test_adopting_arms_the_trigger_with_its_placeholders_filled(agent: Agent, author: str) -> None:
    address = adopt(agent, author)
    trigger = Trigger.objects.get(agent=agent)
    (filters,) = [json.loads(tag[1]) for tag in trigger.tags if tag[0] == "filter"]
    assert filters == {"kinds": [1], "#p": [agent.identity.pubkey], "authors": [agent.admin_pubkey]}
    assert (trigger.address, trigger.kind, trigger.usable) == (address, "nostr-subscription", True)
    assert abs(trigger.armed_at - timezone.now().timestamp()) < 5
    assert "you" in trigger.words


def test_the_version_on_the_wire_keeps_its_placeholders(agent: Agent, author: str) -> None:
    adopt(agent, author)
    spec = arming.pinned_spec(agent, Trigger.objects.get().event_id)
    assert spec is not None
    assert "<agent_pubkey>" in str(spec.trigger_tags)


def test_the_list_may_come_before_the_skill(agent: Agent, author: str) -> None:
    event = skill_event(author, tags=on())
    arrive(adoption_list(agent, str(event.address)))
    assert AdoptedSkill.objects.get().pinned_event == ""
    arrive(event)
    assert AdoptedSkill.objects.get().pinned_event == event.id
    assert Trigger.objects.get().event_id == event.id


def test_taking_a_skill_off_the_list_disarms_it(agent: Agent, author: str) -> None:
    adopt(agent, author)
    arrive(adoption_list(agent, at=AT + 1))
    assert not AdoptedSkill.objects.exists()
    assert not Trigger.objects.exists()


def test_a_web_address_and_what_came_to_it_outlive_the_adoption(agent: Agent, author: str) -> None:
    address = adopt(agent, author, tags=[["trigger", "webhook"]])
    trigger = Trigger.objects.get()
    token, _ = Hook(trigger=trigger).readdress(NOW)
    Trigger.objects.update(autonomy="auto")
    Delivery.objects.create(trigger=trigger, at=NOW, key="id:1", accepted=True, body=b"{}")
    arrive(adoption_list(agent, at=AT + 1))
    trigger.refresh_from_db()
    assert (trigger.usable, trigger.problem) == (False, arming.UNADOPTED) and not trigger.live
    assert arming.arm_all(NOW, every=True) >= 0 and Trigger.objects.get().problem == arming.UNADOPTED
    arrive(adoption_list(agent, address, at=AT + 2))
    again = Trigger.objects.get()
    assert (again.pk, again.usable, again.autonomy) == (trigger.pk, True, "suggest")
    assert Hook.objects.called(token, NOW) is not None and Delivery.objects.count() == 1


def test_the_order_of_the_list_is_kept_and_follows(agent: Agent, author: str) -> None:
    one, two = skill_event(author, "one"), skill_event(author, "two")
    arrive(one, two, adoption_list(agent, str(two.address), str(one.address)))
    assert [row.address for row in AdoptedSkill.objects.all()] == [str(two.address), str(one.address)]
    arrive(adoption_list(agent, str(one.address), str(two.address), at=AT + 1))
    assert [row.address for row in AdoptedSkill.objects.all()] == [str(one.address), str(two.address)]


def test_a_newer_version_waits_until_its_owner_accepts_it(agent: Agent, author: str) -> None:
    """P64: what runs is what was seen."""
    address = adopt(agent, author)
    seen = Trigger.objects.get().event_id
    newer = skill_event(author, at=AT + 1, tags=on({"kinds": [1]}))
    arrive(newer)
    assert Trigger.objects.get().event_id == seen
    arming.pin(agent, address, newer.id, NOW)
    assert Trigger.objects.get().event_id == newer.id
    assert json.loads(dict(Trigger.objects.get().tags)["filter"]) == {"kinds": [1]}  # type: ignore[arg-type]


def test_a_followed_skill_takes_the_newer_version_at_once(agent: Agent, author: str) -> None:
    address = adopt(agent, author)
    arming.pin(agent, address, AdoptedSkill.objects.get().pinned_event, NOW, follow=True)
    newer = skill_event(author, at=AT + 1, tags=on({"kinds": [7]}))
    arrive(newer)
    assert Trigger.objects.get().event_id == newer.id


@pytest.mark.parametrize(
    ("content", "tags", "autonomy"),
    [
        ({}, on(), "suggest"),  # all that is granted, and posting is
        ({"tools": ["nostr_query"], "context_mode": "inject"}, on(), "auto"),
        ({"tools": ["nostr_post"], "context_mode": "inject"}, on(), "suggest"),
        ({"tools": ["nostr_dm_send"], "context_mode": "inject"}, on(), "auto"),  # not granted
        ({}, on(MENTIONS, ["tools", "false"]), "auto"),
        ({"template": "POST: {content}"}, on(MENTIONS, ["action", "template"]), "suggest"),
        ({"template": "LOG: {content}"}, on(MENTIONS, ["action", "template"]), "auto"),
    ],
)
def test_a_skill_with_writing_tools_asks_its_owner_first(
    agent: Agent, author: str, content: dict[str, Any], tags: Any, autonomy: str
) -> None:
    adopt(agent, author, tags=tags, **content)
    assert Trigger.objects.get().autonomy == autonomy


def test_a_version_with_more_writing_tools_asks_again(agent: Agent, author: str) -> None:
    address = adopt(agent, author, tags=on(MENTIONS, ["tools", "nostr_query"]))
    assert Trigger.objects.get().autonomy == "auto"
    same = skill_event(author, at=AT + 1, tags=on(MENTIONS, ["tools", "nostr_query"]), description="better")
    more = skill_event(author, at=AT + 2, tags=on(MENTIONS, ["tools", "nostr_query", "nostr_post"]))
    arrive(same, more)
    arming.pin(agent, address, same.id, NOW)
    assert Trigger.objects.get().autonomy == "auto"
    arming.pin(agent, address, more.id, NOW)
    assert Trigger.objects.get().autonomy == "suggest"


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        (on({}), "Nothing narrows"),
        (on({"kinds": []}), "empty list"),
        ([["trigger", "moonphase"]], "not usable here"),
        (on(MENTIONS, ["enabled", "false"]), "switched the trigger off"),
    ],
)
def test_what_cannot_be_used_says_why(agent: Agent, author: str, tags: Any, words: str) -> None:
    adopt(agent, author, tags=tags)
    trigger = Trigger.objects.get()
    assert not trigger.usable
    assert words in trigger.problem


def test_a_filter_that_names_the_admin_needs_one(agent: Agent, author: str) -> None:
    agent.admin_pubkey = ""
    agent.save()
    adopt(agent, author)
    assert "has none" in Trigger.objects.get().problem
    agent.admin_pubkey = "d" * 64
    agent.save()
    arming.arm(agent, NOW)
    assert Trigger.objects.get().usable


def test_a_deleted_skill_is_no_longer_armed(agent: Agent, author: str) -> None:
    address = adopt(agent, author)
    arrive(signed(author, kinds.DELETION, "", [["a", address]], AT + 1))
    trigger = Trigger.objects.get()
    assert (trigger.usable, trigger.problem) == (False, arming.GONE)


def test_a_private_skill_of_the_agent_is_opened_and_armed(agent: Agent) -> None:
    content = signing.encrypt(agent.identity, json.dumps({"description": "mine", "template": "LOG: {content}"}))
    tags = (("d", "own"), *(tuple(tag) for tag in on(MENTIONS, ["action", "template"])))
    event = signing.sign(agent.identity, Draft(agent.identity.pubkey, AT, kinds.PRIVATE_SKILL, tags, content))
    arrive(event, adoption_list(agent, str(event.address)))
    trigger = Trigger.objects.get()
    assert (trigger.usable, trigger.autonomy) == (True, "auto")


def test_a_private_skill_of_somebody_else_is_armed_but_not_usable(agent: Agent, author: str) -> None:
    content = nostr.encrypt_to_self(author, json.dumps({"template": "POST: x"}))
    event = signed(author, kinds.PRIVATE_SKILL, content, [["d", "theirs"], *on()])
    arrive(event, adoption_list(agent, str(event.address)))
    assert not Trigger.objects.get().usable


def test_the_owners_switch_survives_arming_and_starts_from_now(agent: Agent, author: str) -> None:
    adopt(agent, author)
    trigger = Trigger.objects.get()
    arming.switch(trigger, False, NOW)
    arming.arm(agent, NOW)
    assert not Trigger.objects.get().enabled
    later = NOW + timedelta(days=1)
    arming.switch(trigger, True, later)
    assert trigger.armed_at == int(later.timestamp())


def test_waking_an_agent_does_not_fire_what_happened_meanwhile(agent: Agent, author: str) -> None:
    adopt(agent, author)
    revision = Trigger.objects.get().revision
    arming.switch_agent(agent, False, NOW)
    arming.switch_agent(agent, True, NOW + timedelta(hours=1))
    trigger = Trigger.objects.get()
    assert trigger.armed_at == int(NOW.timestamp()) + 3600
    assert trigger.revision > revision


def test_a_quick_look_finds_agents_out_of_step_and_is_cheap_when_none_is(
    agent: Agent, author: str, django_assert_max_num_queries: Any
) -> None:
    adopt(agent, author)
    assert arming.arm_all(NOW) == 0
    for number in range(5):
        adopt(make_agent(f"more{number}"), author, f"skill{number}")
    with django_assert_max_num_queries(6):
        assert arming.arm_all(NOW) == 0
    AdoptedSkill.objects.filter(agent=agent).delete()
    assert arming.arm_all(NOW) == 1
    assert AdoptedSkill.objects.filter(agent=agent).count() == 1


def test_a_schedule_knows_its_next_time(agent: Agent, author: str) -> None:
    adopt(agent, author, tags=[["trigger", "cron"], ["schedule", "0 9 * * *"], ["tz", "Europe/Berlin"]])
    trigger = Trigger.objects.get()
    assert trigger.next_run_at is not None
    assert trigger.next_run_at.astimezone(ZoneInfo("Europe/Berlin")).hour == 9


def test_skills_that_would_start_each_other_cannot_fire(agent: Agent, author: str) -> None:
    key = nostr.public_key(author)
    events = [
        skill_event(author, d, tags=[["trigger", "chain"], ["source", f"31123:{key}:{source}"]])
        for d, source in (("one", "two"), ("two", "one"), ("three", "two"))
    ]
    arrive(*events, adoption_list(agent, *[str(event.address) for event in events]))
    arming.arm(agent, NOW)
    found = {trigger.name: trigger for trigger in Trigger.objects.all()}
    assert not found["one"].usable and not found["two"].usable and found["three"].usable
    assert "one → two → one" in found["one"].problem
    arrive(adoption_list(agent, *[str(event.address) for event in events[1:]], at=AT + 1))
    arming.arm(agent, NOW)
    assert Trigger.objects.get(address__endswith=":two").usable
