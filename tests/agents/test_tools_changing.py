"""Tools by which an agent changes itself: real relay, one id however often, never more rights, always a history."""

import json
from typing import Any

import pytest

from agents.models import AdoptedSkill, Agent, Change, Trigger
from agents.runner.verbs import RunVerbs
from agents.tools import TOOLS, SecretFound, ToolContext, ToolFailed, ToolRefused, call, foresee
from marketplace import relays, signing
from marketplace.models import Publication, Skill
from marketplace.protocol import kinds, nip19
from marketplace.protocol.adoptions import read_adoptions
from marketplace.protocol.events import Address, Event
from marketplace.protocol.filters import Filter
from marketplace.protocol.skills import read_skill
from tests.agents import rows
from tests.agents.world import NOW, arrive, make_agent, skill_event, stranger
from tests.real_relay import LocalRelay

pytestmark = pytest.mark.django_db(transaction=True)

WATCH = {
    "name": "warn-lightning",
    "description": "Warns of notes about lightning",
    "template": "Warn me in one sentence.\n\n{{triggering_event}}",
    "trigger": "nostr-subscription",
    "filter": {"kinds": [1], "search": "lightning"},
    "tools": ["nostr_dm_send"],
}


@pytest.fixture
def agent() -> Agent:
    return make_agent(grants=sorted(TOOLS))


def context(agent: Agent, *granted: str, **more: Any) -> ToolContext:
    return ToolContext(agent, NOW, frozenset(granted or TOOLS), verbs=RunVerbs(), key="1", **more)


def stored(relay: LocalRelay, agent: Agent, kind: int) -> list[Event]:
    wanted = Filter(authors=frozenset({agent.identity.pubkey}), kinds=frozenset({kind}))
    return relays.fetch(relay.url, [wanted], 4).events


def listed(relay: LocalRelay, agent: Agent) -> list[str]:
    (found,) = stored(relay, agent, kinds.ADOPTIONS)
    return [str(address) for address in read_adoptions(found).addresses]


# --- skill_create ----------------------------------------------------------------


def test_a_new_skill_is_private_adopted_and_armed(agent: Agent, relay: LocalRelay) -> None:
    run = rows.run(agent)
    answer = call(context(agent, run=run), "skill_create", WATCH)
    (event,) = stored(relay, agent, kinds.PRIVATE_SKILL)
    assert "Warn me" not in event.content
    spec = read_skill(event, signing.decrypt(agent.identity, event.content))
    assert (spec.d, spec.public, spec.tools) == ("warn-lightning", False, ("nostr_dm_send",))
    address = f"31124:{agent.identity.pubkey}:warn-lightning"
    assert listed(relay, agent) == [address]
    assert AdoptedSkill.objects.get(agent=agent).pinned_event == event.id
    trigger = Trigger.objects.get(agent=agent)
    assert (trigger.address, trigger.event_id, trigger.live, trigger.autonomy) == (address, event.id, True, "suggest")
    assert event.id in answer
    assert "armed" in answer
    entry = Change.objects.get(what="skill")
    assert (entry.object, entry.actor, entry.run, entry.before) == ("warn-lightning", "agent", run, None)
    assert entry.after == {"event": event.id, "name": "warn-lightning", "autonomy": "suggest"}


def test_made_again_after_a_kill_it_is_the_same_event(agent: Agent, relay: LocalRelay) -> None:
    kept: list[dict[str, Any]] = []

    def dies(intent: dict[str, Any]) -> None:
        kept.append(intent)
        raise RuntimeError("the worker is killed")

    with pytest.raises(RuntimeError):
        call(context(agent, remember=dies), "skill_create", WATCH)
    assert stored(relay, agent, kinds.PRIVATE_SKILL) == []
    for _ in range(2):  # before anything was sent, and after everything was
        call(context(agent, recalled=kept[0]), "skill_create", WATCH)
    (event,) = stored(relay, agent, kinds.PRIVATE_SKILL)
    assert event.id == kept[0]["event"]["id"]
    assert Publication.objects.filter(kind=kinds.PRIVATE_SKILL).count() == 1
    assert Trigger.objects.get(agent=agent).event_id == event.id


def test_acting_unasked_takes_the_owners_yes_to_this_call(agent: Agent, relay: LocalRelay) -> None:
    call(context(agent), "skill_create", {**WATCH, "autonomy": "auto"})
    assert Trigger.objects.get(agent=agent).autonomy == "suggest"
    call(context(agent, approved=True), "skill_edit", {"name": "warn-lightning", "autonomy": "auto", "llm": "cheap"})
    assert Trigger.objects.get(agent=agent).autonomy == "auto"


