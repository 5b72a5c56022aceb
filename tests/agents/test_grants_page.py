"""What an agent may do beside what it did: narrowed with a click, undone with another, all of it on record."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import AdoptedSkill, Agent, Budget, Change, Step, Trigger
from agents.tools import TOOLS
from agents.views.grants import used
from marketplace.protocol import nip19
from tests.agents import rows
from tests.agents.world import AT, arrive, skill_event, stranger

pytestmark = pytest.mark.django_db


@pytest.fixture
def owned(helper: Agent, client: Client) -> Client:
    helper.grants = ["http_fetch", "memory_save", "nostr_admin_notes", "nostr_post"]
    helper.save()
    client.force_login(helper.owner)
    return client


def did(agent: Agent, name: str, kind: str = "tool", state: str = "done", **values: Any) -> None:
    run = rows.run(agent, key=f"{name} {kind} {state}")
    Step.objects.create(run=run, position=1, kind=kind, name=name, state=state, started_at=timezone.now(), **values)


def page(client: Client, agent: Agent) -> str:
    return client.get(f"/agents/{agent.slug}/grants/").content.decode()


def test_it_says_what_was_used_and_what_was_not(owned: Client, helper: Agent) -> None:
    did(helper, "memory_save")
    did(helper, "http_fetch", state="refused")
    did(helper, "http_fetch", state="waiting")
    did(helper, "admin_notes", kind="variable", input={"names": ["admin_notes", "message"]})
    uses = used(helper)
    assert (uses["memory_save"].count, uses["nostr_admin_notes"].count, uses["http_fetch"].count) == (1, 1, 0)
    shown = page(owned, helper)
    assert "Narrow to what it used" in shown
    assert "nostr_post, http_fetch" in shown


def test_narrowing_keeps_what_was_used_and_is_undone(owned: Client, helper: Agent) -> None:
    before = list(helper.grants)
    did(helper, "memory_save")
    owned.post(f"/agents/{helper.slug}/grants/", {"narrow": "1"})
    helper.refresh_from_db()
    assert helper.grants == ["memory_save"]
    change = Change.objects.get(what="grants")
    assert (change.before, change.after, change.actor) == (before, ["memory_save"], "owner")
    owned.post(f"/agents/{helper.slug}/changes/{change.pk}/undo/")
    helper.refresh_from_db()
    assert helper.grants == before
    assert Change.objects.filter(what="grants").count() == 2


def test_an_agent_that_used_nothing_is_not_left_without_rights(owned: Client, helper: Agent) -> None:
    owned.post(f"/agents/{helper.slug}/grants/", {"narrow": "1"})
    helper.refresh_from_db()
    assert len(helper.grants) == 4
    assert not Change.objects.exists()


def test_only_the_last_runs_count(owned: Client, helper: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.views.grants.LOOKED_AT", 1)
    did(helper, "memory_save")
    did(helper, "nostr_post")
    assert [use.tool.name for use in used(helper).values() if use.count] == ["nostr_post"]


def test_what_else_it_may_is_saved_and_on_record(owned: Client, helper: Agent) -> None:
    form = {"grant": ["model_set", "shell"], "public_skills": "on", "model_choices": "ollama/llama3\n\nopenai/gpt-4o\n"}
    assert owned.post(f"/agents/{helper.slug}/grants/", form).status_code == 302
    helper.refresh_from_db()
    assert (helper.grants, helper.public_skills, helper.self_change) == (["model_set"], True, False)
    assert helper.model_choices == ["ollama/llama3", "openai/gpt-4o"]
    assert set(Change.objects.values_list("what", flat=True)) == {"grants", "public_skills", "model_choices"}


@pytest.mark.parametrize("models", ["https://evil.example/v1", "a/b, c/d", "x" * 300, "nsec1" + "q" * 58])
def test_a_model_that_is_none_is_said_beside_its_field(owned: Client, helper: Agent, models: str) -> None:
    response = owned.post(f"/agents/{helper.slug}/grants/", {"grant": ["http_fetch"], "model_choices": models})
    assert response.status_code == 422
    shown = response.content.decode()
    assert 'value="http_fetch" checked' in shown, "nothing that was chosen is lost"
    assert "q" * 58 not in shown
    helper.refresh_from_db()
    assert (len(helper.grants), helper.model_choices) == (4, [])


@pytest.mark.parametrize("text", ["😀" * 50_000, "a\0b", "\ud800".encode("utf-8", "surrogatepass"), "x\n" * 100_000])
def test_whatever_is_typed_is_no_error_of_ours(owned: Client, helper: Agent, text: Any) -> None:
    given = {"grant": text, "model_choices": text}
    assert owned.post(f"/agents/{helper.slug}/grants/", given).status_code in {302, 422}


def test_it_says_whom_it_may_write_to(owned: Client, helper: Agent) -> None:
    helper.admin_pubkey, helper.dm_recipients = "a" * 64, ["b" * 64]
    helper.save()
    shown = page(owned, helper)
    for key in ("a" * 64, "b" * 64):
        assert nip19.encode_npub(key)[:10] in shown


def test_every_tool_stands_there_and_the_page_is_quick(
    owned: Client, helper: Agent, django_assert_max_num_queries: Any
) -> None:
    for name in list(TOOLS)[:20]:
        did(helper, name)
    with django_assert_max_num_queries(8):
        shown = page(owned, helper)
    assert all(f'value="{name}"' in shown for name in TOOLS)


# --- What changed ----------------------------------------------------------------


def test_the_history_is_paged_and_links_its_runs(
    owned: Client, helper: Agent, django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.views.changes.PAGE", 3)
    run = rows.run(helper)
    for number in range(5):
        Change.record(helper, "llm", "", str(number), str(number + 1), timezone.now(), run=run)
    with django_assert_max_num_queries(8):
        first = owned.get(f"/agents/{helper.slug}/changes/")
    assert [change.after for change in first.context["changes"]] == ["5", "4", "3"]
    assert f"/runs/{run.pk}/" in first.content.decode()
    second = owned.get(f"/agents/{helper.slug}/changes/?before={first.context['more']}")
    assert [change.after for change in second.context["changes"]] == ["2", "1"]
    assert owned.get(f"/agents/{helper.slug}/changes/?before=x{'9' * 50}").status_code == 200
    assert "What changed" in owned.get(f"/agents/{helper.slug}/").content.decode()


def test_what_cannot_be_undone_is_said(owned: Client, helper: Agent) -> None:
    change = Change.record(helper, "skill", "x", None, {"event": "1"}, timezone.now())
    assert change is not None
    answer = owned.post(f"/agents/{helper.slug}/changes/{change.pk}/undo/", follow=True)
    assert "cannot be undone" in answer.content.decode()


def test_settings_leave_an_entry_for_each_field(owned: Client, helper: Agent) -> None:
    shown = owned.get(f"/agents/{helper.slug}/settings/").context["form"]
    given = {name: shown[name].value() for name in shown.fields if shown[name].value() is not None}
    given = {name: "\n".join(map(str, value)) if isinstance(value, list) else value for name, value in given.items()}
    given |= {"soul": "Be brief.", "llm": "openai/gpt-4o", "day": "2.5"}
    assert owned.post(f"/agents/{helper.slug}/settings/", given).status_code == 302
    entries = {change.what: (change.before, change.after) for change in Change.objects.all()}
    assert entries["soul"] == ("", "Be brief.")
    assert entries["llm"] == ("openai/gpt-4o-mini", "openai/gpt-4o")
    assert list(entries["budgets"][1].values()) == ["2.5"]
    assert set(entries) == {"soul", "llm", "budgets"}


def test_a_key_of_a_provider_is_told_without_the_key(owned: Client, helper: Agent) -> None:
    for key in ("sk-first-CANARY", "sk-second-CANARY"):
        owned.post(f"/agents/{helper.slug}/keys/", {"provider": "openai", "key": key})
    pk = helper.provider_keys.get().pk
    owned.post(f"/agents/{helper.slug}/keys/{pk}/remove/")
    entries = list(Change.objects.filter(what="provider key").order_by("pk"))
    assert [entry.object for entry in entries] == ["openai"] * 3
    kept = " ".join(f"{entry.before} {entry.after}" for entry in entries)
    assert "CANARY" not in kept
    assert "gAAAA" not in kept
    assert entries[-1].after is None


def test_switches_budgets_and_triggers_are_on_record(owned: Client, helper: Agent) -> None:
    owned.post(f"/agents/{helper.slug}/enabled/", {"enabled": "off"})
    trigger = Trigger.objects.create(
        agent=helper, address=f"31123:{'a' * 64}:x", event_id="b" * 64, kind="chain", armed_at=0
    )
    owned.post(f"/agents/{helper.slug}/triggers/{trigger.pk}/", {"enabled": "off", "autonomy": "auto"})
    owned.post(f"/agents/{helper.slug}/triggers/{trigger.pk}/", {"enabled": "off"})
    entries = [(change.what, change.words) for change in Change.objects.order_by("pk")]
    assert entries == [
        ("enabled", ["yes → no"]),
        ("trigger", ["on: yes → no", "autonomy: suggest → auto"]),
    ]


def test_accepting_a_newer_version_is_on_record(owned: Client, helper: Agent) -> None:
    secret = stranger()
    first, second = skill_event(secret, "helps"), skill_event(secret, "helps", at=AT + 9)
    arrive(first, second)
    AdoptedSkill.objects.create(agent=helper, address=str(first.address), pinned_event=first.id)
    owned.post(f"/agents/{helper.slug}/skills/pin/", {"address": str(first.address), "event": second.id})
    entry = Change.objects.get(what="adoption")
    assert (entry.object, entry.before, entry.after) == ("helps", {"event": first.id}, {"event": second.id})


def test_budgets_in_their_own_form_are_on_record_too(helper: Agent) -> None:
    before = Budget.objects.in_words(helper)
    Budget.objects.put(helper, "agent", "", "day", timezone.now().year)  # type: ignore[arg-type]
    assert before == {}
    assert Budget.objects.in_words(helper) == {"agent day": str(timezone.now().year)}
