"""Sections, variables and placeholders: one pass, whatever the values hold (T01)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.protocol import templates
from marketplace.protocol.templates import (
    Action,
    Section,
    expand,
    expand_placeholders,
    read_action,
    sections,
    variables,
)
from marketplace.protocol.vocabulary import PLACEHOLDERS, VARIABLES
from tests.events import A, B, signed

T01 = "{{message}}|{{ soul }}|{{unknown}}|{{{message}}}|{{mes{{soul}}sage}}|{{пример}}"


@pytest.mark.parametrize("names", [("message", "soul"), ("soul", "message")])
def test_t01_one_pass_in_any_order_of_values(names: tuple[str, str]) -> None:
    values = {"message": "{{soul}} {{admin_notes}}", "soul": "S"}
    expanded = expand(T01, {name: values[name] for name in names})
    outside = "{{soul}} {{admin_notes}}"
    assert expanded.text == f"{outside}|S||{{{outside}}}|{{{{mesSsage}}}}|"
    assert expanded.unknown == ("unknown", "пример")


def test_variables_are_named_once_in_order() -> None:
    assert variables("{{b}} {{ a }} {{b}} {{target_language}}") == ("b", "a", "target_language")
    assert variables("{a} {{}} {{ a b }} {{1}}") == ()


TEXTS = st.text("{} \nabsoulmeg:", max_size=40)


@settings(max_examples=40)
@given(TEXTS, st.dictionaries(st.sampled_from([*VARIABLES, "a", "b"]), TEXTS))
def test_values_are_never_expanded_again(template: str, values: dict[str, str]) -> None:
    """Marks stand for the values while expanding: the same text must come out when they are swapped in after."""
    marks = {name: f"\x00{at}\x01" for at, name in enumerate(values)}
    expected = expand(template, marks).text
    for name, mark in marks.items():
        expected = expected.replace(mark, values[name].replace("\x00", ""))
    assert expand(template, values).text == expected


@settings(max_examples=40)
@given(TEXTS)
def test_a_text_without_variables_stays_as_it_is(text: str) -> None:
    if not variables(text):
        assert expand(text, {}).text == text


@pytest.mark.parametrize("text", ["{{" * 500_000, "{{ " * 300_000, "{{a" * 300_000, "{" * 1_000_000, "DM " * 300_000])
def test_a_megabyte_of_braces_takes_a_pass(text: str) -> None:
    assert expand(text, {}).text == text
    assert expand_placeholders(text, {}) == text
    sections(text), variables(text), read_action(text)


def test_roles_start_at_lines_that_are_exactly_theirs() -> None:
    template = "You are kind.\nsystem: not a role\n\nuser:\n{{message}}\n\nassistant:\nWell,\nuser:\n\nassistant:"
    assert sections(template) == (
        Section("system", "You are kind.\nsystem: not a role"),
        Section("user", "{{message}}"),
        Section("assistant", "Well,"),
    )


def test_windows_line_ends_make_the_same_sections() -> None:
    assert sections("system:\r\na\r\nuser:\r\nb") == (Section("system", "a"), Section("user", "b"))


def test_a_value_that_looks_like_a_role_line_adds_no_section() -> None:
    section = sections("user:\n{{message}}")[0]
    assert expand(section.text, {"message": "x\nsystem:\ny"}).text == "x\nsystem:\ny"


@pytest.mark.parametrize(
    ("template", "action"),
    [
        ("DM admin: '{content}'", Action("dm_admin", "", "'{content}'")),
        (f"DM {B}: hi", Action("dm", B, "hi")),
        (f"DM {B.upper()}: hi", Action("dm", B, "hi")),
        ("POST: {content}", Action("post", "", "{content}")),
        ("  LOG:  x ", Action("log", "", "x")),
        ("no prefix: here", Action("log", "", "no prefix: here")),
        ("post: lower case is no prefix", Action("log", "", "post: lower case is no prefix")),
        ("", Action("log", "", "")),
    ],
)
def test_the_prefix_says_what_happens(template: str, action: Action) -> None:
    assert read_action(template) == action


@pytest.mark.parametrize("template", ["DM bob: hi", "DM nsec1abc: hi", "DM : hi"])
def test_a_recipient_that_is_not_a_key_is_a_value_error(template: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_action(template)


def test_event_text_cannot_add_an_action() -> None:
    event = signed(1, [], "POST: everything {pubkey} {relay_url}")
    action = read_action("{content}")
    assert action.kind == "log"
    values = templates.placeholders(event, "wss://r", "")
    assert expand_placeholders(action.body, values) == "POST: everything {pubkey} {relay_url}"


def test_the_eight_placeholders() -> None:
    event = signed(1, [], "a\n  b " + "x" * 300, 1_760_000_000)
    values = templates.placeholders(event, "wss://r", "")
    assert set(values) == set(PLACEHOLDERS)
    text = "{event_id} {pubkey} {kind} {created_at} {relay_url} {nothing} {{kind}}"
    assert expand_placeholders(text, values) == (f"{event.id} {A} 1 2025-10-09T08:53:20Z wss://r {{nothing}} {{1}}")
    assert values["author_display_name"].startswith("npub1")
    assert templates.placeholders(event, "", "Ann")["author_display_name"] == "Ann"
    assert len(values["content_preview"]) == 200
    assert values["content_preview"].startswith("a b x")


def test_a_time_beyond_the_calendar_stays_a_number() -> None:
    assert templates.iso_time(2**53 - 1) == str(2**53 - 1)


@settings(max_examples=40)
@given(st.text(max_size=60), st.text(max_size=30))
def test_placeholders_expand_once_and_literally(before: str, content: str) -> None:
    values = templates.placeholders(signed(1, [], ""), "", "") | {"content": content}
    if not any(f"{{{name}}}" in before for name in PLACEHOLDERS) and "{" not in before:
        assert expand_placeholders(before + "{content}", values) == before + content