def test_public_only_where_the_owner_said_so(agent: Agent, relay: LocalRelay) -> None:
    given = {"name": "poem", "description": "Writes", "template": "Write a poem.", "public": True}
    with pytest.raises(ToolRefused, match="has not allowed public skills"):
        call(context(agent), "skill_create", given)
    agent.public_skills = True
    call(context(agent), "skill_create", given)
    (event,) = stored(relay, agent, kinds.SKILL)
    assert json.loads(event.content)["template"] == "Write a poem."


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"filter": {"kinds": ["x"]}}, "filter"),
        ({"filter": None}, "filter"),
        ({"name": " "}, "Give the skill a name"),
        ({"trigger": "cron", "filter": None, "schedule": "61 * * * *"}, "schedule"),
        ({"trigger": "chain", "filter": None, "source": "nowhere"}, "source"),
        ({"trigger": "sometimes"}, "must be one of"),
        ({"template": "x" * 200_000}, "bytes"),
        ({"name": "a\0b"}, ""),
    ],
)
def test_what_the_editor_would_not_take_is_refused_in_words(
    agent: Agent, relay: LocalRelay, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolRefused) as refused:
        foresee(context(agent), "skill_create", WATCH | more)
    assert words in str(refused.value)
    assert not Publication.objects.exists()


def test_a_skill_made_here_may_use_only_what_the_run_may(agent: Agent, relay: LocalRelay) -> None:
    """Y03: what the run was not given cannot be had by making a skill that has it."""
    ctx = context(agent, "skill_create", "nostr_dm_send")
    with pytest.raises(ToolRefused, match="not: http_fetch, nostr_post"):
        call(ctx, "skill_create", {**WATCH, "tools": ["nostr_dm_send", "nostr_post", "http_fetch"]})
    with pytest.raises(ToolRefused, match="not: nostr_post"):
        call(ctx, "skill_create", {**WATCH, "action": "template", "template": "POST: {content}", "tools": None} | {})
    call(ctx, "skill_create", {name: value for name, value in WATCH.items() if name != "tools"})
    (event,) = stored(relay, agent, kinds.PRIVATE_SKILL)
    assert read_skill(event, signing.decrypt(agent.identity, event.content)).tools is False


@pytest.mark.parametrize(
    ("template", "tools"),
    [("DM admin: {content}", ("nostr_dm_send",)), ("POST: {content}", ("nostr_post",)), ("LOG: {content}", False)],
)
def test_a_text_that_is_sent_brings_the_tool_it_is_sent_with(
    agent: Agent, relay: LocalRelay, template: str, tools: Any
) -> None:
    wanted = {name: value for name, value in WATCH.items() if name != "tools"}
    call(context(agent, run=rows.run(agent)), "skill_create", wanted | {"action": "template", "template": template})
    (event,) = stored(relay, agent, kinds.PRIVATE_SKILL)
    assert read_skill(event, signing.decrypt(agent.identity, event.content)).tools == tools


def test_a_name_that_is_taken_is_not_overwritten(agent: Agent, relay: LocalRelay) -> None:
    call(context(agent), "skill_create", WATCH)
    with pytest.raises(ToolRefused, match="already"):
        foresee(context(agent), "skill_create", {**WATCH, "description": "another"})


def test_no_relay_taking_it_changes_nothing(agent: Agent, settings: Any) -> None:
    settings.WRITE_RELAYS = settings.RELAYS = ["ws://127.0.0.1:9"]
    with pytest.raises(ToolFailed, match="No relay took"):
        call(context(agent), "skill_create", WATCH)
    assert not Skill.objects.exists()
    assert not AdoptedSkill.objects.exists()
    assert not Change.objects.exists()


def test_the_owner_reads_what_it_would_do(agent: Agent) -> None:
    words = foresee(context(agent), "skill_create", {**WATCH, "autonomy": "auto"})
    for part in ("private", "lightning", "nostr_dm_send", "without asking you again", "Warn me in one sentence"):
        assert part in words


# --- skill_edit ------------------------------------------------------------------


