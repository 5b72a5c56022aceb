"""Two variants side by side: what differs, what does not, and what neither may do."""

import json
import threading
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents.dispatch import chained, comparing
from agents.models import Agent, Comparison, Run, Trigger
from marketplace.models import ApiToken, Skill
from tests import fakes
from tests.agents import rows
from tests.agents.test_exact_request import listed

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
CONTENT = {"description": "Greets", "template": "Greet {{place}}.", "context_mode": "inject", "tools": True}
NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # of NIP-19's own example


@pytest.fixture
def own(client: Client) -> Agent:
    user = rows.owner()
    client.force_login(user)
    return rows.agent(user, "Scout", grants=["nostr_post", "memory_search", "tool_list"])


@pytest.fixture
def skill(own: Agent) -> str:
    return listed(rows.skill(CONTENT))


def form(skill: str = "", **changed: Any) -> dict[str, Any]:
    own = {"a_template": CONTENT["template"], "b_template": "Greet {{place}} loudly.", "variable-place": "Rome"}
    return {
        "agent": "scout",
        "token": "t" * 32,
        "message": "now",
        **({"skill": skill, **own} if skill else {}),
        **changed,
    }


def compared(client: Client, **how: Any) -> Comparison:
    response = client.post("/compare/new/", form(**how))
    assert response.status_code == 302, response.context["form"].errors
    found = Comparison.objects.get(pk=response["Location"].split("/")[-2])
    for run in (found.run_a, found.run_b):
        rows.carried_out(run)
    found.refresh_from_db()
    return found


def test_the_form_begins_with_the_skills_template_on_both_sides(own: Agent, skill: str, client: Client) -> None:
    page = client.get("/compare/new/", {"skill": skill, "agent": "scout"})
    assert page.content.decode().count("Greet {{place}}.</textarea>") == 2
    assert list(page.context["form"].own.values()) == ["place"]
    labels = [field.label for _, fields in page.context["form"].sides for field in fields]
    assert labels == ["Template", "Model", "Most tokens", "Temperature", "Seed"] * 2


def test_two_variants_run_on_one_input_and_pin_one_version(
    own: Agent, skill: str, client: Client, models: fakes.ModelServer
) -> None:
    models.script(fakes.text("Hello old Rome"), fakes.text("Hello new Rome", prompt_tokens=50))
    found = compared(client, skill=skill, b_llm="openai/gpt-4o", b_seed="7")
    a, b = found.run_a, found.run_b
    assert a.input == b.input == {"message": "now", "arguments": {"place": "Rome"}}
    assert a.skill_event == b.skill_event == Skill.objects.get().event_id
    assert "template" not in a.overrides  # it was not changed
    assert b.overrides["template"] == "Greet {{place}} loudly."
    assert [body["model"] for body in models.asked] == ["gpt-4o-mini", "gpt-4o"]
    assert ["loudly" in json.dumps(body["messages"]) for body in models.asked] == [False, True]
    page = client.get(f"/compare/{found.pk}/").content.decode()
    assert "<del>old </del><ins>new </ins>" in page
    assert "<ins>Rome loudly.</ins>" not in page and "loudly." in page  # the templates, word by word
    assert "−50 %" in page and 'class="differs"' in page
    assert f"/compare/{found.pk}/" in client.get(f"/runs/{a.pk}/").content.decode()
    assert "Template edited for this run" in client.get(f"/runs/{b.pk}/").content.decode()
    assert "Template edited for this run" not in client.get(f"/runs/{a.pk}/").content.decode()


def test_they_only_read_unless_the_owner_says_otherwise(own: Agent, skill: str, client: Client, models: Any) -> None:
    models.script(*[fakes.calls(("c", "nostr_post", {"content": "hi"})), fakes.text("done")] * 2)
    found = compared(client, skill=skill)
    offered = [[tool["function"]["name"] for tool in body["tools"]] for body in models.asked]
    assert all(sorted(names) == ["memory_search", "tool_list"] for names in offered)
    assert {step.state for run in (found.run_a, found.run_b) for step in run.steps.filter(kind="tool")} == {"refused"}
    models.asked.clear()
    found = compared(client, skill=skill, writes="on", token="u" * 32)
    assert all("nostr_post" in json.dumps(body["tools"]) for body in models.asked) and len(models.asked) == 2
    assert found.writes


def test_sent_twice_it_is_one_comparison(own: Agent, skill: str, client: Client) -> None:
    first, second = (client.post("/compare/new/", form(skill))["Location"] for _ in range(2))
    assert first == second
    assert (Comparison.objects.count(), Run.objects.count()) == (1, 2)


