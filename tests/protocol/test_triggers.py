"""Trigger tags of all kinds: read tolerantly, written strictly, said in words."""

import json

import pytest

from marketplace.protocol.events import Address, Event
from marketplace.protocol.filters import Filter
from marketplace.protocol.nip19 import short_npub
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.triggers import (
    KINDS,
    TriggerSpec,
    chain,
    delivery_key,
    problems_of,
    read_trigger,
    subscription,
    webhook,
    write_trigger,
)
from tests.events import A, B, load, signed

SKILLS = load("skills")


def trigger(name: str) -> TriggerSpec:
    found = read_trigger(Event.from_dict(SKILLS[name]).tags)
    assert found is not None
    return found


def test_no_trigger_tag_is_no_trigger() -> None:
    assert read_trigger([("filter", "{}"), ("action", "llm")]) is None


def test_a_subscription_keeps_its_placeholder_and_has_defaults() -> None:
    found = trigger("mention_monitor_a")
    assert found.data == subscription.Subscription(
        (Filter(kinds=frozenset({1}), tags={"p": frozenset({"<admin_pubkey>"})}),)
    )
    assert (found.action, found.enabled, found.usable, found.problems) == ("llm", True, True, ())
    assert found.words == "When there is a note mentioning you"


def test_run_parameters_are_read_from_the_tags() -> None:
    assert trigger("mention_monitor_b").params == RunParams(
        "openai/gpt-4o-mini, cheap", 500, 0.2, 7, ("nostr_dm_send", "nostr_post")
    )


@pytest.mark.parametrize(
    ("values", "tools"),
    [
        (["true"], True),
        (["false"], False),
        (["a"], ("a",)),
        (["a", "b"], ("a", "b")),
        (['["a","b"]'], ("a", "b")),
        (["a, b,"], ("a", "b")),
        (["[]"], ()),
        ([], ()),
        (["[1"], False),
        (['["a",1]'], ("a",)),
    ],
)
def test_tools_are_read_in_every_spelling_and_never_wider(values: list[str], tools: object) -> None:
    found = read_trigger([("trigger", "webhook"), ("tools", *values)])
    assert found is not None
    assert found.params.tools == tools


@pytest.mark.parametrize(
    "tag",
    [
        ("max_tokens", "many"),
        ("max_tokens", "0"),
        ("max_tokens", "1.5"),
        ("max_tokens", "9" * 50),
        ("temperature", "3"),
        ("temperature", "NaN"),
        ("temperature", "true"),
        ("seed", "x"),
        ("llm", "x" * 2_001),
        ("enabled", "yes"),
        ("action", "both"),
    ],
)
def test_a_wrong_value_is_a_problem_beside_its_field(tag: tuple[str, str]) -> None:
    found = read_trigger([("trigger", "webhook"), tag])
    assert found is not None
    assert [problem.field for problem in found.problems] == [tag[0]]
    assert getattr(found.params, tag[0], None) is None


def test_an_unclear_switch_is_off_and_an_unclear_action_unusable() -> None:
    off = read_trigger([("trigger", "webhook"), ("enabled", "yes")])
    assert off is not None
    assert not off.enabled
    unclear = read_trigger([("trigger", "webhook"), ("action", "both")])
    assert unclear is not None
    assert not unclear.usable


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"limit":1}', '{"kind":1}', '{"kinds":[1],"kinds":[2]}', '[{"kinds":[1]},{}]', "null"],
)
def test_a_filter_that_would_match_everything_is_never_usable(text: str) -> None:
    found = read_trigger([("trigger", "nostr-subscription"), ("filter", text)])
    assert found is not None
    assert not found.usable
    assert found.problems[0].field == "filter"
    assert "not usable" in found.words


def test_up_to_twenty_filters_any_of_which_fires() -> None:
    rows = [{"kinds": [kind]} for kind in range(20)]
    found = read_trigger([("trigger", "nostr-subscription"), ("filter", json.dumps(rows))])
    assert found is not None
    assert found.data.matches(signed(19))
    assert not found.data.matches(signed(20))
    many = read_trigger([("trigger", "nostr-subscription"), ("filter", json.dumps([*rows, rows[0]]))])
    assert many is not None
    assert not many.usable


