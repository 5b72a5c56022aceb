"""No tool takes an argument that holds a secret of this site, wherever in it the secret stands."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agents.models import Agent
from agents.tools import TOOLS, SecretFound, ToolContext, call, foresee
from marketplace import signing
from tests.agents.world import NOW, make_agent

pytestmark = pytest.mark.django_db

SAMPLES: dict[str, Any] = {"string": "x", "integer": 1, "number": 1.0, "boolean": True, "array": ["x"], "object": {}}


def holding(kind: str, secret: str) -> list[Any]:
    """Values of this type with the secret in them."""
    return {
        "string": [secret, f"the key is {secret}!", " ".join(secret)],
        "array": [["x", secret]],
        "object": [{"search": secret}, {"ids": ["a" * 64, secret]}, {f"#{secret}": ["x"]}],
    }.get(kind, [])


def arguments() -> Iterator[tuple[str, str]]:
    for name, tool in TOOLS.items():
        for argument, shape in tool.parameters["properties"].items():
            if shape["type"] in {"string", "array", "object"} and "enum" not in shape:
                yield name, argument


@pytest.fixture
def agent() -> Agent:
    return make_agent()


def test_the_walk_finds_the_arguments() -> None:
    found = set(arguments())
    assert len(found) > 40
    assert {
        ("nostr_query", "filter"),
        ("http_fetch", "url"),
        ("skill_create", "tools"),
        ("model_set", "model"),
    } <= found


@pytest.mark.parametrize(("name", "argument"), sorted(arguments()))
def test_nothing_is_done_with_a_secret(agent: Agent, monkeypatch: pytest.MonkeyPatch, name: str, argument: str) -> None:
    def called(*given: Any, **named: Any) -> str:
        raise AssertionError("it was done all the same")

    tool = TOOLS[name]
    schema = tool.parameters  # read from the real function, before the other takes its place
    other = replace(tool, function=called, foresee=called)
    other.__dict__["parameters"] = schema
    monkeypatch.setitem(TOOLS, name, other)
    given = {key: SAMPLES[schema["properties"][key]["type"]] for key in schema["required"]}
    flagged: list[str] = []
    ctx = ToolContext(agent, NOW, frozenset(TOOLS), flag=flagged.append)
    values = holding(schema["properties"][argument]["type"], signing.unseal(agent.identity.sealed))
    for value in values:
        for verb in (call, foresee):
            with pytest.raises(SecretFound):
                verb(ctx, name, given | {argument: value})
    assert len(flagged) == 2 * len(values)
