"""The vault: texts sealed with a key in a file outside the database, apart because a backup must never hold both."""

import os
import tempfile
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.views.decorators.debug import sensitive_variables


class VaultError(Exception):
    """A sealed text cannot be opened; the words say what to restore and hold nothing secret."""


@sensitive_variables("text")
def seal(text: str) -> str:
    """The text, readable only with the vault key; the key file is made at first use."""
    return _vault(create=True).encrypt(text.encode()).decode()


@sensitive_variables("opened")
def unseal(sealed: str) -> str:
    """The text again. Raises VaultError when the key file is missing or is not the one it was sealed with."""
    try:
        opened = _vault(create=False).decrypt(sealed.encode())
    except InvalidToken:
        raise VaultError(
            f"The vault key in {_path()} does not open this: restore the file it was sealed with."
        ) from None
    return opened.decode()


def sealed_by_newest(sealed: str) -> bool:
    """Whether the first key of the file opens it, so that the older ones are not needed for it."""
    try:
        Fernet(_keys()[0]).decrypt(sealed.encode())
    except InvalidToken:
        return False
    return True


def rotate(sealed: str) -> str:
    """The same text under the newest key. Raises VaultError when no key opens it."""
    try:
        return _vault(create=False).rotate(sealed.encode()).decode()
    except InvalidToken:
        raise VaultError("A sealed text opens with none of the vault's keys; nothing was dropped.") from None


def add_key() -> None:
    """A new first key; the older ones stay below it, and still open what they sealed."""
    _write([Fernet.generate_key(), *_keys()])


def drop_old_keys() -> int:
    """Only the first key stays; how many were dropped. Call it when everything is sealed by the newest."""
    keys = _keys()
    _write(keys[:1])
    return len(keys) - 1


def _path() -> Path:
    return Path(settings.VAULT_KEY_FILE)


def _vault(create: bool) -> MultiFernet:
    path = _path()
    if not path.exists():
        # Opening never makes a file: a fresh key opens nothing and would hide that the old one is lost.
        if not create:
            raise VaultError(f"The vault key file {path} is missing: restore it from your backup.")
        _make(path)
    # By the file's identity, so that a rotation reaches running processes at their next use.
    stat = path.stat()
    return _read(path, stat.st_mtime_ns, stat.st_ino)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int, inode: int) -> MultiFernet:
    try:
        return MultiFernet([Fernet(line) for line in path.read_bytes().split()])
    except ValueError:
        raise VaultError(f"{path} is not a vault key file: restore it from your backup.") from None


@sensitive_variables()
def _keys() -> list[bytes]:
    return _path().read_bytes().split()


def _make(path: Path) -> None:
    """Of two first starts at once one wins, and both read its key."""
    temporary = _temporary(path, [Fernet.generate_key()])
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def _write(keys: list[bytes]) -> None:
    """Whole or not at all: a half-written file would lose every key."""
    _temporary(_path(), keys).replace(_path())


@sensitive_variables()
def _temporary(path: Path, keys: list[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".vault-")  # mkstemp makes it mode 600
    with os.fdopen(handle, "wb") as file:
        file.write(b"\n".join(keys) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return Path(name)