def test_since_and_until_do_not_bind_live_events() -> None:
    found = read_trigger([("trigger", "nostr-subscription"), ("filter", '{"kinds":[1],"until":5,"limit":1}')])
    assert found is not None
    assert found.data.matches(signed(1))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"kinds": [1], "authors": ["<agent_pubkey>"]}, "When there is a note by the agent"),
        ({"#t": ["bitcoin"]}, "When there is any event tagged #bitcoin"),
        ({"kinds": [1, 7]}, "When there is a note or a reaction"),
        ({"kinds": [30_023], "#p": [B]}, f"When there is an article mentioning {short_npub(B)}"),
        ({"kinds": [4242]}, "When there is an event of kind 4242"),
        ({"ids": [A]}, "When there is any event with the id 69a845f7…"),
        ({"#t": ["a", "b", "c", "d", "e"]}, "When there is any event tagged #a, #b, #c or 2 more"),
    ],
)
def test_a_subscription_in_words(row: object, words: str) -> None:
    found = read_trigger([("trigger", "nostr-subscription"), ("filter", json.dumps(row))])
    assert found is not None
    assert found.words == words


def test_a_webhook_names_its_parameters_and_nothing_secret() -> None:
    found = trigger("webhook")
    assert found.data == webhook.Webhook(
        (webhook.Param("city", "string", True), webhook.Param("days", "number", False))
    )
    assert found.words == "When its secret address is called with city, days"


@pytest.mark.parametrize(
    "tag", [("param",), ("param", "a b"), ("param", "a", "date"), ("param", "a", "string", "maybe")]
)
def test_a_parameter_that_is_not_one_is_a_problem(tag: tuple[str, ...]) -> None:
    found = read_trigger([("trigger", "webhook"), tag])
    assert found is not None
    assert not found.usable
    assert found.problems[0].field == "param"


def test_a_chain_names_its_source() -> None:
    found = trigger("chain")
    assert found.data == chain.Chain(Address(31123, A, "digest"), "failed")
    assert found.words == "When digest fails"


@pytest.mark.parametrize(
    ("tags", "field"),
    [
        ([("source", f"31123:{A.upper()}:x")], "source"),
        ([("source", f"1:{A}:x")], "source"),
        ([], "source"),
        ([("source", f"31123:{A}:x"), ("on", "sometimes")], "on"),
    ],
)
def test_a_chain_without_a_skill_or_an_ending_is_a_problem(tags: list[tuple[str, str]], field: str) -> None:
    found = read_trigger([("trigger", "chain"), *tags])
    assert found is not None
    assert not found.usable
    assert found.problems[0].field == field


def test_an_unknown_kind_is_shown_and_not_an_error() -> None:
    found = trigger("unknown_kind")
    assert not found.usable
    assert "not usable here" in found.words
    assert [problem.level for problem in found.problems] == ["warning"]


def test_the_first_of_two_triggers_counts_and_is_said() -> None:
    found = read_trigger([("trigger", "webhook"), ("trigger", "cron"), ("param", "a"), ("param", "b")])
    assert found is not None
    assert found.kind == "webhook"
    assert [(problem.field, problem.level) for problem in found.problems] == [("trigger", "warning")]


@pytest.mark.parametrize(
    "name", [name for name in SKILLS if name not in {"spellcheck_a", "hidden_text", "unknown_kind"}]
)
def test_written_tags_read_back_the_same(name: str) -> None:
    found = trigger(name)
    tags = write_trigger(found)
    assert read_trigger([tuple(tag) for tag in tags]) == found
    assert problems_of(found) == []
    assert KINDS[found.kind].problems(found.data) == []


def test_what_a_form_put_together_wrongly_has_problems() -> None:
    empty, hook = subscription.Subscription((Filter(),)), webhook.Webhook()
    assert problems_of(TriggerSpec("nostr-subscription", empty))[0].field == "filter"
    assert problems_of(TriggerSpec("cron"))[0].field == "trigger"
    assert problems_of(TriggerSpec("webhook", hook, params=RunParams(tools=("a,b",))))[0].field == "tools"
    assert problems_of(TriggerSpec("webhook", hook, params=RunParams(max_tokens=0)))[0].field == "max_tokens"
    assert problems_of(TriggerSpec("webhook", hook, action="x"))[0].field == "action"


def test_a_foreign_delivery_id_of_any_length_is_a_short_key() -> None:
    assert delivery_key("abc") == "abc"
    assert len(delivery_key("x" * 10_000)) == 64
    assert delivery_key("x" * 10_000) != delivery_key("x" * 10_001)
    assert delivery_key("\ud800" * 300)
