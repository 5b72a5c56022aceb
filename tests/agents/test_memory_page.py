"""What an agent remembers: its owner reads, searches, adds, corrects and has it forgotten; programs read it."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import Agent, Memory
from agents.models.memory import LONGEST
from agents.tools import ToolContext, call
from marketplace.models import ApiToken
from tests.agents import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def owned(helper: Agent, client: Client) -> Client:
    client.force_login(helper.owner)
    return client


def remembered(agent: Agent, *texts: str) -> list[Memory]:
    return [Memory.objects.create(agent=agent, text=text, created_at=timezone.now()) for text in texts]


def page(agent: Agent, query: str = "") -> str:
    return f"/agents/{agent.slug}/memory/{query}"


def test_what_the_owner_tells_it_the_tools_find_and_the_other_way_round(owned: Client, helper: Agent) -> None:
    assert owned.post(page(helper), {"text": "  Her birthday is in May. "}).status_code == 302
    ctx = ToolContext(helper, timezone.now(), frozenset({"memory_save", "memory_search"}))
    assert "birthday is in May" in call(ctx, "memory_search", {"query": "may BIRTHDAY"})
    call(ctx, "memory_save", {"text": "She likes tea."})
    shown = owned.get(page(helper, "?q=tea")).content.decode()
    assert "She likes tea." in shown
    assert "birthday" not in shown


def test_a_memory_is_corrected_or_forgotten(owned: Client, helper: Agent) -> None:
    first, second = remembered(helper, "one", "two")
    owned.post(page(helper, f"{first.pk}/"), {"do": "save", "text": "uno"})
    owned.post(page(helper, f"{second.pk}/"), {"do": "forget"})
    assert [memory.text for memory in helper.memories.all()] == ["uno"]


def test_a_wrong_correction_loses_nothing(owned: Client, helper: Agent) -> None:
    (memory,) = remembered(helper, "one")
    response = owned.post(page(helper, f"{memory.pk}/"), {"do": "save", "text": "long " * LONGEST})
    assert response.status_code == 422
    shown = response.content.decode()
    assert f"from 1 to {LONGEST:,} characters" in shown
    assert "long long long" in shown
    memory.refresh_from_db()
    assert memory.text == "one"


@pytest.mark.parametrize("text", ["", "   ", "x" * 200_000, "a\0b", "nsec1" + "q" * 58])
def test_what_cannot_be_kept_is_said_beside_its_field(owned: Client, helper: Agent, text: str) -> None:
    response = owned.post(page(helper), {"text": text})
    assert response.status_code == 422
    assert 'class="error"' in response.content.decode()
    assert "q" * 58 not in response.content.decode()
    assert not Memory.objects.exists()


def test_emoji_and_markup_come_back_as_they_were(owned: Client, helper: Agent) -> None:
    owned.post(page(helper), {"text": "<b>😀</b> é"})
    assert helper.memories.get().text == "<b>😀</b> é"
    assert "&lt;b&gt;😀&lt;/b&gt; é" in owned.get(page(helper)).content.decode()


def test_there_is_an_end_to_it(owned: Client, helper: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.models.memory.MOST", 2)
    remembered(helper, "one", "two")
    response = owned.post(page(helper), {"text": "three"})
    assert response.status_code == 422
    assert "the owner can delete some" in response.content.decode()
    assert helper.memories.count() == 2


def test_the_list_is_paged_and_quick(
    owned: Client, helper: Agent, django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.views.memory.PAGE", 3)
    remembered(helper, *(f"number {number}" for number in range(5)))
    with django_assert_max_num_queries(8):
        first = owned.get(page(helper, "?q=number"))
    assert [memory.text for memory, _ in first.context["rows"]] == ["number 4", "number 3", "number 2"]
    second = owned.get(page(helper, f"?{first.context['older']}"))
    assert [memory.text for memory, _ in second.context["rows"]] == ["number 1", "number 0"]
    for odd in ("?before=x", "?before=" + "9" * 60, "?q=%00%ed%a0%80", "?q=" + "%F0%9F%98%80" * 1000):
        assert owned.get(page(helper, odd)).status_code == 200


def test_another_agents_memory_is_not_changed(owned: Client, helper: Agent) -> None:
    theirs = rows.agent(rows.owner("bob"), "Other")
    (memory,) = remembered(theirs, "secret")
    assert owned.post(page(theirs, f"{memory.pk}/"), {"do": "forget"}).status_code == 404
    assert owned.post(page(helper, f"{memory.pk}/"), {"do": "forget"}).status_code == 404
    assert Memory.objects.count() == 1


def test_programs_read_it(client: Client, helper: Agent) -> None:
    remembered(rows.agent(rows.owner("bob"), "Other"), "secret")
    remembered(helper, "one", "two", "three")
    token = {"Authorization": f"Bearer {ApiToken.issue(helper.owner, 'r', ['read'])}"}
    first = client.get("/api/v1/memory?limit=2", headers=token).json()
    assert [item["text"] for item in first["items"]] == ["three", "two"]
    second = client.get(f"/api/v1/memory?limit=2&cursor={first['next']}", headers=token).json()
    assert ([item["text"] for item in second["items"]], second["next"]) == (["one"], None)
    found = client.get(f"/api/v1/memory?q=TWO&agent={helper.slug}", headers=token).json()
    assert [(item["agent"], item["text"]) for item in found["items"]] == [(helper.slug, "two")]
    assert client.get("/api/v1/memory?agent=other", headers=token).status_code == 404
    assert client.get("/api/v1/memory?cursor=x", headers=token).status_code == 400
    assert client.get("/api/v1/memory").status_code == 401