def test_an_edit_keeps_what_it_was_not_told(agent: Agent, relay: LocalRelay) -> None:
    call(context(agent), "skill_create", WATCH)
    first = Skill.objects.get().event_id
    given = {"name": "warn-lightning", "filter": {"kinds": [1, 30023], "search": "lightning"}}
    call(context(agent), "skill_edit", given)
    (event,) = stored(relay, agent, kinds.PRIVATE_SKILL)
    spec = read_skill(event, signing.decrypt(agent.identity, event.content))
    assert (spec.description, spec.template) == (WATCH["description"], WATCH["template"])
    assert "30023" in event.value("filter")
    assert AdoptedSkill.objects.get(agent=agent).pinned_event == event.id != first
    entry = Change.objects.filter(what="skill").latest("pk")
    assert (entry.before["event"], entry.after["event"]) == (first, event.id)


def test_only_own_skills_are_edited(agent: Agent, relay: LocalRelay) -> None:
    theirs = skill_event(stranger(), "theirs")
    arrive(theirs)
    with pytest.raises(ToolRefused, match="not a skill of this agent's own"):
        call(context(agent), "skill_edit", {"name": str(theirs.address), "template": "Obey me."})


# --- skill_adopt and skill_unadopt -----------------------------------------------


def test_a_skill_is_adopted_in_the_version_that_was_shown(agent: Agent, relay: LocalRelay) -> None:
    secret = stranger()
    seen = skill_event(secret, "helps")
    arrive(seen)
    kept: list[dict[str, Any]] = []
    assert isinstance(seen.address, Address)
    given = {"skill": nip19.encode_naddr(seen.address)}
    assert seen.id in foresee(context(agent, remember=kept.append), "skill_adopt", given)
    call(context(agent, recalled=kept[0]), "skill_adopt", given)
    assert listed(relay, agent) == [str(seen.address)]
    assert AdoptedSkill.objects.get(agent=agent).pinned_event == seen.id
    call(context(agent), "skill_unadopt", {"skill": "helps"})
    assert listed(relay, agent) == []
    assert not AdoptedSkill.objects.exists()
    entries = list(Change.objects.filter(what="adoption").order_by("pk"))
    assert [(entry.before, entry.after) for entry in entries] == [
        (None, {"event": seen.id}),
        ({"event": seen.id}, None),
    ]


def test_a_version_that_came_after_the_question_is_not_adopted(agent: Agent, relay: LocalRelay) -> None:
    secret = stranger()
    seen = skill_event(secret, "helps")
    arrive(seen)
    kept: list[dict[str, Any]] = []
    foresee(context(agent, remember=kept.append), "skill_adopt", {"skill": str(seen.address)})
    arrive(skill_event(secret, "helps", at=seen.created_at + 5, template="Do something else."))
    with pytest.raises(ToolRefused, match="newer version"):
        call(context(agent, recalled=kept[0]), "skill_adopt", {"skill": str(seen.address)})
    assert stored(relay, agent, kinds.ADOPTIONS) == []


def test_what_others_adopted_meanwhile_stays_on_the_list(agent: Agent, relay: LocalRelay) -> None:
    elsewhere = f"31123:{'b' * 64}:elsewhere"
    draft_tags = (("a", elsewhere), ("x", "unknown"))
    from marketplace.protocol.events import Draft

    event = signing.sign(agent.identity, Draft(agent.identity.pubkey, 1_760_000_000, kinds.ADOPTIONS, draft_tags, ""))
    assert all(answer.ok for answer in relays.publish(event, [relay.url]))
    call(context(agent), "skill_create", WATCH)
    (found,) = stored(relay, agent, kinds.ADOPTIONS)
    assert listed(relay, agent)[0] == elsewhere
    assert ("x", "unknown") in found.tags


@pytest.mark.parametrize("text", ["nothing", f"31123:{'c' * 64}:gone", "naddr1xyz", "31123:x:y", ""])
def test_what_is_not_there_cannot_be_adopted(agent: Agent, relay: LocalRelay, text: str) -> None:
    with pytest.raises(ToolRefused):
        call(context(agent), "skill_adopt", {"skill": text})


def test_a_private_skill_of_another_key_cannot_be_adopted(agent: Agent, relay: LocalRelay) -> None:
    other = make_agent("other", grants=sorted(TOOLS))
    call(context(other), "skill_create", WATCH)
    with pytest.raises(ToolRefused, match="does not know such a skill"):
        call(context(agent), "skill_adopt", {"skill": Skill.objects.get().address})


# --- model_set and trigger_enable ------------------------------------------------


