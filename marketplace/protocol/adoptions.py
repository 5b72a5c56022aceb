"""Adoption lists (kind 10123): ordered, and somebody else's tags in them stay as they are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from marketplace.protocol.events import Address, Draft, Event, Tags
from marketplace.protocol.kinds import SKILLS

_SKILL = re.compile(rf"(?:{'|'.join(map(str, sorted(SKILLS)))}):([0-9a-f]{{64}}):(.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    address: Address
    hint: str = ""  # a relay where it was found


class LeftOut(NamedTuple):
    tag: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class AdoptionList:
    """The list in order, what of it does not count and why, and what else the event holds."""

    entries: tuple[Entry, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    tags: Tags = ()  # all of them, as they stand
    content: str = ""  # not empty: somebody's encrypted list, kept untouched

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(entry.address for entry in self.entries)

    def with_(self, address: Address, hint: str = "") -> "AdoptionList":
        """The same list with the skill at its end; unchanged when it is there."""
        if address in self.addresses:
            return self
        tag = ("a", str(address), hint) if hint else ("a", str(address))
        return replace(self, entries=(*self.entries, Entry(address, hint)), tags=(*self.tags, tag))

    def without(self, address: Address) -> "AdoptionList":
        """The same list without the skill, whichever of its tags named it."""
        kept = tuple(entry for entry in self.entries if entry.address != address)
        tags = tuple(tag for tag in self.tags if not _names(tag, address))
        return replace(self, entries=kept, tags=tags)

    def reordered(self, wanted: Sequence[Address]) -> "AdoptionList":
        """The entries in this order; the skills must be those of the list. Raises ValueError."""
        if sorted(map(str, wanted)) != sorted(map(str, self.addresses)):
            raise ValueError("The order names other skills than the list holds.")
        by_address = {entry.address: entry for entry in self.entries}
        ordered = tuple(by_address[address] for address in wanted)
        places = iter(ordered)
        tags = list[tuple[str, ...]]()
        seen = set[Address]()
        own = {str(address): address for address in self.addresses}
        for tag in self.tags:
            address = own.get(tag[1]) if tag[0] == "a" and len(tag) > 1 else None
            if address is None:
                tags.append(tag)
            elif address not in seen:  # a repetition counted once stays once
                seen.add(address)
                entry = next(places)
                tags.append(("a", str(entry.address), entry.hint) if entry.hint else ("a", str(entry.address)))
        return replace(self, entries=ordered, tags=tuple(tags))


def read_adoptions(event: Event | Draft) -> AdoptionList:
    """Never raises: what cannot be counted is left out with its reason."""
    entries: dict[Address, Entry] = {}
    left_out = []
    for tag in event.tags:
        if tag[0] != "a":
            continue
        text = tag[1] if len(tag) > 1 else ""
        address = Address.parse(text)
        if address is None:
            upper = Address.parse(text.lower()) is not None
            left_out.append(LeftOut(tag, "upper-case hex" if upper else "not an address"))
        elif address.kind not in SKILLS:
            left_out.append(LeftOut(tag, f"kind {address.kind} is not a skill"))
        elif address in entries:
            left_out.append(LeftOut(tag, "named twice; counted at its first place"))
        else:
            entries[address] = Entry(address, tag[2] if len(tag) > 2 else "")
    return AdoptionList(tuple(entries.values()), tuple(left_out), event.tags, event.content)


def named_skills(event: Event | Draft) -> list[tuple[str, str, str]]:
    """What `read_adoptions` counts and nothing beside it: each address with its author and its name."""
    texts = dict.fromkeys([tag[1] for tag in event.tags if tag[0] == "a" and len(tag) > 1])
    return [(match[0], match[1], match[2]) for match in map(_SKILL.match, texts) if match]


def write_adoptions(adoptions: AdoptionList) -> tuple[str, Tags]:
    """Content and tags of the next version."""
    return adoptions.content, adoptions.tags


def _names(tag: tuple[str, ...], address: Address) -> bool:
    return tag[0] == "a" and len(tag) > 1 and tag[1] == str(address)
