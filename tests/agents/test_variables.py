"""Template variables: resolved by tools under the agent's grants, bounded, and never an error."""

import time
from pathlib import Path
from typing import Any

import pytest

from agents import variables
from agents.models import Agent
from agents.tools import TOOLS, ToolContext
from marketplace import relays
from marketplace.protocol import nostr, vocabulary
from tests.agents.world import NOW, make_agent, signed, stranger
from tests.real_relay import LocalRelay


@pytest.fixture
def agent(db: None) -> Agent:
    return make_agent()


def resolve(agent: Agent, *names: str, granted: Any = TOOLS) -> variables.Values:
    return variables.resolve(names, ToolContext(agent, NOW, frozenset(granted)))


def test_every_variable_of_the_protocol_has_a_source() -> None:
    assert set(variables.VARIABLES) | vocabulary.FROM_THE_RUN == set(vocabulary.VARIABLES)
    assert set(variables.VARIABLES.values()) <= set(TOOLS)


def test_every_tool_and_variable_has_a_row_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()
    for name, tool in TOOLS.items():
        assert f"| `{name}` | {tool.risk} |" in text
    for name in vocabulary.VARIABLES:
        assert f"| `{name}` |" in text


def test_what_the_admin_says_of_itself_is_resolved(agent: Agent, relay: LocalRelay) -> None:
    admin = stranger()
    agent.admin_pubkey = nostr.public_key(admin)
    relays.publish(signed(admin, 0, '{"name":"Ada"}'), [relay.url])
    found = resolve(agent, "admin_profile", "admin_profile", "unknown", "soul")
    assert list(found.values) == ["admin_profile"]
    assert "Ada" in found.values["admin_profile"]
    assert found.warnings == ()


def test_a_variable_obeys_the_grants(agent: Agent) -> None:
    found = resolve(agent, "admin_notes", "tools", granted=["nostr_query"])
    assert found.values["admin_notes"] == ""
    assert "not granted" in found.warnings[0]
    assert found.values["tools"].startswith("nostr_query: ")
    assert len(found.warnings) == 1


def test_a_relay_that_is_away_leaves_it_empty_with_a_word(agent: Agent, settings: Any) -> None:
    settings.RELAYS = ["ws://127.0.0.1:1"]
    started = time.monotonic()
    found = resolve(agent, "admin_profile", "admin_notes", "dm_history")
    assert set(found.values.values()) == {""}
    assert all("No relay answered" in words for words in found.warnings)
    assert time.monotonic() - started < variables.SECONDS_TOGETHER


def test_a_long_one_is_cut_with_a_word(agent: Agent, relay: LocalRelay) -> None:
    admin = stranger()
    agent.admin_pubkey = nostr.public_key(admin)
    relays.publish(signed(admin, 1, "x" * 30_000), [relay.url])
    found = resolve(agent, "admin_notes")
    assert len(found.values["admin_notes"]) == variables.LONGEST
    assert "was cut" in found.warnings[0]
