"""`chain` (ours): the end of another skill's run of the same agent."""

from collections.abc import Sequence
from dataclasses import dataclass

from marketplace.protocol.events import Address, Tag
from marketplace.protocol.kinds import SKILLS
from marketplace.protocol.problems import Problem

LABEL = "Another skill's end"
TAGS = ("source", "on")
ENDINGS = {"succeeded": "succeeds", "failed": "fails", "always": "ends"}


@dataclass(frozen=True, slots=True)
class Chain:
    source: Address
    on: str = "succeeded"


def from_tags(tags: Sequence[Tag], *, own_input: bool = False) -> tuple[Chain | None, list[Problem]]:
    first = {tag[0]: tag[1] for tag in reversed(tags) if len(tag) > 1}
    source, on = Address.parse(first.get("source", "")), first.get("on", "succeeded")
    found = []
    if source is None or source.kind not in SKILLS:
        found.append(Problem("source", "The source is not a skill's address (31123:<key>:<name>)."))
    if on not in ENDINGS:
        found.append(Problem("on", "`on` is neither succeeded, failed nor always."))
    if source is None or found:
        return None, found
    return Chain(source, on), []


def to_tags(data: Chain) -> list[list[str]]:
    return [["source", str(data.source)], ["on", data.on]]


def problems(data: Chain) -> list[Problem]:
    return from_tags([tuple(tag) for tag in to_tags(data)])[1]


def in_words(data: Chain) -> str:
    return f"When {data.source.d or 'the skill'} {ENDINGS[data.on]}"
