"""Agent Skills folders as a source: `<root>/<folder>/SKILL.md`, one level deep, read anew each time.

A folder without exactly `SKILL.md`, one that lies deeper, and a file that cannot be used are listed with their reason.
"""

import hashlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from agents.engine.disclosure import Entry, Resources
from agents.models import Agent
from agents.sources import inside
from agents.sources.listing import Listing, Report, SkillNotFoundError, SkillsError
from marketplace.protocol import nip19
from marketplace.protocol.skillmd import MAX_FILE, PREFIX, SkillFile, read_skillmd

FILE = "SKILL.md"
MAX_BESIDE = 2_000_000  # bytes of a file beside the SKILL.md
MOST_FOLDERS = 1_000  # of one root
MOST_NAMED = 60  # files that a loaded skill names
MOST_KEYS = 20  # of the front matter that go with an entry
REFUSED = "the path is not a file inside this skill's folder"
KINDS = {"references": "to read", "scripts": "text only, nothing is run here", "assets": "templates and data"}
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Folder:
    """One folder below a root: the skill in it, or why there is none."""

    folder: str
    parts: tuple[str, ...] = ()  # of the folder itself, once a link to it is followed
    file: SkillFile | None = None
    version: str = ""
    report: Report | None = None  # why it is not offered

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(problem.message for problem in self.file.problems) if self.file else ()

    @property
    def entry(self) -> Entry:
        """Without its body. Only for a folder that has a skill."""
        assert self.file is not None  # noqa: S101 - asked only for what `found` gave
        limits = (("allowed-tools", " ".join(self.file.tools) or "none"),) if self.file.tools is not None else ()
        extra = tuple((key, text) for key, text in self.file.extra if not key.startswith(f"metadata.{PREFIX}"))
        return Entry(
            self.file.name,
            self.file.description,
            resources=Resources("directory", self.file.name),
            by_model=self.file.by_model,
            by_user=self.file.by_user,
            version=self.version,
            extra=limits + extra[:MOST_KEYS],
        )


class FolderSource:
    """The skills of one root folder on this server."""

    def __init__(self, root: Path, name: str, optional: bool = False) -> None:
        self.root, self.name, self.optional = root, name, optional

    def list_skills(self) -> Listing:
        try:
            folders = self.scan()
        except SkillsError as error:
            return Listing(reports=(Report("", self.name, 0, str(error)),), complete=False)
        entries = tuple(folder.entry for folder in folders if folder.report is None)
        return Listing(entries, tuple(folder.report for folder in folders if folder.report is not None))

    def load_skill(self, name: str) -> Entry:
        folder = self._named(name)
        entry, file = folder.entry, folder.file
        return Entry(
            entry.name,
            entry.description,
            file.body if file else "",
            Resources("directory", _resources(entry.name, self.files(folder))),
            entry.by_model,
            entry.by_user,
            entry.version,
            extra=entry.extra,
        )

    def read_file(self, name: str, path: str) -> str:
        """Raises SkillsError with one reason for all that is not a file in the skill's own folder."""
        folder = self._named(name)
        refused = SkillsError(REFUSED, skill_name=name, path=path[:200], hint="Name a file as the skill does.")
        try:
            parts = inside.resolved(self.root, folder.parts + inside.parts_of(path))
            if parts[: len(folder.parts)] != folder.parts or len(parts) == len(folder.parts):
                raise refused
            data = inside.read(self.root, parts, MAX_BESIDE)
        except FileNotFoundError:
            there = ", ".join(self.files(folder)[:MOST_NAMED])
            words = f'skill "{name}" has no file "{path}"'
            raise SkillsError(words, skill_name=name, path=path, hint=f"There are: {there}.") from None
        except inside.TooLarge:
            words = f'"{path}" is larger than {MAX_BESIDE:,} bytes'
            raise SkillsError(words, skill_name=name, path=path) from None
        except (inside.Outside, OSError, ValueError):
            raise refused from None
        if nip19.holds_nsec(readable(data)):
            words = f'"{path}" holds a secret key (nsec), so it is not read'
            raise SkillsError(words, skill_name=name, path=path)
        try:
            return data.decode("utf-8-sig") if b"\0" not in data else _not_text(path, name)
        except UnicodeDecodeError:
            return _not_text(path, name)

    def files(self, folder: Folder) -> list[str]:
        """Paths of its other files. Empty for one that went away meanwhile."""
        try:
            with inside.directory(self.root, folder.parts) as descriptor:
                return [path for path in inside.files(descriptor) if path != FILE]
        except (OSError, inside.Outside):
            return []

    def scan(self) -> list[Folder]:
        """Every folder of the root, by name. Raises SkillsError where the root cannot be read."""
        try:
            with inside.directory(self.root) as descriptor:
                names = sorted(os.listdir(descriptor))  # noqa: PTH208 - a descriptor has no path
        except FileNotFoundError:
            if self.optional:
                return []
            raise SkillsError("the folder is not there", path=self.name) from None
        except OSError as error:
            raise SkillsError(f"the folder cannot be read: {error.strerror}", path=self.name) from None
        return list(self._told(names))

    def _told(self, names: list[str]) -> Iterator[Folder]:
        taken: dict[str, str] = {}
        visible = [name for name in names if not name.startswith(".")]
        visible.sort(key=lambda name: (self.root / name).is_symlink())  # what a link leads to comes before the link
        for name in visible[:MOST_FOLDERS]:
            folder = self._folder(name)
            if folder is None:
                continue
            if folder.file is not None and folder.report is None:
                first = taken.setdefault(folder.file.name, name)
                if first != name:
                    folder = self._not(name, f"the folder “{first}” has the name “{folder.file.name}” already.")
            if folder.report is not None:
                _log_once(str(self.root), name, folder.report.reason)
            yield folder
        if len(visible) > MOST_FOLDERS:
            yield self._not("…", f"only the first {MOST_FOLDERS:,} folders are looked at.")

    def _folder(self, name: str) -> Folder | None:
        """None for what is no folder and no link, which is nobody's skill."""
        if name == FILE:
            return self._not(name, "it lies in the root itself; a skill is a folder with a SKILL.md in it.")
        try:
            parts = inside.resolved(self.root, (name,))
            with inside.directory(self.root, parts) as descriptor:
                names = os.listdir(descriptor)  # noqa: PTH208
            if FILE not in names:
                return self._not(name, self._lacking(parts, sorted(names)))
            place = inside.resolved(self.root, (*parts, FILE))
            if place[: len(parts)] != parts:
                raise inside.Outside
            data = inside.read(self.root, place, MAX_FILE)
        except inside.TooLarge:
            return self._not(name, f"SKILL.md is larger than {MAX_FILE:,} bytes.")
        except PermissionError:
            return self._not(name, "it cannot be read with the rights of this server.")
        except (inside.Outside, OSError, ValueError):
            path = self.root / name
            return self._not(name, f"{REFUSED}.") if path.is_dir() or path.is_symlink() else None
        return self._skill(name, parts, data)

    def _skill(self, name: str, parts: tuple[str, ...], data: bytes) -> Folder:
        if nip19.holds_nsec(readable(data)):
            return self._not(name, "SKILL.md holds a secret key (nsec); take it out, and treat that key as leaked.")
        file = read_skillmd(data, name)
        found = Folder(name, parts, file, hashlib.sha256(data).hexdigest()[:16])
        if file.usable:
            return found
        reason = next(problem.message for problem in file.problems if problem.level == "error")
        place, _, words = reason.partition(": ")
        line = place.removeprefix("line ")
        return self._not(name, words, int(line), file) if line.isdigit() else self._not(name, reason, 1, file)

    def _lacking(self, parts: tuple[str, ...], names: list[str]) -> str:
        other = next((name for name in names if name.lower() == FILE.lower()), None)
        if other is not None:
            return f"its file is called {other}; exactly SKILL.md counts."
        for name in names[:100]:
            if (self.root.joinpath(*parts, name, FILE)).is_file():
                return f"no SKILL.md in it; the one in {name}/ lies too deep: a skill is a folder right in the root."
        return "no SKILL.md in it."

    def _not(self, name: str, reason: str, line: int = 0, file: SkillFile | None = None) -> Folder:
        called = file.name if file and file.name else name
        return Folder(name, file=file, report=Report(called, f"{self.name}/{name}", line, reason))

    def _named(self, name: str) -> Folder:
        folders = [folder for folder in self.scan() if folder.report is None]
        found = next((folder for folder in folders if folder.entry.name == name), None)
        if found is None:
            raise SkillNotFoundError(name, [folder.entry.name for folder in folders])
        return found


