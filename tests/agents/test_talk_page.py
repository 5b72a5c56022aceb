"""The conversation page: what it shows while an answer comes, what it takes, and whose it is."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.dispatch import talking
from agents.models import Agent, Conversation, Run, Step
from marketplace.models import ApiToken
from tests.agents import rows

pytestmark = pytest.mark.django_db
NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # of NIP-19's own example


@pytest.fixture
def own(client: Client) -> Agent:
    user = rows.owner()
    client.force_login(user)
    return rows.agent(user, "Scout")


@pytest.fixture
def talk(own: Agent) -> Conversation:
    return talking.open_conversation(own, "page", timezone.now())


def said(talk: Conversation, message: str, **values: Any) -> Run:
    run = talking.say(talk, message, timezone.now(), message)
    Run.objects.filter(pk=run.pk).update(**values)
    run.refresh_from_db()
    return run


def step(run: Run, position: int, **values: Any) -> Step:
    fields = {"kind": "tool", "name": "nostr_query", "risk": "reads", "started_at": timezone.now(), "state": "done"}
    return Step.objects.create(run=run, position=position, **{**fields, **values})


def part(client: Client, talk: Conversation, first: int = 1) -> str:
    response = client.get(f"/agents/scout/talk/{talk.pk}/?from={first}", headers={"HX-Request": "true"})
    assert response.status_code == 200
    return str(response.content.decode())


def test_the_first_message_begins_a_conversation_once(own: Agent, client: Client) -> None:
    page = client.get("/agents/scout/talk/").content.decode()
    assert "Nothing was said yet" in page and 'href="/agents/scout/talk/"' in page
    sent = {"token": "t", "message": "Hello,\nyou"}
    first, again = client.post("/agents/scout/talk/", sent), client.post("/agents/scout/talk/", sent)
    talk = Conversation.objects.get()
    run = Run.objects.get()
    assert first["Location"] == again["Location"] == f"/agents/scout/talk/{talk.pk}/#turn-1"
    assert (run.conversation, run.turn, run.input["message"]) == (talk, 1, "Hello,\nyou")
    assert talk.title == "Hello, you"
    assert "Hello, you" in client.get("/agents/scout/talk/").content.decode()


def test_the_next_message_is_the_next_turn_with_its_own_choices(talk: Conversation, client: Client) -> None:
    said(talk, "one", status="succeeded")
    sent = {"token": "t", "message": "two", "llm": "a/b", "ask_first": "on"}
    assert client.post(f"/agents/scout/talk/{talk.pk}/", sent).status_code == 302
    run = talk.turns.get(turn=2)
    assert (run.overrides, run.autonomy, run.trigger_kind) == ({"llm": "a/b"}, "suggest", "manual")


def test_an_adopted_skill_can_be_run_on_the_message(own: Agent, client: Client) -> None:
    skill = rows.skill({"template": "Fix it."})
    rows.adopt(own, skill)
    sent = {"token": "t", "message": "helo", "skill": str(skill.address)}
    client.post("/agents/scout/talk/", sent)
    assert Run.objects.get().skill_event == skill.id
    foreign = client.post("/agents/scout/talk/", sent | {"skill": f"31123:{'a' * 64}:x", "token": "u"})
    assert foreign.status_code == 422 and Run.objects.count() == 1


def test_the_answer_grows_while_it_comes_and_polling_ends_with_the_run(talk: Conversation, client: Client) -> None:
    run = said(talk, "tell me", status="running")
    model = step(run, 1, kind="model", name="a/b", state="running", text="Once upon")
    page = part(client, talk)
    assert "Once upon" in page and "hx-trigger" in page and "Stop" in page
    Step.objects.filter(pk=model.pk).update(state="done", text="Once upon a time.")
    Run.objects.filter(pk=run.pk).update(status="succeeded", output="Once upon a time.", model="a/b")
    page = part(client, talk)
    assert page.count("Once upon a time.") == 1
    assert "hx-trigger" not in page and "Stop" not in page
    whole = client.get(f"/agents/scout/talk/{talk.pk}/").content.decode()
    assert whole.count("Once upon a time.") == 1 and "hx-trigger" not in whole


def test_calls_are_folded_where_they_happened(talk: Conversation, client: Client) -> None:
    run = said(talk, "look", status="succeeded", output="Found **it**.")
    step(run, 1, kind="model", name="a/b", text="I will look.")
    step(run, 2, input={"arguments": {"filter": "<x>"}}, text="an event")
    step(run, 3, kind="model", name="a/bad", state="failed", error="overloaded")
    step(run, 4, kind="model", name="a/b", text="Found **it**.")
    page = client.get(f"/agents/scout/talk/{talk.pk}/").content.decode()
    places = [page.index(words) for words in ("I will look.", "nostr_query", "overloaded", "<strong>it</strong>")]
    assert places == sorted(places)
    assert "&lt;x&gt;" in page and page.count("Found") == 1


def test_what_models_and_people_write_is_never_markup(talk: Conversation, client: Client) -> None:
    evil = '<img src=x onerror="alert(1)"><script>alert(1)</script>[x](javascript:alert(1))'
    run = said(talk, evil, status="succeeded", output=evil, warnings=[evil], reason_words=evil, skill_name=evil)
    step(run, 1, name=evil[:200], text=evil, error=evil, input={"arguments": {evil: evil}})
    page = client.get(f"/agents/scout/talk/{talk.pk}/").content.decode()
    assert "<img" not in page and "<script>alert" not in page and 'href="javascript' not in page


def test_a_waiting_call_is_decided_in_place(talk: Conversation, client: Client) -> None:
    run = said(talk, "post it", status="waiting", reason="approval")
    asked = step(run, 1, name="nostr_post", risk="writes", state="waiting", input={"arguments": {"content": "Hi all"}})
    page = part(client, talk)
    assert "Hi all" in page and "Approve" in page
    address = f"/agents/scout/talk/{talk.pk}/decide/"
    assert client.post(address, {"turn": "1", "position": "x", "decision": "approve"}).status_code == 302
    assert client.post(address, {"turn": "1", "position": "9", "decision": "approve"}).status_code == 404
    asked.refresh_from_db()
    assert asked.outcome == ""
    client.post(address, {"turn": "1", "position": "1", "decision": "approve"})
    asked.refresh_from_db()
    run.refresh_from_db()
    assert asked.outcome == "approved" and run.waiting_until is not None
    assert "Approve" not in part(client, talk)


def test_stop_ends_every_open_turn(talk: Conversation, client: Client) -> None:
    said(talk, "one", status="running")
    said(talk, "two")
    client.post(f"/agents/scout/talk/{talk.pk}/stop/")
    assert set(talk.turns.values_list("status", "reason_words")) == {("cancelled", "You stopped it.")}


def test_a_message_sent_meanwhile_waits_and_says_so_until_there_are_too_many(
    talk: Conversation, client: Client
) -> None:
    for number in range(talking.MOST_OPEN):
        client.post(f"/agents/scout/talk/{talk.pk}/", {"token": str(number), "message": "again"})
    assert "It waits for the turn before." in part(client, talk)
    refused = client.post(f"/agents/scout/talk/{talk.pk}/", {"token": "more", "message": "my long text"})
    page = refused.content.decode()
    assert refused.status_code == 422 and "5 messages wait for an answer" in page and "my long text" in page


def test_costs_add_up_and_unknown_ones_are_counted_apart(talk: Conversation, client: Client) -> None:
    said(talk, "one", status="succeeded", cost=Decimal("0.00021"))
    said(talk, "two", status="succeeded", cost=Decimal("0.0001"), unknown_costs=2)
    page = client.get(f"/agents/scout/talk/{talk.pk}/").content.decode()
    assert "2 turns, $0.00031 + 2 unknown" in page
    assert "$0.00031 + 2 unknown" in client.get("/agents/scout/talk/").content.decode()


def test_names_to_call_by_slash_are_offered(own: Agent, talk: Conversation, client: Client) -> None:
    skill = rows.skill({"template": "Fix.", "description": "Mends words"}, d="mend")
    row = rows.adopt(own, skill)
    row.on_demand = True
    row.save()
    page = client.get(f"/agents/scout/talk/{talk.pk}/").content.decode()
    assert 'data-name="mend"' in page and "Mends words" in page


def test_it_is_renamed_and_deleted_and_its_runs_stay(talk: Conversation, client: Client) -> None:
    run = said(talk, "hi", status="running", cost=Decimal("0.5"))
    refused = client.post(f"/agents/scout/talk/{talk.pk}/rename/", {"title": f"x {NSEC}"})
    assert refused.status_code == 422 and NSEC not in refused.content.decode()
    client.post(f"/agents/scout/talk/{talk.pk}/rename/", {"title": "Plans <b>"})
    assert "Plans &lt;b&gt;" in client.get(f"/agents/scout/talk/{talk.pk}/").content.decode()
    assert client.post(f"/agents/scout/talk/{talk.pk}/delete/")["Location"] == "/agents/scout/talk/"
    run.refresh_from_db()
    assert (run.status, run.conversation, run.cost) == ("cancelled", None, Decimal("0.5"))
    assert client.get(f"/agents/scout/talk/{talk.pk}/").status_code == 404
    again = client.post("/agents/scout/talk/", {"token": "x", "message": "new"})
    assert again.status_code == 302


def test_a_direct_message_conversation_is_read_here_and_goes_on_there(own: Agent, client: Client) -> None:
    talk = talking.open_conversation(own, "dm", timezone.now(), peer="a" * 64)
    page = client.get(f"/agents/scout/talk/{talk.pk}/").content.decode()
    assert "goes on by direct message" in page and 'name="message"' not in page
    assert client.post(f"/agents/scout/talk/{talk.pk}/", {"token": "t", "message": "x"}).status_code == 422
    assert not Run.objects.exists()


def test_long_conversations_and_lists_come_in_pages(own: Agent, talk: Conversation, client: Client) -> None:
    for number in range(35):
        said(talk, f"message-{number}.", status="succeeded")
    page = client.get(f"/agents/scout/talk/{talk.pk}/").content.decode()
    assert "message-34." in page and "message-4." not in page and "?before=6" in page
    older = client.get(f"/agents/scout/talk/{talk.pk}/?before=6").content.decode()
    assert "message-4." in older and "message-5." not in older and "Newest turns" in older
    for number in range(60):
        talking.open_conversation(own, "page", timezone.now(), f"talk-{number}.")
    first = client.get("/agents/scout/talk/")
    second = client.get(f"/agents/scout/talk/?before={first.context['older']}")
    shown = [row.pk for response in (first, second) for row, _ in response.context["talks"]]
    assert len(shown) == 61 == len(set(shown))
    assert client.get("/agents/scout/talk/?before=x").status_code == 400


@pytest.mark.parametrize("text", ["x" * 200_000, "🙂" * 10, "a\x00b", f"my key {NSEC}", " "])
def test_whatever_is_typed_is_taken_or_refused_in_words(talk: Conversation, client: Client, text: str) -> None:
    for address in ("/agents/scout/talk/", f"/agents/scout/talk/{talk.pk}/"):
        response = client.post(address, {"token": text[:70], "message": text})
        assert response.status_code in {302, 422}
        assert NSEC not in response.content.decode()
    half = "token=t&message=%ED%A0%80"
    sent = client.post("/agents/scout/talk/", half, content_type="application/x-www-form-urlencoded")
    assert sent.status_code in {302, 422}
    assert client.get(f"/agents/scout/talk/{2**70}/").status_code == 404
    assert client.get(f"/agents/scout/talk/{talk.pk}/?from=x&before=99999999999999").status_code == 200


def test_the_pages_ask_little_of_the_database(
    own: Agent, talk: Conversation, client: Client, django_assert_max_num_queries: Any
) -> None:
    skill = rows.skill({"template": "Fix."}, d="mend")
    row = rows.adopt(own, skill)
    row.on_demand = True
    row.save()
    for number in range(5):
        step(said(talk, f"{number}", status="succeeded"), 1)
    client.get("/agents/scout/talk/")  # what the banners of all pages ask is kept for some seconds
    for address in ("/agents/scout/talk/", f"/agents/scout/talk/{talk.pk}/"):
        with django_assert_max_num_queries(8):
            assert client.get(address).status_code == 200


def test_a_stranger_and_a_visitor_see_nothing(talk: Conversation, client: Client) -> None:
    said(talk, "a secret plan")
    client.force_login(rows.owner("bob"))
    for address in ("/agents/scout/talk/", f"/agents/scout/talk/{talk.pk}/"):
        assert client.get(address).status_code == 404
        assert client.post(address, {"token": "t", "message": "x"}).status_code == 404
    client.logout()
    assert client.get(f"/agents/scout/talk/{talk.pk}/").status_code == 302
    assert Run.objects.count() == 1


# --- The same for programs -------------------------------------------------------


@pytest.fixture
def program(own: Agent) -> Client:
    token = ApiToken.issue(own.owner, "test", ["read", "run"])
    return Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {token}"})


def post(program: Client, address: str, **body: Any) -> Any:
    return program.post(f"/api/v1{address}", body, content_type="application/json")


def test_a_program_begins_and_goes_on_and_reads_what_was_said(program: Client) -> None:
    begun = post(program, "/agents/scout/conversations", message="Hello", key="once")
    again = post(program, "/agents/scout/conversations", message="Hello", key="once")
    assert begun.status_code == 201 and begun.json()["id"] == again.json()["id"]
    talk = Conversation.objects.get()
    Run.objects.update(status="succeeded", output="Hi.", cost=Decimal("0.000000000001"), model="a/b")
    said = post(program, f"/conversations/{talk.pk}/messages", message="More", llm="a/c", key="k")
    assert said.status_code == 201 and (said.json()["turn"], said.json()["status"]) == (2, "queued")
    step(Run.objects.get(turn=2), 1, kind="model", state="running", text="Once up")
    found = program.get(f"/api/v1/conversations/{talk.pk}").json()
    assert [(turn["message"], turn["answer"]) for turn in found["turns"]] == [("Hello", "Hi."), ("More", "Once up")]
    assert (found["agent"], found["channel"], found["cost"], found["before"]) == (
        "scout",
        "page",
        "0.000000000001",
        None,
    )
    last = program.get(f"/api/v1/conversations/{talk.pk}?limit=1").json()
    assert last["before"] == 2 and last["turns"][0]["turn"] == 2


def test_what_a_program_cannot_say_is_refused_in_words(program: Client, talk: Conversation) -> None:
    address = f"/conversations/{talk.pk}/messages"
    assert post(program, address, message=" ").status_code == 400
    assert post(program, address, message="x", skill=f"31123:{'a' * 64}:x").status_code == 404
    assert post(program, address, message=f"my {NSEC}").status_code == 422
    for number in range(talking.MOST_OPEN):
        said(talk, f"{number}")
    assert post(program, address, message="x").status_code == 409
    dm = talking.open_conversation(talk.agent, "dm", timezone.now(), peer="a" * 64)
    assert post(program, f"/conversations/{dm.pk}/messages", message="x").status_code == 409
    for wrong in (2**70, -1, 99_999):
        assert program.get(f"/api/v1/conversations/{wrong}").status_code == 404
