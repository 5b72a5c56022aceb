"""What a source of skills on demand offers, and several sources as one: in order, the first name wins.

SkillsError             a skill or one of its files cannot be had; `hint` says what to do
    SkillNotFoundError  no source has this name; `visible` are the names there are
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from agents.engine.disclosure import Entry

log = logging.getLogger(__name__)
T = TypeVar("T")


class SkillsError(Exception):
    """str() is what the model reads after “Error: ”."""

    def __init__(self, words: str, *, skill_name: str = "", path: str = "", hint: str = "") -> None:
        super().__init__(words)
        self.skill_name, self.path, self.hint = skill_name, path, hint


class SkillNotFoundError(SkillsError):
    """No source has a skill of this name now."""

    def __init__(self, name: str, visible: Sequence[str] = ()) -> None:
        super().__init__(
            f'skill "{name[:200]}" is unknown or no longer available',
            skill_name=name,
            hint=f"There are: {', '.join(visible)}." if visible else "There are none.",
        )
        self.visible = tuple(visible)


@dataclass(frozen=True, slots=True)
class Report:
    """Something that is not offered, and why; `line` is 0 where no line is to blame."""

    name: str
    path: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source has now. Entries may come without their body. Not `complete`: it did not answer to its end."""

    entries: tuple[Entry, ...] = ()
    reports: tuple[Report, ...] = ()
    complete: bool = True


class SkillSource(Protocol):
    """Where skills come from. Every call reflects what is there now; raises SkillsError, and nothing else."""

    @property
    def name(self) -> str: ...

    def list_skills(self) -> Listing: ...

    def load_skill(self, name: str) -> Entry:
        """With its body. Raises SkillNotFoundError."""
        ...

    def read_file(self, name: str, path: str) -> str:
        """A file of the skill, by its path inside the skill's folder."""
        ...


class Merged:
    """Several sources as one, without the names that the owner hid."""

    name = "all"

    def __init__(self, sources: Sequence[SkillSource], hidden: Collection[str] = ()) -> None:
        self.sources, self.hidden = tuple(sources), frozenset(hidden)
        self._owners: dict[str, SkillSource] | None = None

    def list_skills(self) -> Listing:
        """Scans every source anew."""
        entries: dict[str, Entry] = {}
        owners: dict[str, SkillSource] = {}
        reports: list[Report] = []
        complete = True
        for source in self.sources:
            found = _listed(source)
            complete = complete and found.complete
            reports += found.reports
            for entry in found.entries:
                if entry.name in owners:
                    reason = f"the skill of this name in {owners[entry.name].name} comes first."
                    reports.append(Report(entry.name, source.name, 0, reason))
                elif entry.name not in self.hidden:
                    entries[entry.name], owners[entry.name] = entry, source
        self._owners = owners
        return Listing(tuple(entries.values()), tuple(reports), complete)

    def load_skill(self, name: str) -> Entry:
        return self._from_owner(name, lambda source: source.load_skill(name))

    def read_file(self, name: str, path: str) -> str:
        return self._from_owner(name, lambda source: source.read_file(name, path))

    def _from_owner(self, name: str, ask: Callable[[SkillSource], T]) -> T:
        """From the source that has the name; after a miss all are scanned once more."""
        if self._owners is None:
            self.list_skills()
        for again in (False, True):
            if again:
                self.list_skills()
            owner = (self._owners or {}).get(name)
            if owner is None:
                continue
            try:
                return ask(owner)
            except SkillNotFoundError:
                continue
        raise SkillNotFoundError(name, sorted(self._owners or ()))


def _listed(source: SkillSource) -> Listing:
    try:
        return source.list_skills()
    except SkillsError as error:
        log.warning("the skills of %s could not be listed: %s", source.name, error)
        return Listing(reports=(Report(error.skill_name, error.path or source.name, 0, str(error)),), complete=False)
