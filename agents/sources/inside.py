"""Opens files inside a folder and nowhere else: component by component, following nothing that leaves it.

Links are resolved first and must stay inside; the resolved path is then opened without following any link, so that
what is swapped in between fails instead of being read. Only plain files with one name are read: a second hard link
may belong to somebody else's folder, and a pipe would wait for ever.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LONGEST_PATH = 400
MOST_FILES = 500  # of one folder that are looked at
DEEPEST = 8
_ENCODED = re.compile(r"%(?:2[ef]|5c|00)", re.IGNORECASE)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Outside(Exception):
    """The path leaves the folder, or what stands there is no plain file. One reason for all of it."""


class TooLarge(Exception):
    """The file has more bytes than are read."""


def parts_of(path: str) -> tuple[str, ...]:
    """The components of a relative path. Raises Outside for whatever could mean another place."""
    parts = tuple(part for part in path.split("/") if part != ".")
    if not parts or len(path) > LONGEST_PATH or any(part in {"", ".."} for part in parts):
        raise Outside
    if "\\" in path or not path.isprintable() or _ENCODED.search(path):
        raise Outside
    return parts


def resolved(root: Path, parts: Sequence[str]) -> tuple[str, ...]:
    """Where the parts lead once links are followed, as components below the root. Raises Outside."""
    top = os.path.realpath(root)
    real = os.path.realpath(os.path.join(top, *parts))  # noqa: PTH118 - a Path would drop what it deems needless
    below = Path(os.path.relpath(real, top)).parts
    if not below or below[0] == os.pardir:
        raise Outside
    return below


@contextmanager
def directory(root: Path, parts: Sequence[str] = ()) -> Iterator[int]:
    """A descriptor of the folder at the resolved parts. Raises Outside, FileNotFoundError, PermissionError."""
    current = os.open(os.path.realpath(root), _DIRECTORY)
    try:
        for part in parts:
            following = _open(part, _DIRECTORY, current)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


def read(root: Path, parts: Sequence[str], most: int) -> bytes:
    """The bytes of the plain file at the resolved parts. Raises as `directory` does, and TooLarge."""
    with directory(root, parts[:-1]) as folder:
        file = _open(parts[-1], _FILE, folder)
    try:
        facts = os.fstat(file)
        if not _plain(facts):
            raise Outside
        if facts.st_size > most:
            raise TooLarge
        with os.fdopen(os.dup(file), "rb") as stream:
            data = stream.read(most + 1)
    finally:
        os.close(file)
    if len(data) > most:
        raise TooLarge
    return data


def files(folder: int) -> list[str]:
    """Paths of the plain files in an open folder, sorted; links and hidden files are left out."""
    found: list[str] = []
    for top, folders, names, descriptor in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        place = top.removeprefix(".").lstrip("/")
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if place.count("/") < DEEPEST else []
        for name in sorted(names):
            if len(found) >= MOST_FILES:
                return found
            facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if not name.startswith(".") and _plain(facts):
                found.append(f"{place}/{name}" if place else name)
    return found


def _open(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        raise
    except PermissionError:
        raise
    except OSError:  # a link, a file in place of a folder, a socket
        raise Outside from None


def _plain(facts: os.stat_result) -> bool:
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1
