"""What an event must be before it changes anything (N03, N09, N10, and shapes that break parsers)."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.protocol import checks
from marketplace.protocol.checks import Refused, check, parse, verify
from marketplace.protocol.events import Draft, Event
from tests.events import C1, NOW, load, signed

GOOD = signed(31123, [["d", "tie"]], C1)


def reason(raw: object) -> str:
    with pytest.raises(Refused) as refusal:
        check(raw)
    assert str(refusal.value)
    return refusal.value.reason


def changed(**fields: object) -> dict[str, object]:
    return {**GOOD.to_dict(), **fields}


@pytest.mark.parametrize(
    ("case", "name"),
    [("n01_tie", "one"), ("n01_tie", "two"), ("n09_id_bytes", "right")]
    + [("n03_missing_d", name) for name in ("missing", "bare", "empty")]
    + [("n10_control_characters", name) for name in ("json_escapes", "verbatim")],
)
def test_a_good_event_passes_as_dict_as_text_and_as_bytes(case: str, name: str) -> None:
    row = load(case)[name]
    event = check(row)
    assert event == check(json.dumps(row)) == check(json.dumps(row).encode())
    assert event.to_dict() == row
    assert Event.from_dict(json.loads(event.to_json())) == event


@pytest.mark.parametrize("name", ["ascii_escapes", "escaped_slash"])
def test_n09_ids_over_other_escapes_are_refused(name: str) -> None:
    assert reason(load("n09_id_bytes")[name]) == "bad-id"


def test_n09_our_own_drafts_have_the_right_id() -> None:
    assert load("n09_id_bytes")["right"]["id"] == "8907e8ad85dbd0b411c593160279c5ce8052cd9d27d84c3ffe69b0c69949d59e"


def test_n10_both_ids_name_the_same_content_and_a_third_is_refused() -> None:
    rows = load("n10_control_characters")
    assert check(rows["verbatim"]).content == check(rows["json_escapes"]).content == "a\x00b\x1fc"
    assert reason({**rows["verbatim"], "content": "ab\x1fc"}) == "bad-id"


def test_n03_a_tag_needs_a_name() -> None:
    assert reason(load("n03_missing_d")["nameless_tag"]) == "shape"


def test_n12_every_changed_field_is_refused() -> None:
    rows = load("n12_forged")
    assert reason(rows["changed_content"]) == "bad-id"
    assert reason(rows["empty_signature"]) == "shape"
    assert reason(changed(created_at=NOW + 1)) == "bad-id"
    assert reason(changed(kind=31124)) == "bad-id"
    assert reason(changed(tags=[["d", "other"]])) == "bad-id"
    assert reason(changed(pubkey="9" * 64)) == "bad-id"
    assert reason(changed(sig="0" * 128)) == "bad-signature"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"id": GOOD.id.upper()}, "shape"),
        ({"id": GOOD.id + "\n"}, "shape"),
        ({"id": None}, "shape"),
        ({"pubkey": GOOD.pubkey.upper()}, "shape"),
        ({"sig": GOOD.sig[:-2]}, "shape"),
        ({"created_at": 1.5}, "time"),
        ({"created_at": -1}, "time"),
        ({"created_at": True}, "time"),
        ({"created_at": "1760000000"}, "time"),
        ({"created_at": 10**30}, "time"),
        ({"kind": 65_536}, "shape"),
        ({"kind": None}, "shape"),
        ({"content": None}, "shape"),
        ({"tags": {}}, "shape"),
        ({"tags": ["d"]}, "shape"),
        ({"tags": [["d", 1]]}, "shape"),
        ({"tags": [["d", None]]}, "shape"),
        ({"tags": [[["d"]]]}, "shape"),
        ({"tags": [["x"]] * 2_001}, "size"),
        ({"content": "x" * 70_000}, "size"),
        ({"content": "é" * 33_000}, "size"),
        ({"tags": [["x", "\x01" * 11_000]]}, "size"),
        ({"content": "\ud800"}, "unicode"),
        ({"tags": [["d", "\udfff"]]}, "unicode"),
    ],
)
def test_a_wrong_field_is_refused_with_its_reason(fields: dict[str, object], expected: str) -> None:
    assert reason(changed(**fields)) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", "json"),
        ("nonsense", "json"),
        ("[]", "shape"),
        ("{}", "shape"),
        ("null", "shape"),
        (b"\xff\xfe", "unicode"),
        ('{"id":NaN}', "json"),
        ('{"id":1e999}', "json"),
        ('{"id":Infinity}', "json"),
        ('{"id":"a","id":"b"}', "json"),
        ('{"kind":' + "9" * 5_000 + "}", "json"),
        ("[" * 100_000, "depth"),
        ('{"a":' * 65 + "1" + "}" * 65, "depth"),
        ('{"id":"' + "x" * 400_000 + '"}', "size"),
        (b'{"id":"' + b"x" * 400_000 + b'"}', "size"),
        ('{"content":"\\', "json"),
    ],
)
def test_broken_text_is_refused_with_its_reason(raw: str | bytes, expected: str) -> None:
    assert reason(raw) == expected


def test_brackets_inside_texts_are_not_depth() -> None:
    event = signed(1, [["t", "[" * 200]], "[{" * 200 + '"\\' * 50)
    assert check(event.to_json()) == event


def test_an_event_that_a_lax_writer_escaped_is_measured_by_what_relays_see() -> None:
    event = signed(1, [], "é" * 30_000)
    text = json.dumps(event.to_dict())
    assert len(text) > checks.MAX_BYTES
    assert check(text) == event


def test_a_key_that_is_not_on_the_curve_is_refused() -> None:
    draft = Draft("f" * 64, NOW, 1, (), "")
    row = {**draft.to_dict(), "sig": "0" * 128}
    assert reason(row) == "bad-key"


def test_what_lies_ahead_more_than_a_quarter_of_an_hour_is_told_apart() -> None:
    assert not checks.too_far_ahead(GOOD, NOW - 900)
    assert checks.too_far_ahead(GOOD, NOW - 901)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from([*GOOD.to_dict()]), JSON))
def test_nothing_but_refused_is_ever_raised_for_a_dict(fields: dict[str, object]) -> None:
    try:
        verify(parse(changed(**fields)))
    except Refused as refusal:
        assert refusal.reason


@settings(max_examples=40)
@given(st.text() | st.binary())
def test_nothing_but_refused_is_ever_raised_for_text(raw: str | bytes) -> None:
    with pytest.raises(Refused):
        check(raw)


@settings(max_examples=40)
@given(
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.lists(st.lists(st.text(st.characters(codec="utf-8"), max_size=10), min_size=1, max_size=3), max_size=3),
)
def test_whatever_we_sign_passes_our_own_checks(content: str, tags: list[list[str]]) -> None:
    event = signed(1, tags, content)
    assert check(event.to_json()) == event
