"""Always on or on demand: what each costs stands beside the switch, and the choice is what runs go by."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents import llm
from agents.engine import disclosure
from agents.engine.context import ContextInput, assemble
from agents.models import AdoptedSkill, Agent
from agents.runner import loading
from agents.sources.adopted import entry_of
from agents.sources.carrying import BY_NAME, CUT, NO_SYSTEM, OWN_MODE, TEMPLATE, carried, catalogue
from marketplace import ingest
from marketplace.models import ApiToken, User
from marketplace.protocol import kinds, nostr
from marketplace.protocol.events import Draft
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skillmd import read_skillmd, to_spec
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.triggers import TriggerSpec
from marketplace.protocol.triggers.cron import Cron
from tests.agents import rows

AUTHOR = "21" * 32
TEXT = "Answer every question in verse, with rhymes, and never in fewer than four lines. " * 20


def published(d: str, text: str = TEXT, **content: Any) -> str:
    content = {"description": f"Verse for {d}", "template": text, **content}
    draft = Draft(nostr.public_key(AUTHOR), 1_760_000_000, kinds.SKILL, (("d", d),), json.dumps(content))
    event = nostr.sign(draft, AUTHOR)
    ingest.store([ingest.Incoming(event)], 1_760_000_100)
    return event.id


@pytest.fixture
def alice(client: Client) -> User:
    user = rows.owner()
    client.force_login(user)
    return user


@pytest.fixture
def own(alice: User) -> Agent:
    return rows.agent(alice, "Scout")


def adopted(own: Agent, d: str, **values: Any) -> AdoptedSkill:
    address = f"31123:{nostr.public_key(AUTHOR)}:{d}"
    event = published(d)
    return AdoptedSkill.objects.create(agent=own, address=address, pinned_event=event, **values)


# --- The figures ------------------------------------------------------------------


def test_the_figures_are_what_a_request_carries() -> None:
    spec = SkillSpec("verse", description="Verse. " * 200, template=f"{TEXT}\nuser:\n{{{{message}}}}")
    cost = carried(spec, "verse")
    text = loading.skill_text(spec, "a")
    with_it = assemble(ContextInput("m", adopted=(text,), message="hi", count=llm.count))
    assert cost.always == sum(part.tokens for part in with_it.parts if part.name == "skill:verse") > 300
    assert cost.line == llm.count(disclosure.line(disclosure.Entry("verse", spec.description)) + "\n") < 150
    assert cost.load > cost.always and cost.saved > 200 and cost.note == ""


@pytest.mark.parametrize(
    ("spec", "note"),
    [
        (SkillSpec("x", template=TEXT, context_mode="full", generation="A"), OWN_MODE.format(rule="full")),
        (SkillSpec("x", template=TEXT, context_mode="override", generation="A"), OWN_MODE.format(rule="override")),
        (SkillSpec("x", template=TEXT, trigger=TriggerSpec("cron", Cron("* * * * *"), "template")), TEMPLATE),
        (SkillSpec("x", template="user:\nOnly this."), NO_SYSTEM),
    ],
)
def test_a_skill_that_adds_nothing_says_so(spec: SkillSpec, note: str) -> None:
    cost = carried(spec, "x")
    assert (cost.always, cost.note) == (0, note)
    given = ContextInput("m", adopted=(loading.skill_text(spec, "a"),), message="hi", count=llm.count)
    assert [part.name for part in assemble(given).parts] == ["input"]


def test_what_an_imported_file_says_of_itself_counts() -> None:
    front = "name: x\ndescription: d\nowner: Ada\ndisable-model-invocation: true\nmetadata:\n  author: A\n"
    spec = to_spec(read_skillmd(f"---\n{front}---\n{TEXT}"))
    entry = entry_of("x", spec)
    assert not entry.by_model and entry.by_user
    assert entry.extra == (("disable-model-invocation", "true"), ("owner", "Ada"))
    cost = carried(spec, "x")
    assert (cost.line, cost.note) == (0, BY_NAME) and cost.always > 0


def test_a_long_skill_counts_as_far_as_it_is_sent() -> None:
    cost = carried(SkillSpec("x", template=TEXT * 50), "x", most=500)
    assert (cost.always, cost.note) == (500, CUT.format(most=500))


def test_a_short_description_is_a_short_line() -> None:
    spec = SkillSpec("x", description="word " * 300, template=TEXT)
    assert carried(spec, "x", length=20).line < 15 < carried(spec, "x").line
    assert carried(SkillSpec("x", template=TEXT, params=RunParams()), "x").line > 0


# --- The page ---------------------------------------------------------------------


@pytest.mark.django_db
def test_the_page_shows_both_figures_and_the_totals(own: Agent, client: Client) -> None:
    for d in ("one", "two", "three"):
        adopted(own, d)
    page = client.get("/agents/scout/skills/")
    totals, lines = page.context["totals"], page.context["lines"]
    assert totals.now == totals.always == sum(line.cost.always for line in lines) > 900
    entries = [disclosure.Entry(d, f"Verse for {d}") for d in ("one", "two", "three")]
    assert totals.on_demand == catalogue(entries) < totals.always
    html = page.content.decode()
    assert f'always on <span class="num">{lines[0].cost.always}</span>' in html
    assert f'on demand <span class="num">{lines[0].cost.line}</span>' in html
    assert html.count('aria-pressed="true"') == 3


@pytest.mark.django_db
def test_the_switch_changes_what_runs_carry_and_grants_the_tool(own: Agent, client: Client) -> None:
    first, second = adopted(own, "one"), adopted(own, "two", position=1)
    answer = client.post("/agents/scout/skills/demand/", {"address": first.address, "carry": "demand"})
    assert answer["Location"] == "/agents/scout/skills/"
    own.refresh_from_db()
    assert own.grants == ["skill"]
    assert [text.name for text in loading.adopted(own)] == ["two"]
    totals = client.get("/agents/scout/skills/").context["totals"]
    assert totals.now < totals.always
    client.post("/agents/scout/skills/demand/", {"carry": "demand"})
    assert client.get("/agents/scout/skills/").context["totals"].now == totals.on_demand
    assert loading.adopted(own) == ()
    client.post("/agents/scout/skills/demand/", {"address": first.address, "carry": "always"})
    second.refresh_from_db()
    assert second.on_demand and [text.name for text in loading.adopted(own)] == ["one"]
    client.post("/agents/scout/skills/demand/", {"carry": "always"})
    assert [text.name for text in loading.adopted(own)] == ["one", "two"]


@pytest.mark.django_db
def test_skills_in_folders_count_once_the_tool_is_granted(
    own: Agent, client: Client, settings: Any, tmp_path: Path
) -> None:
    for d in ("alpha", "beta"):
        (tmp_path / d).mkdir()
        (tmp_path / d / "SKILL.md").write_text(f"---\nname: {d}\ndescription: Does {d}\n---\nDo it.\n")
    settings.SKILLS_DIRS = [str(tmp_path)]
    adopted(own, "one")
    before = client.get("/agents/scout/skills/").context["totals"]
    assert before.now == before.always and before.folders == 0
    own.grants = ["skill"]
    own.save()
    after = client.get("/agents/scout/skills/").context["totals"]
    lines = [disclosure.Entry(d, f"Does {d}") for d in ("alpha", "beta")]
    assert after.now == after.always == before.always + catalogue(lines) and after.folders == 2
    assert after.on_demand == before.on_demand == catalogue([*lines, disclosure.Entry("one", "Verse for one")])


@pytest.mark.django_db
def test_without_the_tool_the_page_says_that_nothing_is_seen(own: Agent, client: Client) -> None:
    adopted(own, "one", on_demand=True)
    assert "no model sees them" in client.get("/agents/scout/skills/").content.decode()
    own.grants = ["skill"]
    own.save()
    assert "no model sees them" not in client.get("/agents/scout/skills/").content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["", "nonsense", "31123:x:\x00", "a" * 10_000, "\ud800"])
def test_a_skill_that_is_not_on_the_list_is_not_there(own: Agent, client: Client, address: str) -> None:
    sent = {"address": address.encode("utf-8", "replace").decode(), "carry": "demand"}
    assert client.post("/agents/scout/skills/demand/", sent).status_code == 404


@pytest.mark.django_db
def test_another_owners_skills_stay_as_they_are(own: Agent, client: Client) -> None:
    row = adopted(own, "one")
    client.force_login(User.objects.create_user("charlie"))
    sent = {"address": row.address, "carry": "demand"}
    assert client.post("/agents/scout/skills/demand/", sent).status_code == 404
    client.logout()
    assert client.post("/agents/scout/skills/demand/", sent).status_code == 302
    row.refresh_from_db()
    assert not row.on_demand


# --- Adopting ---------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("carry", "on_demand", "grants"), [("demand", True, ["skill"]), ("always", False, []), ("", False, [])]
)
def test_the_choice_is_made_while_adopting(
    relay: Any, own: Agent, client: Client, carry: str, on_demand: bool, grants: list[str]
) -> None:
    event = published("verse")
    address = f"31123:{nostr.public_key(AUTHOR)}:verse"
    page = client.get("/adopt/", {"address": address})
    cost = page.context["offer"].cost
    html = page.content.decode()
    assert f'<span class="num">{cost.always}</span> tokens in every request' in html
    assert (
        f'<span class="num">{cost.line}</span> tokens in every request, and <span class="num">{cost.load}</span>'
        in html
    )
    answer = client.post(
        "/adopt/",
        {"agent": "scout", "address": address, "event": event, "carry": carry},
        headers={"HX-Request": "true"},
    )
    assert ("on demand" if on_demand else "always on") in answer.content.decode()
    assert AdoptedSkill.objects.get(agent=own).on_demand is on_demand
    own.refresh_from_db()
    assert own.grants == grants


@pytest.mark.django_db
def test_the_first_skill_on_demand_brings_its_list(own: Agent, client: Client) -> None:
    published("verse")
    address = f"31123:{nostr.public_key(AUTHOR)}:verse"
    page = client.get("/adopt/", {"address": address})
    offer = page.context["offer"]
    whole = catalogue([disclosure.Entry("verse", "Verse for verse")])
    assert abs(offer.frame + offer.cost.line - whole) <= 2 and offer.frame > 100
    assert f'its list comes with it, <span class="num">{offer.frame}</span> more' in page.content.decode()
    adopted(own, "other", on_demand=True)
    own.grants = ["skill"]
    own.save()
    page = client.get("/adopt/", {"address": address})
    assert page.context["offer"].frame <= 2 and "comes with it" not in page.content.decode()


# --- The API ----------------------------------------------------------------------


@pytest.mark.django_db
def test_a_program_reads_the_costs_and_switches(own: Agent, client: Client) -> None:
    first, _ = adopted(own, "one"), adopted(own, "two", position=1)
    client.logout()
    read, write = (ApiToken.issue(own.owner, scope, [scope]) for scope in ("read", "write"))
    asked = {"headers": {"Authorization": f"Bearer {read}"}}
    told = client.get("/api/v1/agents/scout/skills", **asked).json()
    assert [item["name"] for item in told["items"]] == ["one", "two"]
    assert told["tokens"] == told["always_tokens"] == sum(item["always_tokens"] for item in told["items"])
    assert told["on_demand_tokens"] < told["always_tokens"]
    body = {"address": first.address, "on_demand": True}
    path, kind = "/api/v1/agents/scout/skills", "application/json"
    assert client.post(path, body, kind, **asked).status_code == 403
    change = {"headers": {"Authorization": f"Bearer {write}"}}
    told = client.post(path, body, kind, **change).json()
    assert [item["on_demand"] for item in told["items"]] == [True, False] and told["tokens"] < told["always_tokens"]
    own.refresh_from_db()
    assert own.grants == ["skill"]
    told = client.post(path, {"on_demand": True}, kind, **change).json()
    assert told["tokens"] == told["on_demand_tokens"]
    for odd in (
        {"address": "31123:x:y", "on_demand": True},
        {"address": "a" * 301, "on_demand": True},
        {},
        {"on_demand": "often"},
    ):
        assert client.post(path, odd, kind, **change).status_code in {400, 404, 422}
    assert client.post(path, body, kind).status_code == 401
    other = {"Authorization": f"Bearer {ApiToken.issue(User.objects.create_user('charlie'), 'x', ['read', 'write'])}"}
    assert client.get(path, headers=other).status_code == 404
    assert client.post(path, body, kind, headers=other).status_code == 404
