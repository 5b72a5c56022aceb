"""Each parameter comes from the last layer that sets it, and says which."""

from agents.engine.params import Resolved, allowed_tools, resolve
from marketplace.protocol.parameters import RunParams

KNOWN = ("nostr_post", "nostr_query", "http_fetch")


def test_the_last_layer_that_sets_a_value_wins_and_is_named():
    found = resolve(
        RunParams(llm="agent/model", temperature=0.9),
        RunParams(llm="skill/model", max_tokens=500),
        RunParams(max_tokens=50),
        RunParams(seed=7),
        site_llm="offline/echo",
    )
    assert found["llm"] == Resolved("skill/model", "skill")
    assert found["max_tokens"] == Resolved(50, "trigger")
    assert found["temperature"] == Resolved(0.9, "agent")
    assert found["seed"] == Resolved(7, "run")
    assert found["tools"] == Resolved(True, "default")


def test_an_unset_limit_is_finite():
    assert resolve(RunParams())["max_tokens"] == Resolved(4096, "default")


def test_tools_false_is_a_value_and_not_absence():
    assert resolve(RunParams(), RunParams(tools=False))["tools"] == Resolved(False, "skill")


def test_a_skill_narrows_the_grants_and_never_widens_them():
    granted = ["nostr_post", "http_fetch"]
    assert allowed_tools(granted, True, KNOWN) == (("nostr_post", "http_fetch"), ())
    assert allowed_tools(granted, None, KNOWN) == (("nostr_post", "http_fetch"), ())
    assert allowed_tools(granted, False, KNOWN) == ((), ())
    assert allowed_tools(granted, ("nostr_post", "nostr_query"), KNOWN) == (("nostr_post",), ("nostr_query",))
    assert allowed_tools([], True, KNOWN) == ((), ())


def test_a_grant_of_a_tool_that_does_not_exist_is_nothing():
    assert allowed_tools(["shell"], ("shell",), KNOWN) == ((), ("shell",))
