"""Adoption lists: order, repetition and other people's tags (Y05, N11)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.protocol.adoptions import AdoptionList, Entry, named_skills, read_adoptions, write_adoptions
from marketplace.protocol.events import Address, Draft, Event
from tests.events import NOW, A, B, load

FIRST, SECOND, THIRD = (Address(31123, A, name) for name in ("first", "second", "third"))


def draft(*tags: tuple[str, ...], content: str = "") -> Draft:
    return Draft(B, NOW, 10123, tags, content)


def test_y05_a_skill_named_fifty_times_counts_once() -> None:
    found = read_adoptions(Event.from_dict(load("y05_bought")["fifty_times"]))
    assert found.addresses == (Address(31123, A, "tie"),)
    assert len(found.left_out) == 49
    assert {reason for _, reason in found.left_out} == {"named twice; counted at its first place"}


def test_n11_upper_case_is_not_counted_and_said() -> None:
    found = read_adoptions(Event.from_dict(load("n11_upper_case")["adoption_list"]))
    assert found.addresses == (Address(31123, A, "tie"),)
    assert [reason for _, reason in found.left_out] == ["upper-case hex"]


PARTS = st.sampled_from(["31123", "31124", "031123", "30023", "3112", "", A, A.upper(), A[1:], "x", "a:b", "\n", "é"])
TAGS = st.tuples(st.sampled_from("aab"), st.lists(PARTS, max_size=4).map(":".join)) | st.just(("a",))


@given(st.lists(TAGS | st.just(("a", f"31123:{A}:x")) | st.just(("a", f"31124:{B}:a:b\n", "wss://r")), max_size=8))
def test_the_short_reading_names_what_the_long_one_counts(tags: list[tuple[str, ...]]) -> None:
    counted = read_adoptions(draft(*tags)).addresses
    assert named_skills(draft(*tags)) == [(str(address), address.pubkey, address.d) for address in counted]


@pytest.mark.parametrize(
    ("tag", "reason"),
    [
        (("a",), "not an address"),
        (("a", "31123"), "not an address"),
        (("a", f"31123:{A[:-1]}:x"), "not an address"),
        (("a", f"30023:{A}:x"), "kind 30023 is not a skill"),
    ],
)
def test_what_is_no_skill_is_left_out_with_a_reason(tag: tuple[str, ...], reason: str) -> None:
    found = read_adoptions(draft(tag))
    assert found.entries == ()
    assert found.left_out == ((tag, reason),)
    assert write_adoptions(found) == ("", (tag,))


def test_order_hints_and_private_skills_are_read() -> None:
    own = Address(31124, B, "mine")
    found = read_adoptions(draft(("a", str(SECOND), "wss://r"), ("a", str(own)), ("a", str(FIRST), "")))
    assert found.entries == (Entry(SECOND, "wss://r"), Entry(own), Entry(FIRST))


def test_adding_goes_to_the_end_and_happens_once() -> None:
    found = read_adoptions(draft(("a", str(FIRST)), ("x", "y"))).with_(SECOND, "wss://r")
    assert found.with_(SECOND, "wss://other") == found
    assert write_adoptions(found) == ("", (("a", str(FIRST)), ("x", "y"), ("a", str(SECOND), "wss://r")))


def test_removing_takes_every_mention_and_nothing_else() -> None:
    found = read_adoptions(draft(("a", str(FIRST)), ("x", "y"), ("a", str(SECOND)), ("a", str(FIRST), "hint")))
    left = found.without(FIRST)
    assert write_adoptions(left) == ("", (("x", "y"), ("a", str(SECOND))))
    assert left.addresses == (SECOND,)
    assert found.without(THIRD) == found


def test_reordering_keeps_other_tags_in_their_places_and_content_untouched() -> None:
    tags = (("t", "1"), ("a", str(FIRST), "wss://r"), ("x",), ("a", str(SECOND)), ("a", "broken"), ("a", str(FIRST)))
    found = read_adoptions(draft(*tags, content="ciphertext")).reordered([SECOND, FIRST])
    content, written = write_adoptions(found)
    assert content == "ciphertext"
    assert written == (("t", "1"), ("a", str(SECOND)), ("x",), ("a", str(FIRST), "wss://r"), ("a", "broken"))
    assert read_adoptions(draft(*written)).addresses == (SECOND, FIRST)


@pytest.mark.parametrize("wanted", [[], [FIRST], [FIRST, FIRST], [FIRST, THIRD], [FIRST, SECOND, THIRD]])
def test_an_order_of_other_skills_is_refused(wanted: list[Address]) -> None:
    with pytest.raises(ValueError, match="other skills"):
        read_adoptions(draft(("a", str(FIRST)), ("a", str(SECOND)))).reordered(wanted)


def test_what_is_written_reads_back_the_same() -> None:
    found = AdoptionList().with_(FIRST).with_(SECOND, "wss://r")
    content, tags = write_adoptions(found)
    assert read_adoptions(draft(*tags, content=content)) == found
