"""Zip files made for tests, with whatever somebody could put into one."""

import io
import stat
import zipfile

SKILL = "---\nname: demo\ndescription: Shows how\n---\nDo it.\n"


def zipped(files: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target.getvalue()


def special(name: str, data: str = "", mode: int = stat.S_IFLNK | 0o777, **changes: int) -> bytes:
    """A good skill with one odd entry beside it."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("SKILL.md", SKILL)
        entry = zipfile.ZipInfo(name.replace("\0", "\x01"))  # the library would cut it there
        entry.external_attr = mode << 16
        archive.writestr(entry, data)
    raw = target.getvalue().replace(b"\x01b", b"\0b") if "\0" in name else target.getvalue()
    if "flag" in changes:  # in the entry's central record, where readers look
        at = raw.rindex(b"PK\x01\x02")
        raw = raw[: at + 8] + bytes([raw[at + 8] | changes["flag"]]) + raw[at + 9 :]
    return raw
