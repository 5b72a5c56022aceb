"""Addresses, tags and kinds as NIP-01 has them (N01, N03, N11)."""

import pytest

from marketplace.protocol import kinds
from marketplace.protocol.events import Address, Event
from tests.events import A, load, signed


def test_n03_three_spellings_are_one_address() -> None:
    rows = load("n03_missing_d")
    addresses = {Event.from_dict(rows[name]).address for name in ("missing", "bare", "empty")}
    assert addresses == {Address(31123, A, "")}
    assert str(addresses.pop()) == f"31123:{A}:"


def test_n01_the_lower_id_says_two() -> None:
    rows = load("n01_tie")
    assert min(rows.values(), key=lambda row: row["id"])["content"].startswith('{"description":"two"')


def test_an_address_splits_in_three_and_keeps_colons() -> None:
    address = Address.parse(f"31123:{A}:a:b:c")
    assert address == Address(31123, A, "a:b:c")
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "::",
        f"31123:{A}",
        f"031123:{A}:x",
        f"65536:{A}:x",
        f"-1:{A}:x",
        f"31123:{A[:-1]}:x",
        f"٣:{A}:x",
        f" 1:{A}:x",
    ],
)
def test_what_is_not_an_address_is_none(text: str) -> None:
    assert Address.parse(text) is None


def test_n11_upper_case_is_no_address() -> None:
    assert Address.parse(f"31123:{A.upper()}:tie") is None


def test_tags_are_read_by_name() -> None:
    event = signed(31123, [["t", "a", "x"], ["t"], ["t", "b"], ["d", "first"], ["d", "second"]])
    assert event.value("d") == "first"
    assert event.value("nothing") == ""
    assert event.values("t") == ["a", "b"]
    assert event.all("t") == [("t", "a", "x"), ("t",), ("t", "b")]


@pytest.mark.parametrize(
    ("kind", "replaceable", "addressable", "ephemeral"),
    [
        (0, True, False, False),
        (1, False, False, False),
        (3, True, False, False),
        (9_999, False, False, False),
        (10_123, True, False, False),
        (19_999, True, False, False),
        (20_000, False, False, True),
        (30_000, False, True, False),
        (31_124, False, True, False),
        (40_000, False, False, False),
    ],
)
def test_kind_ranges(kind: int, replaceable: bool, addressable: bool, ephemeral: bool) -> None:
    assert kinds.is_replaceable(kind) is replaceable
    assert kinds.is_addressable(kind) is addressable
    assert kinds.is_ephemeral(kind) is ephemeral


def test_only_replacing_kinds_have_an_address() -> None:
    assert signed(1).address is None
    assert signed(10_123, [["d", "ignored"]]).address == Address(10_123, A, "")