def test_a_model_is_chosen_among_those_the_owner_allows(agent: Agent) -> None:
    agent.llm, agent.aliases, agent.model_choices = "openai/gpt-4o", {"cheap": "openai/gpt-4o-mini"}, ["ollama/llama3"]
    agent.save()
    for wanted, kept in (("cheap", "cheap"), ("ollama/llama3, cheap", "ollama/llama3, cheap"), ("default", "")):
        call(context(agent), "model_set", {"model": wanted})
        agent.refresh_from_db()
        assert agent.llm == kept
    entries = [(entry.before, entry.after) for entry in Change.objects.order_by("pk")]
    assert entries == [("openai/gpt-4o", "cheap"), ("cheap", "ollama/llama3, cheap"), ("ollama/llama3, cheap", "")]
    assert Change.objects.order_by("pk")[0].undoable


@pytest.mark.parametrize(
    "model", ["openai/gpt-4o", "", ",", "https://evil.example/v1", "openai/https://evil.example", "cheap, openai/o1"]
)
def test_no_other_model_and_no_address(agent: Agent, model: str) -> None:
    agent.aliases = {"cheap": "openai/gpt-4o-mini"}
    agent.save()
    with pytest.raises(ToolRefused, match="The owner allows: default, cheap"):
        call(context(agent), "model_set", {"model": model})
    agent.refresh_from_db()
    assert agent.llm == ""


def test_a_trigger_is_switched_off_and_on(agent: Agent, relay: LocalRelay) -> None:
    call(context(agent), "skill_create", WATCH)
    assert "lightning" in foresee(context(agent), "trigger_enable", {"skill": "warn-lightning", "enabled": False})
    call(context(agent), "trigger_enable", {"skill": "warn-lightning", "enabled": False})
    assert not Trigger.objects.get().enabled
    call(context(agent), "trigger_enable", {"skill": "warn-lightning", "enabled": True})
    assert Trigger.objects.get().enabled
    entries = Change.objects.filter(what="trigger").order_by("pk")
    assert [entry.words for entry in entries] == [["on: yes → no"], ["on: no → yes"]]


def test_another_agents_trigger_is_out_of_reach(agent: Agent, relay: LocalRelay) -> None:
    other = make_agent("other", grants=sorted(TOOLS))
    call(context(other), "skill_create", WATCH)
    with pytest.raises(ToolRefused):
        call(context(agent), "trigger_enable", {"skill": Trigger.objects.get().address, "enabled": False})
    assert Trigger.objects.get().enabled


# --- Secrets ---------------------------------------------------------------------

TEXTS = {
    "skill_create": WATCH,
    "skill_edit": {"name": "warn-lightning"},
    "nostr_delete": {"event_id": "a" * 64},
    "skill_execute": {"skill": "warn-lightning"},
}


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("skill_create", "description"),
        ("skill_create", "template"),
        ("skill_create", "llm"),
        ("skill_create", "name"),
        ("skill_edit", "template"),
        ("skill_edit", "description"),
        ("nostr_delete", "reason"),
        ("skill_execute", "message"),
    ],
)
def test_a_secret_in_what_would_leave_is_stopped(agent: Agent, relay: LocalRelay, name: str, argument: str) -> None:
    call(context(agent), "skill_create", WATCH)
    secret = signing.unseal(agent.identity.sealed)
    flagged: list[str] = []
    before = len(stored(relay, agent, kinds.PRIVATE_SKILL)), Publication.objects.count()
    given = TEXTS[name] | {argument: f"the key is {secret}"} | ({"name": "other"} if name == "skill_create" else {})
    given |= {argument: f"the key is {secret}"}
    with pytest.raises(SecretFound):
        call(context(agent, flag=flagged.append, run=rows.run(agent)), name, given)
    assert flagged
    assert (len(stored(relay, agent, kinds.PRIVATE_SKILL)), Publication.objects.count()) == before


def test_a_secret_does_not_reach_the_owners_page_either(agent: Agent) -> None:
    secret = signing.unseal(agent.identity.sealed)
    with pytest.raises(SecretFound):
        foresee(context(agent), "skill_create", {**WATCH, "template": f"say {secret}"})


def test_every_tool_that_changes_the_agent_asks_its_owner() -> None:
    asking = {name for name, tool in TOOLS.items() if tool.asks}
    wanted = {"skill_create", "skill_edit", "skill_adopt", "skill_unadopt", "model_set", "trigger_enable"}
    assert asking == wanted
    assert all(TOOLS[name].risk == "writes" and TOOLS[name].repeatable for name in wanted)
