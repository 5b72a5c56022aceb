"""Keeps and removes an owner's uploaded skill folders: written aside, then swapped in at once, never run.

`<root>/<name>` is a link to `<root>/.store/<token>`: replacing a link is one step, and a half-written folder is never
the skill's.
"""

import hashlib
import secrets
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from django.db import transaction

from agents.models import Agent, SkillUpload
from agents.sources.folders import readable, uploads_root
from marketplace.protocol import nip19
from marketplace.protocol.skillmd import MAX_FILE, SkillFile, read_skillmd
from marketplace.protocol.skillmd.zipped import FILE, Unusable, Zipped, unzipped

MOST_UPLOADS = 50  # of one agent
STORE = ".store"
LONGEST_NAME = 255  # bytes of a name on disk


def keep(agent: Agent, data: bytes, now: datetime) -> tuple[SkillUpload, Zipped]:
    """Unpack a zip in place of what the agent had under the skill's name. Raises Unusable."""
    zipped = unzipped(data)
    _without_secrets(zipped)
    name = _skill(zipped).name
    root = uploads_root(agent)
    store = root / STORE
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = secrets.token_hex(8)
    values = {
        "digest": hashlib.sha256(data).hexdigest(),
        "size": sum(map(len, zipped.files.values())),
        "files": len(zipped.files),
        "uploaded_at": now,
    }
    try:
        _write(store / f"{token}.part", zipped.files)
        with transaction.atomic():
            Agent.objects.select_for_update().get(pk=agent.pk)  # one at a time per agent
            others = SkillUpload.objects.filter(agent=agent).exclude(name=name).count()
            if others >= MOST_UPLOADS:
                raise Unusable(f"{agent.name} has {MOST_UPLOADS} folders already; remove one first.")
            (store / f"{token}.part").rename(store / token)
            row, _ = SkillUpload.objects.update_or_create(agent=agent, name=name, defaults=values)
            _point(root / name, Path(STORE, token))
    finally:
        shutil.rmtree(store / f"{token}.part", ignore_errors=True)
    _sweep(root)
    return row, zipped


def remove(agent: Agent, name: str) -> bool:
    """Whether there was such a folder among the agent's uploads."""
    if len(name.encode()) > LONGEST_NAME:
        return False
    root = uploads_root(agent)
    with transaction.atomic():
        Agent.objects.select_for_update().get(pk=agent.pk)
        gone, _ = SkillUpload.objects.filter(agent=agent, name=name).delete()
        link = root / name
        linked = link.parent == root and not name.startswith(".") and link.is_symlink()
        if linked:
            link.unlink()
    _sweep(root)
    return bool(gone) or linked


def _without_secrets(zipped: Zipped) -> None:
    """Models read these files, and pages show them. Raises Unusable."""
    if any(map(nip19.holds_nsec, [zipped.folder, *zipped.files, *zipped.left_out])):
        raise Unusable("A name in it holds a secret key (nsec). Nothing was kept; treat that key as leaked.")
    for path, data in zipped.files.items():
        if nip19.holds_nsec(readable(data)):
            raise Unusable(f"“{path}” in it holds a secret key (nsec). Nothing was kept; treat that key as leaked.")


def _skill(zipped: Zipped) -> SkillFile:
    data = zipped.files[FILE]
    if len(data) > MAX_FILE:
        raise Unusable(f"{FILE} is larger than {MAX_FILE:,} bytes.")
    file = read_skillmd(data, zipped.folder)
    if not file.usable:
        raise Unusable(" ".join(f"{FILE}, {problem.message}" for problem in file.problems if problem.level == "error"))
    if len(file.name.encode()) > LONGEST_NAME:
        raise Unusable("The skill's name has too many bytes for a folder.")
    return file


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Plain files, readable for this server alone; nothing in them can be run."""
    folder.mkdir(mode=0o700)
    for path, data in files.items():
        place = folder / path
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.touch(mode=0o600, exist_ok=False)
        place.write_bytes(data)


def _point(link: Path, target: Path) -> None:
    """Make the link, or turn it to another target, in one step."""
    fresh = link.with_name(f"{STORE}-{secrets.token_hex(8)}")
    fresh.symlink_to(target)
    fresh.replace(link)


def _sweep(root: Path) -> None:
    """Take away what no link leads to: the version before, or what a crash left."""
    if not (root / STORE).is_dir():
        return
    used = {link.readlink().name for link in root.iterdir() if link.is_symlink()}
    for folder in (root / STORE).iterdir():
        if folder.name not in used and not folder.name.endswith(".part"):
            shutil.rmtree(folder, ignore_errors=True)
