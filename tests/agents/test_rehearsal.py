"""“What would have happened”: past events from a real relay, past slots, deliveries and runs; nothing fires."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import Agent, Delivery, Run, Trigger
from agents.rehearsing import rehearsal
from marketplace import relays
from marketplace.protocol import nostr
from tests.agents import rows
from tests.agents.world import signed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def own() -> Agent:
    return rows.agent(rows.owner(), "Scout", limits={"cooldown": 60})


def armed(own: Agent, kind: str, *tags: list[str], **content: Any) -> Trigger:
    found = rows.skill({"description": "x", "template": "Say {content}"} | content, ["trigger", kind], *tags)
    all_tags = [["trigger", kind], *tags]
    action = next((tag[1] for tag in tags if tag[0] == "action"), "llm")
    return Trigger.objects.create(
        agent=own, address=str(found.address), event_id=found.id, kind=kind, tags=all_tags, action=action, armed_at=0
    )


def test_stored_events_show_what_would_have_run(own: Agent, client: Client, relay: Any, settings: Any) -> None:
    settings.RELAYS = [relay.url]
    now, author = timezone.now(), nostr.generate_secret()
    at = int(now.timestamp())
    for seconds, text in ((7_200, "first"), (7_190, "too soon"), (3_600, "second"), (900_000, "long ago")):
        assert relays.publish(signed(author, 1, text, at=at - seconds), [relay.url])[0].ok
    trigger = armed(own, "nostr-subscription", ["filter", '{"kinds":[1]}'], ["action", "template"])
    found = rehearsal(trigger, 7, now)
    assert [one.moment.what.content for one in found.runs] == ["first", "second"]
    assert found.held_back == [("cooldown", 1)] and not found.problems
    client.force_login(own.owner)
    address = f"/agents/scout/triggers/{trigger.pk}/rehearsal/"
    page = client.get(f"{address}?days=7").content.decode()
    assert "Say second" in page and "cooldown" in page and "long ago" not in page
    assert "found" not in client.get(f"{address}?days=x").context
    assert not Run.objects.exists()


def test_words_of_a_search_count(own: Agent, relay: Any, settings: Any) -> None:
    settings.RELAYS = [relay.url]
    now, author = timezone.now(), nostr.generate_secret()
    for seconds, text in ((900, "Lightning at night"), (300, "rain")):
        relays.publish(signed(author, 1, text, at=int(now.timestamp()) - seconds), [relay.url])
    wanted = '{"authors":["' + nostr.public_key(author) + '"],"search":"lightning"}'
    trigger = armed(own, "nostr-subscription", ["filter", wanted])
    assert [one.moment.what.content for one in rehearsal(trigger, 1, now).runs] == ["Lightning at night"]


def test_a_relay_that_is_away_is_named(own: Agent, settings: Any) -> None:
    settings.RELAYS = ["ws://127.0.0.1:9"]
    trigger = armed(own, "nostr-subscription", ["filter", '{"kinds":[1]}'])
    assert "ws://127.0.0.1:9" in rehearsal(trigger, 1, timezone.now()).problems


def test_a_schedule_shows_its_past_and_next_slots_and_what_they_cost(own: Agent, client: Client) -> None:
    trigger = armed(own, "cron", ["schedule", "0 * * * *"], ["tz", "Europe/Berlin"], template="Hello.")
    found = rehearsal(trigger, 7, timezone.now())
    assert len(found.runs) == 168 and len(found.by_day) in {7, 8}
    client.force_login(own.owner)
    response = client.get(f"/agents/scout/triggers/{trigger.pk}/rehearsal/?days=1")
    assert len(response.context["next"]) == 10 and len(response.context["found"].runs) == 24
    model, least, most = response.context["costs"][0]
    assert model == "openai/gpt-4o-mini" and 0 < least < most


def test_deliveries_and_ended_runs_are_on_record(own: Agent) -> None:
    now = timezone.now()
    hook = armed(own, "webhook")
    for minutes in (5, 50):
        at = now - timedelta(minutes=minutes)
        Delivery.objects.create(trigger=hook, at=at, key=str(minutes), accepted=True, body=b"{}")
    assert len(rehearsal(hook, 1, now).runs) == 2
    source = f"31123:{'a' * 64}:source"
    chain = armed(own, "chain", ["source", source], ["on", "failed"])
    for status in ("failed", "succeeded", "failed"):
        rows.run(own, status=status, skill_address=source, finished_at=now - timedelta(hours=Run.objects.count() + 1))
    assert len(rehearsal(chain, 1, now).runs) == 2


def test_it_is_the_owners_alone(own: Agent, client: Client) -> None:
    trigger = armed(own, "cron", ["schedule", "0 * * * *"])
    client.force_login(rows.owner("bob"))
    assert client.get(f"/agents/scout/triggers/{trigger.pk}/rehearsal/?days=1").status_code == 404
