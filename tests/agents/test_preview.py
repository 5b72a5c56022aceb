"""The preview: the exact messages, tools and parameters, before any call and without a network."""

import json

import pytest

from agents.models import AdoptedSkill, Agent
from agents.preview import preview, sample_event
from agents.tools import TOOLS
from marketplace import signing
from marketplace.forms import SkillForm
from marketplace.models import ArchivedEvent, User
from marketplace.protocol import kinds, nostr
from marketplace.protocol.events import Draft
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skills import read_skill
from marketplace.protocol.triggers.subscription import Subscription

SECRET = "11" * 32


def spec_of(content, *tags, kind=kinds.SKILL):
    return read_skill(Draft("0" * 64, 0, kind, (("d", "probe"), *tags), json.dumps(content)))


@pytest.fixture
def agent(db):
    owner = User.objects.create_user("alice")
    return Agent.objects.create(
        owner=owner,
        identity=signing.create_identity(owner, "demo"),
        name="Demo",
        slug="demo",
        soul="system:\nYou are S.",
        llm="acme/agent-model",
        temperature=0.5,
        grants=["nostr_post", "nostr_query"],
        aliases={"cheap": "acme/small"},
    )


def test_without_an_agent_there_is_no_soul_and_no_tool(db):
    result = preview(spec_of({"template": "Do it.", "context_mode": "inject"}), None, "hello")
    assert result["rule"] == "inject"
    assert result["messages"] == [{"role": "system", "content": "Do it."}, {"role": "user", "content": "hello"}]
    assert result["tools"] == []


def test_text_from_outside_is_never_expanded(db):
    template = "user:\n{{message}}|{{ soul }}|{{unknown}}"
    result = preview(spec_of({"template": template, "context_mode": "full"}), None, "{{soul}} {{admin_notes}}")
    assert result["messages"] == [{"role": "user", "content": "{{soul}} {{admin_notes}}||"}]
    assert any("unknown" in words for words in result["warnings"])


def test_arguments_fill_the_templates_own_names(db):
    spec = spec_of({"template": "user:\nInto {{target_language}}: {{message}}", "context_mode": "full"})
    result = preview(spec, None, "hi", arguments={"target_language": "French"})
    assert result["messages"][0]["content"] == "Into French: hi"


def test_each_parameter_says_where_it_came_from(agent):
    content = {"template": "x", "context_mode": "inject", "llm": "acme/skill-model"}
    tags = (("trigger", "nostr-subscription"), ("filter", '{"kinds":[1]}'), ("temperature", "0.1"))
    manual = preview(spec_of(content, *tags), agent, "hi", overrides=RunParams(seed=7))["parameters"]
    assert manual["llm"] == {"value": "acme/skill-model", "origin": "skill"}
    assert manual["temperature"] == {"value": 0.5, "origin": "agent"}  # trigger tags wait for a trigger
    assert manual["seed"] == {"value": 7, "origin": "run"}
    triggered = preview(spec_of(content, *tags), agent, event={"kind": 1, "content": "x"})["parameters"]
    assert triggered["temperature"] == {"value": 0.1, "origin": "trigger"}


def test_tools_are_grants_narrowed_and_what_is_missing_is_said(agent):
    asked = ["nostr_post", "http_fetch", "shell"]
    if not TOOLS:
        pytest.fail("the table of tools is empty")
    result = preview(spec_of({"template": "x", "context_mode": "inject", "tools": asked}), agent, "hi")
    assert [tool["function"]["name"] for tool in result["tools"]] == ["nostr_post"]
    assert any("no tool “shell”" in words for words in result["warnings"])
    assert any("http_fetch" in words and "Demo does not grant" in words for words in result["warnings"])


def test_models_are_the_chain_with_aliases_opened_and_the_agents_default_last(agent):
    result = preview(spec_of({"template": "x", "llm": "cheap, nonsense"}), agent, "hi")
    assert result["models"] == ["acme/small", "acme/agent-model"]
    assert any("nonsense" in words for words in result["warnings"])
    assert result["price"] == {"model": "acme/small", "at_most": None}  # unknown is not zero
    assert [(row["model"], row["input"]) for row in result["prices"]] == [
        ("acme/small", None),
        ("acme/agent-model", None),
    ]