def folder_sources(agent: Agent) -> list[FolderSource]:
    """What the agent's owner uploaded, then the server's folders: of two with one name the earlier counts."""
    own = FolderSource(uploads_root(agent), "your uploads", optional=True)
    return [own, *(FolderSource(Path(root), called) for root, called in _called(settings.SKILLS_DIRS))]


def uploads_root(agent: Agent) -> Path:
    return Path(settings.VAR_DIR) / "skills" / str(agent.pk)


def readable(data: bytes) -> str:
    """The letters in a file, whatever else is in it: enough to look for a secret key."""
    return data.replace(b"\0", b"").decode("latin-1")


def _called(roots: list[str]) -> Iterator[tuple[str, str]]:
    """Each root with a name for its owner's eyes: where it lies on the server is nobody's business."""
    names = [Path(root).name or "root" for root in roots]
    for at, (root, name) in enumerate(zip(roots, names, strict=True)):
        yield root, f"server folder {name}" + (f" ({at + 1})" if names.count(name) > 1 else "")


def _resources(name: str, paths: list[str]) -> str:
    """The folder and what lies in it, by kind, on one line each, so that a file's name adds nothing else."""
    if not paths:
        return f"{name}/ (no other files)"
    told = [_one_line(path) for path in paths[:MOST_NAMED]]
    lines = [f"{name}/ (read its files with read_skill_file)"]
    for kind in [*KINDS, ""]:
        some = [path for path in told if (path.partition("/")[0] if path.partition("/")[0] in KINDS else "") == kind]
        if some:
            lines.append(f"{kind or 'other files'}{f' ({KINDS[kind]})' if kind else ''}: {', '.join(some)}")
    if len(paths) > MOST_NAMED:
        lines.append(f"and {len(paths) - MOST_NAMED} more files")
    return "\n".join(lines)


def _one_line(path: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in path).translate(_BRACKETS)[:200]


_BRACKETS = str.maketrans("<>", "‹›")


def _not_text(path: str, name: str) -> str:
    raise SkillsError(f'"{path}" is not a text file', skill_name=name, path=path)


@lru_cache(maxsize=4_096)
def _log_once(root: str, folder: str, reason: str) -> None:
    log.warning("skill folder %s/%s is not offered: %s", root, folder, reason)
