"""One event against 10,000 filters: by index, and by asking each. Run as a script."""

import random
import time

from marketplace.protocol.events import Event
from marketplace.protocol.filters import Filter
from marketplace.protocol.matching import MatchIndex

FILTERS = 10_000
EVENTS = 500


def world(seed: int = 1) -> tuple[list[tuple[object, Filter]], list[Event]]:
    """Triggers as agents have them: mentions, authors, topics, a few for a whole kind."""
    chance = random.Random(seed)
    keys = [f"{chance.getrandbits(256):064x}" for _ in range(5_000)]
    topics = [f"topic{number}" for number in range(2_000)]
    shapes = (
        lambda: Filter(kinds=frozenset({1}), tags={"p": frozenset({chance.choice(keys)})}),
        lambda: Filter(kinds=frozenset({1, 6}), authors=frozenset(chance.sample(keys, 5))),
        lambda: Filter(kinds=frozenset({1}), tags={"t": frozenset(chance.sample(topics, 2))}),
        lambda: Filter(tags={"p": frozenset({chance.choice(keys)}), "t": frozenset({chance.choice(topics)})}),
    )
    items: list[tuple[object, Filter]] = [(at, chance.choice(shapes)()) for at in range(FILTERS - 20)]
    items += [(("whole kind", kind), Filter(kinds=frozenset({kind}))) for kind in range(20)]
    events = [_event(chance, keys, topics) for _ in range(EVENTS)]
    return items, events


def _event(chance: random.Random, keys: list[str], topics: list[str]) -> Event:
    tags = [("p", chance.choice(keys)) for _ in range(3)] + [("t", chance.choice(topics)) for _ in range(3)]
    return Event("0" * 64, chance.choice(keys), 1, chance.choice((1, 6, 7)), tuple(tags), "", "")


def measure() -> tuple[float, float, float]:
    """Milliseconds per event by index and by asking each, and how many filters matched on average."""
    items, events = world()
    index = MatchIndex(items)
    started = time.perf_counter()
    found = [index.matches(event) for event in events]
    by_index = (time.perf_counter() - started) / len(events) * 1_000
    asked = events[:20]
    started = time.perf_counter()
    slow = [{key for key, wanted in items if wanted.matches(event)} for event in asked]
    by_asking = (time.perf_counter() - started) / len(asked) * 1_000
    if slow != found[: len(asked)]:
        raise SystemExit("The index and asking each disagree.")
    return by_index, by_asking, sum(map(len, found)) / len(found)


if __name__ == "__main__":
    by_index, by_asking, matched = measure()
    print(f"matching {FILTERS:,} filters against one event ({matched:.1f} match):")
    print(f"  by index     {by_index:8.3f} ms")
    print(f"  asking each  {by_asking:8.3f} ms")
    print(f"  ratio        {by_asking / by_index:8.0f} times")
