"""Filters are read strictly, and the index finds what asking each filter finds (N11)."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter, fill_placeholders, read_filter
from marketplace.protocol.matching import MatchIndex, reference
from marketplace.protocol.nip19 import encode_note, encode_npub
from tests.events import NOW, A, B, signed


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ([], "object"),
        ({}, "narrows"),
        ({"limit": 5}, "narrows"),
        ({"since": 1, "until": 2}, "narrows"),
        ({"search": "x"}, "narrows"),
        ({"kind": 1}, "'kind'"),
        ({"kinds": []}, "empty"),
        ({"authors": []}, "empty"),
        ({"#p": []}, "empty"),
        ({"kinds": 1}, "list"),
        ({"kinds": ["1"]}, "number"),
        ({"kinds": [True]}, "number"),
        ({"kinds": [65_536]}, "65535"),
        ({"authors": [A.upper()]}, "upper-case"),
        ({"authors": [A[:10]]}, "64"),
        ({"ids": ["<admin_pubkey>"]}, "64"),
        ({"#e": ["<admin_pubkey>"]}, "64"),
        ({"#p": [1]}, "text"),
        ({"#pp": ["x"]}, "'#pp'"),
        ({"#é": ["x"]}, "'#é'"),
        ({"kinds": [1], "limit": 0}, "limit"),
        ({"kinds": [1], "since": 1.5}, "since"),
        ({"kinds": [1], "until": None}, "until"),
        ({"kinds": [1], "search": 1}, "search"),
        ({"#t": ["x"] * 1_001}, "1000"),
    ],
)
def test_a_filter_is_refused_in_words(row: object, word: str) -> None:
    found, problems = read_filter(row)
    assert found is None
    assert word in " ".join(problems)


def test_n11_our_own_form_lowers_hex_and_converts_names() -> None:
    row = {"authors": [A.upper()], "#p": [encode_npub(B)], "ids": [encode_note(A)], "#e": [B.upper()]}
    found, problems = read_filter(row, own_input=True)
    assert problems == []
    assert found == Filter(ids=frozenset({A}), authors=frozenset({A}), tags={"p": frozenset({B}), "e": frozenset({B})})


@pytest.mark.parametrize("name", ["nsec1abc", "bob", "npub1zzz"])
def test_our_own_form_says_which_name_it_cannot_read(name: str) -> None:
    found, problems = read_filter({"authors": [name]}, own_input=True)
    assert found is None
    assert name in problems[0]


def test_placeholders_stand_where_keys_do_and_are_filled_when_armed() -> None:
    found, problems = read_filter(
        {"#p": ["<admin_pubkey>"], "authors": ["<agent_pubkey>", A], "#t": ["<admin_pubkey>"]}
    )
    assert found is not None
    assert problems == []
    assert found.unfilled == {"<admin_pubkey>", "<agent_pubkey>"}
    (filled,) = fill_placeholders([found], A, B)
    assert filled.to_dict() == {"authors": sorted([A, B]), "#p": [A], "#t": ["<admin_pubkey>"]}
    assert not filled.unfilled
    (half,) = fill_placeholders([found], "", B)
    assert half.unfilled == {"<admin_pubkey>"}


def test_only_the_first_value_of_a_tag_is_looked_at() -> None:
    event = signed(1, [["p", A, B], ["t"], ["t", "x"]])
    assert Filter(tags={"p": frozenset({A})}).matches(event)
    assert not Filter(tags={"p": frozenset({B})}).matches(event)
    assert Filter(tags={"t": frozenset({"x", "y"})}).matches(event)


def test_since_and_until_are_inclusive() -> None:
    event = signed(1)
    assert Filter(kinds=frozenset({1}), since=NOW, until=NOW).matches(event)
    assert not Filter(kinds=frozenset({1}), since=NOW + 1).matches(event)
    assert not Filter(kinds=frozenset({1}), until=NOW - 1).matches(event)


KEYS = [character * 64 for character in "abc"]
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "ids": st.sets(st.sampled_from(KEYS), min_size=1),
        "authors": st.sets(st.sampled_from(KEYS), min_size=1),
        "kinds": st.sets(st.integers(0, 3), min_size=1),
        "#p": st.sets(st.sampled_from(KEYS), min_size=1),
        "#t": st.sets(st.sampled_from(["id", "author", "x"]), min_size=1),
        "#X": st.sets(st.sampled_from(["x", ""]), min_size=1),
        "since": st.integers(0, 3),
        "limit": st.integers(1, 3),
    },
).filter(lambda row: set(row) - {"since", "limit"})
EVENTS = st.builds(
    Event,
    st.sampled_from(KEYS),
    st.sampled_from(KEYS),
    st.integers(0, 3),
    st.integers(0, 3),
    st.lists(
        st.lists(st.sampled_from(["p", "t", "X", "x", "", *KEYS, "id", "author"]), min_size=1, max_size=3).map(tuple),
        max_size=4,
    ).map(tuple),
    st.just(""),
    st.just(""),
)


def as_filter(row: dict[str, object]) -> Filter:
    found, problems = read_filter({key: sorted(v) if isinstance(v, set) else v for key, v in row.items()})
    assert found is not None, problems
    return found


@settings(max_examples=50)
@given(st.lists(FILTERS.map(as_filter), max_size=8), st.lists(EVENTS, min_size=1, max_size=4))
def test_the_index_agrees_with_asking_each(filters: list[Filter], events: list[Event]) -> None:
    items = [(at // 2, wanted) for at, wanted in enumerate(filters)]
    index = MatchIndex(items)
    assert [index.matches(event) for event in events] == [reference(items, event) for event in events]
    for removed in range(len(filters)):
        index.remove(removed)
        left = [item for item in items if item[0] > removed]
        assert [index.matches(event) for event in events] == [reference(left, event) for event in events]
    assert not index._filed
    assert not index._places


@settings(max_examples=40)
@given(FILTERS.map(as_filter))
def test_a_filter_survives_its_json(wanted: Filter) -> None:
    assert read_filter(json.loads(json.dumps(wanted.to_dict()))) == (wanted, [])


def test_an_index_takes_the_same_key_again_after_removal() -> None:
    index = MatchIndex()
    for kind in (1, 2):
        index.remove("trigger")
        index.add("trigger", Filter(kinds=frozenset({kind})))
    assert index.matches(signed(1)) == set()
    assert index.matches(signed(2)) == {"trigger"}


def test_most_filters_are_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"{number:064x}" for number in range(2_000)]
    index = MatchIndex(
        itertools.chain(
            ((f"p{key}", Filter(kinds=frozenset({1}), tags={"p": frozenset({key})})) for key in keys),
            ((f"a{key}", Filter(kinds=frozenset({1}), authors=frozenset({key}))) for key in keys),
        )
    )
    asked = []
    matches = Filter.matches
    monkeypatch.setattr(Filter, "matches", lambda self, event: asked.append(self) or matches(self, event))
    event = signed(1, [["p", keys[7]]])
    assert index.matches(event) == {f"p{keys[7]}"}
    assert len(asked) == 1
