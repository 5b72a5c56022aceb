"""History and one run: what it was made of, live until it ends, and what its owner can do."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import Agent, Run, Step
from marketplace.models import Skill
from tests.agents import rows

pytestmark = pytest.mark.django_db
NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # of NIP-19's own example


@pytest.fixture
def own(client: Client) -> Agent:
    user = rows.owner()
    client.force_login(user)
    return rows.agent(user, "Scout", llm="offline/echo")


def step(run: Run, position: int = 1, **values: Any) -> Step:
    fields = {"kind": "tool", "name": "nostr_post", "risk": "writes", "started_at": timezone.now()} | values
    return Step.objects.create(run=run, position=position, **fields)


def test_an_empty_history_says_what_to_do_next(own: Agent, client: Client) -> None:
    assert b"Nothing has run yet" in client.get("/runs/").content


@pytest.mark.parametrize("status", Run.Status.values)
def test_every_status_is_a_word_with_a_shape(own: Agent, client: Client, status: str) -> None:
    run = rows.run(own, status=status, reason_words="This is why.")
    for address in ("/runs/", f"/runs/{run.pk}/"):
        page = client.get(address).content.decode()
        assert f'<span class="status status-{status}">{status}</span>' in page and "This is why." in page


def test_filters_are_addresses(own: Agent, client: Client) -> None:
    day = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
    wanted = rows.run(own, status="failed", skill_name="spell", trigger_kind="cron", model="a/b")
    Run.objects.filter(pk=wanted.pk).update(created_at=day)
    rows.run(own, status="succeeded")
    queries = ["status=failed", "skill=spell", "trigger=cron", "model=a/b", "from=2026-03-28&to=2026-03-28"]
    for query in [*queries, "&".join([*queries, "agent=scout"])]:
        assert [run.pk for run in client.get(f"/runs/?{query}").context["runs"]] == [wanted.pk], query
    own.owner.time_zone = "Europe/Berlin"
    own.owner.save()
    assert not client.get("/runs/?from=2026-03-28&to=2026-03-28").context["runs"]
    assert client.get("/runs/?from=2026-03-29&to=2026-03-29").context["runs"]


@pytest.mark.parametrize("query", ["status=x", "from=1", "before=1", "before=9-%27", "skill=%00", "to=9999-99-99"])
def test_a_filter_that_cannot_be_meant_is_said_in_words(own: Agent, client: Client, query: str) -> None:
    response = client.get(f"/runs/?{query}")
    assert response.status_code == 400 and b'role="alert"' in response.content


def test_pages_hold_every_run_once_also_at_equal_times(own: Agent, client: Client) -> None:
    now = timezone.now()
    made = [rows.run(own) for _ in range(120)]
    Run.objects.update(created_at=now)
    Run.objects.filter(pk__in=[run.pk for run in made[:30]]).update(created_at=now - timedelta(hours=1))
    seen, query = [], ""
    while True:
        response = client.get(f"/runs/?{query}")
        seen += [run.pk for run in response.context["runs"]]
        query = response.context["older"]
        if not query:
            break
    assert len(seen) == 120 == len(set(seen))


def test_unknown_costs_are_said_and_small_ones_have_digits(own: Agent, client: Client) -> None:
    rows.run(own, status="succeeded", unknown_costs=1, skill_name="unpriced")
    rows.run(own, status="succeeded", cost=Decimal("0.00042"), skill_name="cheap")
    rows.run(own, status="succeeded", cost=Decimal("0.5"), unknown_costs=2, skill_name="mixed")
    page = client.get("/runs/").content.decode()
    assert "unknown" in page and "$0.00042" in page and "$0.50 + 2 unknown" in page


def test_a_run_shows_everything_it_was_made_of(own: Agent, client: Client) -> None:
    run = rows.run(
        own,
        status="succeeded",
        model="offline/echo",
        output="<script>alert(1)</script>\u202e",
        parameters={"llm": {"value": "cheap", "origin": "skill"}, "tools": {"value": True, "origin": "agent"}},
        request={"messages": [{"role": "system", "content": "You are kind."}]},
        warnings=["{{weather}} is unknown"],
        input={"message": "hello", "arguments": {"tone": "kind"}, "event": {"id": "e" * 64}},
    )
    step(run, 1, kind="model", name="a/asked", served_model="b/served", state="failed", error="refused (401)")
    step(run, 2, state="done", input={"arguments": {"content": "note"}}, text="Published.")
    page = client.get(f"/runs/{run.pk}/").content.decode()
    for words in ("a/asked", "b/served", "refused (401)", "Published.", "cheap", "skill", "all granted"):
        assert words in page
    for words in ("You are kind.", "weather", "hello", "tone", "e" * 64, "offline echo, not a language model"):
        assert words in page
    assert "<script>alert" not in page and "U+202E" in page


def test_an_open_run_asks_again_and_the_last_answer_does_not(own: Agent, client: Client) -> None:
    run = rows.run(own, status="running")
    assert "hx-trigger" in client.get(f"/runs/{run.pk}/").content.decode()
    fragment = client.get(f"/runs/{run.pk}/", headers={"HX-Request": "true"})
    assert b"<html" not in fragment.content and b'hx-trigger="load' in fragment.content
    Run.objects.filter(pk=run.pk).update(status="succeeded", finished_at=timezone.now())
    last = client.get(f"/runs/{run.pk}/", headers={"HX-Request": "true"})
    assert b"hx-trigger" not in last.content and b"hx-get" not in last.content and b"succeeded" in last.content


@pytest.mark.parametrize(("said", "kept"), [("approve", "approved"), ("decline", "declined")])
def test_a_waiting_call_is_decided_once_and_the_run_goes_on(own: Agent, client: Client, said: str, kept: str) -> None:
    run = rows.run(own, status="waiting", reason="approval", autonomy="suggest")
    waiting = step(run, state="waiting", input={"arguments": {"content": "a note"}})
    assert b"a note" in client.get(f"/runs/{run.pk}/").content
    client.post(f"/runs/{run.pk}/steps/1/", {"decision": said})
    waiting.refresh_from_db()
    assert waiting.outcome == kept and Run.objects.claimable(timezone.now()).filter(pk=run.pk).exists()
    client.post(f"/runs/{run.pk}/steps/1/", {"decision": "decline" if said == "approve" else "approve"})
    waiting.refresh_from_db()
    assert waiting.outcome == kept


def test_a_decision_about_a_run_that_ended_changes_nothing(own: Agent, client: Client) -> None:
    run = rows.run(own, status="cancelled")
    waiting = step(run, state="waiting")
    client.post(f"/runs/{run.pk}/steps/1/", {"decision": "approve"})
    waiting.refresh_from_db()
    assert waiting.outcome == ""


def test_stop_ends_an_open_run_and_leaves_an_ended_one(own: Agent, client: Client) -> None:
    running, done = rows.run(own, status="running"), rows.run(own, status="succeeded")
    for run in (running, done):
        client.post(f"/runs/{run.pk}/stop/")
        run.refresh_from_db()
    assert (running.status, done.status) == ("cancelled", "succeeded")


def test_run_again_keeps_version_and_input(own: Agent, client: Client) -> None:
    old = rows.run(own, status="failed", skill_event="c" * 64, input={"message": "hello"}, overrides={"seed": 1})
    for _ in range(2):  # pressed twice
        client.post(f"/runs/{old.pk}/again/", {"token": "t"})
    new = Run.objects.exclude(pk=old.pk).get()
    assert (new.skill_event, new.input, new.overrides) == (old.skill_event, old.input, old.overrides)
    assert new.status == Run.Status.QUEUED


def test_the_form_asks_for_the_templates_own_variables(own: Agent, client: Client) -> None:
    found = rows.skill({"template": "Write to {{recipient}} about {{message}} as {{soul}}", "context_mode": "full"})
    skill = str(found.address)
    listed = {"kind": 31123, "pubkey": found.pubkey, "d": "demo", "event_id": found.id}
    Skill.objects.create(**listed, created_at=1, first_published=1)
    page = client.get("/runs/start/", {"skill": skill})
    assert list(page.context["form"].own.values()) == ["recipient"]
    assert b"offline echo, not a language model" in page.content
    token = page.context["form"]["token"].value()
    form = {
        "skill": skill,
        "agent": "scout",
        "token": token,
        "message": "tea",
        "variable-recipient": "Ann",
        "seed": "7",
    }
    first, second = client.post("/runs/start/", form), client.post("/runs/start/", form)
    run = Run.objects.get()  # sent twice, run once
    assert first["Location"] == second["Location"] == f"/runs/{run.pk}/"
    assert run.input == {"message": "tea", "arguments": {"recipient": "Ann"}} and run.overrides == {"seed": 7}
    assert (run.skill_event, run.trigger_kind) == (found.id, "manual")


@pytest.mark.parametrize("field", ["message", "variable-recipient", "llm"])
def test_a_secret_key_reaches_no_run_and_no_page(own: Agent, client: Client, field: str) -> None:
    found = rows.skill({"template": "Write to {{recipient}} about {{message}}", "context_mode": "full"})
    Skill.objects.create(kind=31123, pubkey=found.pubkey, d="demo", event_id=found.id, created_at=1, first_published=1)
    form = {"skill": str(found.address), "agent": "scout", "token": "t", "message": "hi", field: f"mine: {NSEC}"}
    page = client.post("/runs/start/", form)
    assert page.status_code == 422 and b"This held a secret key" in page.content and NSEC.encode() not in page.content
    assert not Run.objects.exists()


def test_a_template_action_is_not_run_by_hand(own: Agent, client: Client) -> None:
    tags = (["trigger", "nostr-subscription"], ["filter", '{"kinds":[1]}'], ["action", "template"])
    found = rows.skill({"template": "POST: hello"}, *tags)
    Skill.objects.create(kind=31123, pubkey=found.pubkey, d="demo", event_id=found.id, created_at=1, first_published=1)
    skill = str(found.address)
    assert b"runs when its trigger fires" in client.get("/runs/start/", {"skill": skill}).content
    client.post("/runs/start/", {"skill": skill, "agent": "scout", "token": "t"})
    assert not Run.objects.exists()


@pytest.mark.parametrize("skill", ["x", "31123:zz:x", "naddr1nope", "%00", f"1:{'a' * 64}:x", f"31123:{'a' * 64}:gone"])
def test_a_skill_that_is_not_there_is_404(own: Agent, client: Client, skill: str) -> None:
    assert client.get(f"/runs/start/?skill={skill}").status_code == 404


def test_a_skills_page_gets_its_runs_as_a_fragment(own: Agent, client: Client) -> None:
    address = f"31123:{'a' * 64}:x"
    rows.run(own, skill_address=address, skill_name="x", status="succeeded")
    fragment = client.get("/skills-runs/", {"address": address}).content.decode()
    assert "<html" not in fragment and "status-succeeded" in fragment and "/runs/start/?skill=" in fragment
    client.logout()
    assert "status-succeeded" not in client.get("/skills-runs/", {"address": address}).content.decode()
