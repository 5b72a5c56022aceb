"""A skill's folder as a zip: read into memory with every bound held; a trick of any kind refuses the whole of it."""

import io
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAX_ZIP = 10_000_000
MAX_UNPACKED = 20_000_000
MAX_FILES = 500
MOST_ENTRIES = 4 * MAX_FILES  # with folders, and with what is left out
DEEPEST = 8
LONGEST_PATH = 300
LONGEST_PART = 200  # bytes; file systems take 255
FILE = "SKILL.md"
_ENTRY = b"PK\x01\x02"  # begins each entry of a zip's list
_DRIVE = re.compile(r"[A-Za-z]:")
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError, IndexError)


class Unusable(ValueError):
    """The zip is not taken; str() says why, for the person who chose it."""


@dataclass(frozen=True, slots=True)
class Zipped:
    """The one skill in a zip: its folder's name ("" where the files lie at the top) and its files by path."""

    folder: str
    files: Mapping[str, bytes]
    left_out: tuple[str, ...] = ()  # what an operating system or git puts beside the files


def unzipped(data: bytes) -> Zipped:
    """Raises Unusable."""
    if len(data) > MAX_ZIP:
        raise Unusable(f"The zip is larger than {MAX_ZIP // 1_000_000} MB.")
    if data.count(_ENTRY) > MOST_ENTRIES:  # before seconds are spent on reading them
        raise Unusable(f"The zip holds more than {MAX_FILES} files.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files, left_out = _read(archive)
    except Unusable:
        raise
    except (*_DAMAGE, NotImplementedError):
        raise Unusable("This is not a zip file, or it is damaged.") from None
    return _one_skill(files, left_out)


def _read(archive: zipfile.ZipFile) -> tuple[dict[str, bytes], tuple[str, ...]]:
    entries = archive.infolist()
    wanted, left_out = list[zipfile.ZipInfo](), list[str]()
    for entry in entries:
        path = _path(entry)
        if any(part.startswith(".") for part in path.split("/")) or path.startswith("__MACOSX"):
            left_out.append(path)
        elif not entry.is_dir():
            wanted.append(entry)
    if len(wanted) > MAX_FILES:
        raise Unusable(f"The zip holds more than {MAX_FILES} files.")
    _distinct([_path(entry) for entry in wanted])
    if sum(entry.file_size for entry in wanted) > MAX_UNPACKED:
        raise Unusable(f"Unpacked it would be larger than {MAX_UNPACKED // 1_000_000} MB.")
    files, left = dict[str, bytes](), MAX_UNPACKED
    for entry in wanted:
        with archive.open(entry) as stream:
            files[_path(entry)] = stream.read(left + 1)  # what an entry says of its size may be a lie
        left -= len(files[_path(entry)])
        if left < 0:
            raise Unusable(f"Unpacked it would be larger than {MAX_UNPACKED // 1_000_000} MB.")
    return files, tuple(left_out)


def _path(entry: zipfile.ZipInfo) -> str:
    """The entry's path, once nothing speaks against it."""
    name = entry.orig_filename
    parts = name.removesuffix("/").split("/")
    said = "".join(character if character.isprintable() else "?" for character in name)[:80]
    if any(part in {"", ".", ".."} for part in parts) or "\\" in name or _DRIVE.match(name) or not name.isprintable():
        raise Unusable(f"“{said}” is not a plain path inside the folder.")
    if len(name) > LONGEST_PATH or len(parts) > DEEPEST + 1 or any(len(part.encode()) > LONGEST_PART for part in parts):
        raise Unusable(f"“{said}” is too long or too deep.")
    if stat.S_IFMT(entry.external_attr >> 16) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        raise Unusable(f"“{said}” is a link or a device; only files and folders are taken.")
    if entry.flag_bits & 0x1:
        raise Unusable(f"“{said}” is encrypted.")
    if entry.compress_type not in _METHODS:
        raise Unusable(f"“{said}” is packed in a way that is not taken; use an ordinary zip.")
    return name.removesuffix("/")


def _distinct(paths: list[str]) -> None:
    seen: set[str] = set()
    for path in paths:
        if path.casefold() in seen:
            raise Unusable(f"“{path}” stands in it twice.")
        seen.add(path.casefold())
    for path in paths:
        parts = path.casefold().split("/")
        if any("/".join(parts[:length]) in seen for length in range(1, len(parts))):
            raise Unusable(f"“{path}” lies in something that is a file.")


def _one_skill(files: dict[str, bytes], left_out: tuple[str, ...]) -> Zipped:
    if FILE in files:
        return Zipped("", files, left_out)
    tops = {path.partition("/")[0] for path in files}
    top = next(iter(tops), "")
    if len(tops) == 1 and f"{top}/{FILE}" in files:
        return Zipped(top, {path.removeprefix(f"{top}/"): data for path, data in files.items()}, left_out)
    raise Unusable(_lacking(files))


def _lacking(paths: Iterable[str]) -> str:
    skills = [path for path in paths if path.endswith(f"/{FILE}")]
    other = next((path for path in paths if path.rpartition("/")[2].lower() == FILE.lower() and path not in skills), "")
    if len(skills) > 1:
        return f"It holds {len(skills)} skills; zip each folder by itself."
    if skills:
        return f"{skills[0]} lies too deep: it belongs at the top, or in the one folder of the zip."
    if other:
        return f"Its file is called {other}; exactly {FILE} counts."
    return f"There is no {FILE} in it."
