"""From the version that stands at an address to its projection, by kind."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from marketplace.ingest import archive, authors, lists, skills
from marketplace.ingest.keys import Key
from marketplace.protocol import kinds
from marketplace.protocol.events import Event


@dataclass
class Changes:
    """What readers of the catalogue must hear of."""

    touched: set[str] = field(default_factory=set)  # addresses of skills whose counts may differ
    catalogue: bool = False  # something listed changed

    def merge(self, other: "Changes") -> None:
        self.touched |= other.touched
        self.catalogue |= other.catalogue


def project(winners: Iterable[Event], prepared: Mapping[str, skills.Projected], first: Mapping[Key, int]) -> Changes:
    """Write the projections of events that now stand at their addresses."""
    by_kind: dict[int, list[Event]] = {}
    for event in winners:
        by_kind.setdefault(event.kind, []).append(event)
    changes = Changes()
    own = [prepared[event.id] for kind in kinds.SKILLS for event in by_kind.get(kind, ())]
    if own:
        skills.project(own, first)
        # A new row counts nobody, and that is right for most.
        changes = Changes(lists.adopted([skill.key.text for skill in own]), True)
    if by_kind.get(kinds.ADOPTIONS):
        changes.touched |= lists.project(by_kind[kinds.ADOPTIONS])
    if by_kind.get(kinds.PROFILE):
        renamed = authors.project_profiles(by_kind[kinds.PROFILE])
        skills.rename(renamed)
        changes.catalogue |= bool(renamed)
    if by_kind.get(kinds.RELAYS):
        authors.project_relays(by_kind[kinds.RELAYS])
    return changes


def reproject(keys: Sequence[Key]) -> Changes:
    """After a deletion or an expiry: the projections of these addresses anew from the archive."""
    heads = archive.heads(keys)
    events = archive.read([event_id for _, event_id in heads.values()])
    changes = _remove([key for key in keys if key.kind in kinds.SKILLS or key not in heads])
    prepared = {event.id: skills.prepare(event) for event in events if event.kind in kinds.SKILLS}
    first = archive.first_published([key for key in heads if key.kind in kinds.SKILLS])
    changes.merge(project(events, prepared, first))
    return changes


def _remove(keys: Sequence[Key]) -> Changes:
    own = [key for key in keys if key.kind in kinds.SKILLS]
    skills.remove(own)
    changes = Changes(catalogue=bool(own))
    pubkeys = _pubkeys(keys)
    if adopters := pubkeys(kinds.ADOPTIONS):
        changes.touched |= lists.remove(adopters)
    if named := pubkeys(kinds.PROFILE):
        renamed = authors.forget_profiles(named)
        skills.rename(renamed)
        changes.catalogue |= bool(renamed)
    if writers := pubkeys(kinds.RELAYS):
        authors.forget_relays(writers)
    return changes


def _pubkeys(keys: Sequence[Key]) -> Callable[[int], set[str]]:
    return lambda kind: {key.pubkey for key in keys if key.kind == kind}