@pytest.mark.django_db(transaction=True)
def test_sent_twice_at_one_moment_it_is_one_comparison() -> None:
    agent = rows.agent(rows.owner("eve"))
    found: list[str] = []

    def start() -> None:
        try:
            one = comparing.compare(agent, ("", ""), None, "hi", {}, [{}, {"seed": 1}], False, timezone.now(), "k")
            found.append(one.pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 4 and len(set(found)) == 1
    assert Run.objects.count() == 2


def test_without_a_skill_two_models_answer_one_message(own: Agent, client: Client, models: Any) -> None:
    found = compared(client, b_llm="openai/gpt-4o")
    assert found.skill_address == "" and len(models.asked) == 2
    assert "They are the same." in client.get(f"/compare/{found.pk}/").content.decode()


def test_a_name_that_only_a_variant_brings_in_is_asked_for(own: Agent, skill: str, client: Client) -> None:
    typed = form(skill, b_template="Greet {{place}} in {{language}}.", message="keep me")
    response = client.post("/compare/new/", typed)
    page = response.content.decode()
    assert response.status_code == 422 and "Say what stands for language" in page
    assert 'name="variable-language"' in page and "keep me" in page and "in {{language}}." in page
    assert not Run.objects.exists()
    assert client.post("/compare/new/", {**typed, "variable-language": "Latin"}).status_code == 302
    assert Comparison.objects.get().run_a.input["arguments"] == {"place": "Rome", "language": "Latin"}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("a_max_tokens", "0", "greater than or equal to 1"),
        ("b_temperature", "hot", "Enter a number"),
        ("b_seed", "9" * 40, "less than or equal to"),
        ("a_template", "", "required"),
        ("b_template", f"mine: {NSEC}", "This held a secret key"),
        ("message", "x" * 100_001, "at most 100000"),
        ("b_template", "x" * 200_000, "at most 100000"),
    ],
)
def test_an_error_stands_beside_its_field_and_nothing_is_lost(
    own: Agent, skill: str, client: Client, field: str, value: str, words: str
) -> None:
    response = client.post("/compare/new/", form(skill, **{field: value, "variable-place": "Ravenna"}))
    page = response.content.decode()
    assert response.status_code == 422 and words in page and "Ravenna" in page and NSEC not in page
    assert any(words in str(found) for found in response.context["form"].errors[field])
    assert not Run.objects.exists()


@pytest.mark.parametrize("text", ["👩‍👩‍👧 \u202e", "a\x00b", "\udcff"])
def test_any_text_is_taken_or_refused_in_words(own: Agent, skill: str, client: Client, text: str) -> None:
    sent = text.encode("utf-8", "replace").decode()
    for field in ("message", "a_template", "variable-place", "b_llm"):
        assert client.post("/compare/new/", form(skill, **{field: sent, "token": field})).status_code in {302, 422}


def test_what_each_would_send_is_shown_before_it_runs(own: Agent, skill: str, client: Client, models: Any) -> None:
    page = client.post("/compare/new/", form(skill, show="b")).content.decode()
    assert "Greet Rome loudly." in page and "memory_search" in page and "nostr_post" not in page
    assert models.asked == [] and not Run.objects.exists()


