"""Which skills start which: circles are found, chains are drawn in the order they run."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from marketplace.protocol import chains


def test_a_circle_is_the_way_from_a_skill_back_to_itself() -> None:
    assert chains.cycle({"b": "a", "c": "b", "a": "c"}, "a") == ("a", "b", "c", "a")
    assert chains.cycle({"a": "a"}, "a") == ("a", "a")
    assert chains.cycle({"b": "a", "c": "b"}, "c") == ()
    assert chains.cycle({"b": "a", "a": "b", "c": "b"}, "c") == ()
    assert chains.words(("31123:k:one", "31123:k:two", "31123:k:one")) == "one → two → one"


@given(st.dictionaries(st.integers(0, 8).map(str), st.integers(0, 8).map(str)))
def test_a_circle_is_found_exactly_where_walking_comes_back(sources: dict[str, str]) -> None:
    for start in map(str, range(9)):
        at, steps = sources.get(start), 0
        while at is not None and at != start and steps < 20:
            at, steps = sources.get(at), steps + 1
        way = chains.cycle(sources, start)
        assert bool(way) == (at == start)
        assert all(sources[later] == earlier for earlier, later in itertools.pairwise(way))


def test_pipelines_stand_in_the_order_they_run() -> None:
    sources = {"b": "a", "c": "b", "d": "b", "e": "a", "y": "x", "m": "n", "n": "m"}
    assert chains.pipelines(sources) == [[(0, "a"), (1, "b"), (2, "c"), (2, "d"), (1, "e")], [(0, "x"), (1, "y")]]