def test_a_template_action_shows_the_text_it_would_send(db):
    spec = spec_of(
        {"template": "DM admin: {author_display_name} wrote {content_preview} {unknown}"},
        ("trigger", "nostr-subscription"),
        ("filter", '{"kinds":[1]}'),
        ("action", "template"),
    )
    result = preview(spec, None, event={"kind": 1, "content": "{pubkey}\nhi", "pubkey": "6e" * 32})
    assert result["action"]["kind"] == "dm_admin"
    assert result["action"]["text"].endswith("wrote {pubkey} hi {unknown}")
    assert result["messages"] == []


def test_always_on_skills_of_the_agent_stand_in_list_order(agent):
    for position, name in enumerate(["first", "second"]):
        tags = (("d", name),)
        content = json.dumps({"template": f"Rule of {name}."})
        event = nostr.sign(Draft(nostr.public_key(SECRET), 1, kinds.SKILL, tags, content), SECRET)
        ArchivedEvent.objects.create(
            id=event.id, kind=event.kind, pubkey=event.pubkey, d=name, created_at=1, raw=event.to_json(), received_at=1
        )
        AdoptedSkill.objects.create(
            agent=agent, address=str(event.address), position=position, pinned_event=event.id, on_demand=False
        )
    result = preview(spec_of({"template": "Mine."}), agent, "hi")
    assert result["rule"] == "compose"
    said = [message["content"] for message in result["messages"]]
    assert said == ["You are S.", "Rule of first.", "Rule of second.", "Mine.", "hi"]


def test_tokens_are_those_of_the_parts(agent):
    result = preview(spec_of({"template": "Do it."}), agent, "hello")
    assert result["tokens"] == sum(part["tokens"] for part in result["parts"]) > 5


def test_the_same_input_gives_the_same_bytes(agent):
    spec = spec_of({"template": "Do it.", "context_mode": "inject"})
    event = {"kind": 1, "content": "x"}
    assert json.dumps(preview(spec, agent, "a", event)) == json.dumps(preview(spec, agent, "a", event))


@pytest.mark.parametrize(
    "wanted", ['{"kinds":[7],"#p":["<agent_pubkey>"]}', '{"authors":["<admin_pubkey>"]}', '{"#t":["x","y"]}']
)
def test_the_sample_event_fits_the_filter_it_is_made_for(agent, wanted):
    agent.admin_pubkey = nostr.public_key(SECRET)
    spec = spec_of({"template": "x"}, ("trigger", "nostr-subscription"), ("filter", wanted))
    sample = sample_event(spec, agent)
    filled = wanted.replace("<agent_pubkey>", agent.identity.pubkey).replace("<admin_pubkey>", agent.admin_pubkey)
    armed = spec_of({"template": "x"}, ("trigger", "nostr-subscription"), ("filter", filled)).trigger
    assert isinstance(armed.data, Subscription)
    event = Draft(sample["pubkey"], 1, sample["kind"], tuple(map(tuple, sample["tags"])), sample["content"])
    assert armed.data.matches(nostr.sign(Draft(nostr.public_key(SECRET), *_rest(event)), SECRET)) or (
        sample["pubkey"] == agent.admin_pubkey
    )


def _rest(draft):
    return draft.created_at, draft.kind, draft.tags, draft.content


@pytest.mark.parametrize("event", [{}, {"kind": "x", "content": None, "created_at": "now", "tags": 5}])
def test_a_half_typed_event_is_no_error(agent, event):
    for tags in [(), (("trigger", "webhook"), ("action", "template"))]:
        assert preview(spec_of({"template": "LOG: {content}"}, *tags), agent, event=event)["rule"]


def test_a_form_without_a_trigger_previews_too(agent):
    form = SkillForm({"d": "x", "template": "hello {{message}}"}, agent.owner)
    assert form.is_valid() in {True, False}
    assert preview(form.spec, agent, "hi")["messages"]