def test_the_page_is_live_until_both_have_ended(own: Agent, skill: str, client: Client, models: Any) -> None:
    client.post("/compare/new/", form(skill))
    found = Comparison.objects.get()
    assert "hx-trigger" in client.get(f"/compare/{found.pk}/").content.decode()
    rows.carried_out(found.run_a)
    fragment = client.get(f"/compare/{found.pk}/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in fragment and "hx-trigger" in fragment and "It is done." in fragment
    rows.carried_out(found.run_b)
    last = client.get(f"/compare/{found.pk}/", headers={"HX-Request": "true"}).content.decode()
    assert "hx-trigger" not in last


def test_any_two_own_runs_stand_side_by_side(own: Agent, client: Client) -> None:
    a = rows.run(own, status="succeeded", output="one two", cost=Decimal("0.02"), input={"message": "x"})
    b = rows.run(
        own, status="failed", output="one three", cost=Decimal("0.01"), input={"message": "y"}, reason_words="why"
    )
    page = client.get(f"/runs/{a.pk}/compare/{b.pk}/").content.decode()
    assert "<del>two</del><ins>three</ins>" in page and "why" in page and "−50 %" in page
    assert "The two were not given the same input." in page
    stranger = rows.run(rows.agent(rows.owner("bob"), "Other"), output="secret")
    assert client.get(f"/runs/{a.pk}/compare/{stranger.pk}/").status_code == 404
    assert client.get(f"/runs/{stranger.pk}/compare/{a.pk}/").status_code == 404
    assert client.get(f"/compare/new/?run={stranger.pk}").status_code == 404


def test_the_page_asks_few_questions(
    own: Agent, skill: str, client: Client, django_assert_max_num_queries: Any
) -> None:
    client.post("/compare/new/", form(skill))
    found = Comparison.objects.get()
    rows.adopt(own, rows.skill({"template": "Always {{house_rule}}."}, d="always"))
    with django_assert_max_num_queries(8):
        client.get(f"/compare/{found.pk}/")
    for page in ("/compare/new/", "/runs/start/"):
        with django_assert_max_num_queries(8):
            assert client.get(page, {"skill": skill, "agent": "scout"}).status_code == 200


def test_what_was_compared_is_listed_newest_first(
    own: Agent, skill: str, client: Client, django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert b"You have compared nothing yet" in client.get("/compare/").content
    monkeypatch.setattr("agents.views.compare.PAGE", 2)
    for token in ("1", "2", "3", "4", "5"):
        client.post("/compare/new/", form(skill, token=token))
    Comparison.objects.update(created_at=timezone.now())  # equal times: the id decides
    client.force_login(rows.owner("bob"))
    assert b"You have compared nothing yet" in client.get("/compare/").content
    client.force_login(own.owner)
    seen: list[str] = []
    query = ""
    while True:
        with django_assert_max_num_queries(8):
            page = client.get(f"/compare/?before={query}")
        seen += [one.pk for one in page.context["comparisons"]]
        assert f'/compare/{seen[-1]}/"' in page.content.decode() and b"demo" in page.content
        query = page.context["older"]
        if not query:
            break
    assert seen == sorted(Comparison.objects.values_list("pk", flat=True), reverse=True) and len(seen) == 5
    assert client.get("/compare/?before=nonsense").status_code == 400


def test_a_hostile_answer_stays_text(own: Agent, client: Client) -> None:
    a = rows.run(own, status="succeeded", output="</pre><script>alert(1)</script> x")
    b = rows.run(own, status="succeeded", output="</ins><img src=x> \u202e x")
    page = client.get(f"/runs/{a.pk}/compare/{b.pk}/").content.decode()
    assert "<script>alert" not in page and "<img src" not in page and "U+202E" in page


def test_a_comparison_can_be_made_again_from_its_runs(own: Agent, skill: str, client: Client, models: Any) -> None:
    found = compared(client, skill=skill, b_seed="7", message="again please")
    link = client.get(f"/compare/{found.pk}/").content.decode().partition('href="/compare/new/?')[2].partition('"')[0]
    page = client.get("/compare/new/?" + link.replace("&amp;", "&"))
    typed = page.context["form"]
    assert typed["b_template"].value() == "Greet {{place}} loudly." and typed["b_seed"].value() == 7
    assert (typed["message"].value(), typed["variable-place"].value()) == ("again please", "Rome")


def test_a_comparison_starts_no_chain(own: Agent, skill: str, client: Client, models: Any) -> None:
    source = ["source", skill]
    tags = [["trigger", "chain"], source, ["on", "always"]]
    armed = {"event_id": "b" * 64, "kind": "chain", "tags": tags, "armed_at": 0}
    Trigger.objects.create(agent=own, address=f"31123:{'a' * 64}:next", **armed)
    found = compared(client, skill=skill)
    assert Run.objects.count() == 2
    assert chained(found.run_a, timezone.now()) == []
    rows.carried_out(rows.run(own, rows.skill(CONTENT, d="other"), skill_address=skill))
    assert Run.objects.filter(trigger_kind="chain").count() == 1  # an ordinary run of it does


# --- The API ----------------------------------------------------------------------


def test_the_api_compares_and_tells_how_it_went(own: Agent, skill: str, client: Client, models: Any) -> None:
    models.script(fakes.text("one two"), fakes.text("one three"))
    token = ApiToken.issue(own.owner, "x", ["run", "read"])
    head = {"Authorization": f"Bearer {token}"}
    client.logout()
    body = {
        "agent": "scout",
        "skill": skill,
        "arguments": {"place": "Rome"},
        "a": {"temperature": 0},
        "b": {"template": "Say hi to {{place}}"},
        "key": "mine",
    }
    started = client.post("/api/v1/compare", body, "application/json", headers=head)
    assert started.status_code == 201 and started.json()["difference"] is None
    again = client.post("/api/v1/compare", body, "application/json", headers=head)
    assert again.json()["id"] == started.json()["id"]
    for side in ("a", "b"):
        rows.carried_out(Run.objects.get(pk=started.json()[side]["id"]))
    told = client.get(f"/api/v1/compare/{started.json()['id']}", headers=head).json()
    assert told["difference"] == [
        {"kind": "same", "text": "one "},
        {"kind": "del", "text": "two"},
        {"kind": "ins", "text": "three"},
    ]
    assert told["b"]["overrides"]["template"] == "Say hi to {{place}}" and told["a"]["overrides"]["temperature"] == 0
    assert "Say hi to Rome" in json.dumps(told["b"]["request"]["messages"])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"agent": "scout", "a": {}, "b": {}}, 400),
        ({"agent": "gone", "message": "x", "a": {}, "b": {}}, 404),
        ({"agent": "scout", "message": "x", "a": {"seed": 2**70}, "b": {}}, 422),
        ({"agent": "scout", "message": "x", "a": {"template": NSEC}, "b": {}}, 422),
        ({"agent": "scout", "message": "\x00", "a": {}, "b": {}}, 422),
        ({"agent": "scout", "message": "x", "skill": "nope", "a": {}, "b": {}}, 404),
    ],
)
def test_the_api_says_what_is_wrong(own: Agent, client: Client, body: dict[str, Any], status: int) -> None:
    client.force_login(own.owner)
    assert client.post("/api/v1/compare", body, "application/json").status_code == status
    assert not Run.objects.exists()
