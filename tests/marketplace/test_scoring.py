"""Trust flows from the seeds along follows, and is taken back where the mutes of the trusted outweigh it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.scoring import LEAST, trust, trusted

NAMES = st.sampled_from("abcdefgh")
GRAPHS = st.dictionaries(NAMES, st.sets(NAMES, max_size=5), max_size=8)


def test_without_seeds_nobody_is_trusted() -> None:
    assert trust([], {"a": ["b"]}) == {}
    assert trusted([], {"a": ["b"]}, {}) == frozenset()


def test_a_lone_seed_keeps_all_of_it() -> None:
    assert trust(["a"], {}) == pytest.approx({"a": 1.0})
    assert trust(["a"], {"a": ["a"]}) == pytest.approx({"a": 1.0})  # to follow oneself passes nothing on


def test_what_is_passed_on_is_85_percent_in_equal_shares() -> None:
    ranks = trust(["a"], {"a": ["b", "c"]}, rounds=1)
    assert ranks == pytest.approx({"a": 0.15, "b": 0.425, "c": 0.425})


def test_a_dead_end_gives_back_to_the_seeds() -> None:
    ranks = trust(["a"], {"a": ["b"]}, rounds=2)
    assert ranks == pytest.approx({"a": 0.15 + 0.85 * 0.85, "b": 0.85 * 0.15})


def test_naming_a_key_twice_gives_it_no_more() -> None:
    assert trust(["a"], {"a": ["b", "b", "c"]}, 1) == trust(["a"], {"a": ["b", "c"]}, 1)


@given(st.sets(NAMES, min_size=1, max_size=3), GRAPHS)
def test_there_is_always_one_unit_of_trust(seeds: set[str], follows: dict[str, set[str]]) -> None:
    ranks = trust(seeds, follows)
    assert sum(ranks.values()) == pytest.approx(1.0)
    assert all(rank >= 0 for rank in ranks.values())


@given(st.sets(NAMES, min_size=1, max_size=3), GRAPHS)
def test_nobody_is_inside_whom_no_seed_reaches(seeds: set[str], follows: dict[str, set[str]]) -> None:
    reached, edge = set(seeds), set(seeds)
    while edge:
        edge = {key for name in edge for key in follows.get(name, ())} - reached
        reached |= edge
    assert trusted(seeds, follows, {}) <= reached
    assert set(seeds) <= trusted(seeds, follows, {})


def test_a_ring_of_followers_that_no_seed_follows_stays_outside() -> None:
    farm = {f"f{n}": [f"f{m}" for m in range(50)] for n in range(50)}
    assert trusted(["seed"], {"seed": ["friend"], **farm}, {}) == {"seed", "friend"}


def test_a_key_is_outside_when_its_muters_weigh_more_than_its_followers() -> None:
    follows = {"seed": ["friend", "other"], "friend": ["spam"]}
    assert "spam" in trusted(["seed"], follows, {})
    assert "spam" in trusted(["seed"], follows, {"other": ["spam"]})  # as much for as against: in doubt inside
    assert "spam" not in trusted(["seed"], follows, {"seed": ["spam"]})


def test_mutes_of_strangers_weigh_nothing_and_seeds_cannot_be_muted_out() -> None:
    follows = {"seed": ["friend"], "friend": ["seed"]}
    mutes = {f"stranger{n}": ["friend"] for n in range(100)}
    assert trusted(["seed"], follows, mutes) == {"seed", "friend"}
    assert "seed" in trusted(["seed"], follows, {"friend": ["seed"]})


def test_a_share_of_nearly_nothing_is_noise() -> None:
    crowd = [f"k{n}" for n in range(int(2 / LEAST) // 1_000)]
    follows = {"seed": ["hub", *(f"g{n}" for n in range(999))], "hub": crowd}
    assert not set(crowd) & trusted(["seed"], follows, {})
    assert "hub" in trusted(["seed"], follows, {})
