"""Which skills start which, and whether one would start itself."""

from collections.abc import Mapping


def cycle(sources: Mapping[str, str], start: str) -> tuple[str, ...]:
    """The way from a skill back to itself along the skills that start it, () where there is none.

    `sources`: address -> address of the skill whose end starts it; a skill has one trigger, so one source.
    """
    way = [start]
    at = sources.get(start, "")
    while at and at not in way:
        way.append(at)
        at = sources.get(at, "")
    # Walked from the started to the starting one; told in the order they run.
    return (start, *reversed(way)) if at == start else ()


def words(way: tuple[str, ...]) -> str:
    """A cycle by its skills' names."""
    return " → ".join(address.split(":", 2)[-1] or "(no name)" for address in way)


def pipelines(sources: Mapping[str, str]) -> list[list[tuple[int, str]]]:
    """The chains as trees, each a list of (depth, address) in the order they run, parents before children.

    Skills of a cycle have no beginning and stand in no pipeline.
    """
    children: dict[str, list[str]] = {}
    for child, source in sorted(sources.items()):
        children.setdefault(source, []).append(child)
    found = []
    for root in sorted(children.keys() - sources.keys()):
        rows, waiting = list[tuple[int, str]](), [(0, root)]
        while waiting:
            depth, at = waiting.pop()
            rows.append((depth, at))
            waiting += [(depth + 1, child) for child in reversed(children.get(at, ()))]
        found.append(rows)
    return found
