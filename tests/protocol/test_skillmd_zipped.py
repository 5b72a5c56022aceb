"""A zip is a skill's folder or nothing: no path tricks, no links, no bombs, and the reason said."""

import io
import stat
import warnings
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marketplace.protocol.skillmd import zipped as module
from marketplace.protocol.skillmd.zipped import Unusable, unzipped
from tests.zips import SKILL, special, zipped


def test_a_folder_or_its_files_are_one_skill() -> None:
    inside = unzipped(zipped({"demo/SKILL.md": SKILL, "demo/references/a.md": "a"}))
    assert (inside.folder, set(inside.files)) == ("demo", {"SKILL.md", "references/a.md"})
    top = unzipped(zipped({"SKILL.md": SKILL, "references/a.md": b"\xff"}))
    assert (top.folder, top.files["references/a.md"]) == ("", b"\xff")


def test_what_systems_put_beside_is_left_out_and_told() -> None:
    found = unzipped(
        zipped(
            {"demo/SKILL.md": SKILL, "__MACOSX/demo/._SKILL.md": "x", "demo/.git/config": "x", "demo/.DS_Store": "x"}
        )
    )
    assert set(found.files) == {"SKILL.md"}
    assert set(found.left_out) == {"__MACOSX/demo/._SKILL.md", "demo/.git/config", "demo/.DS_Store"}


@pytest.mark.parametrize(
    "name",
    [
        "../evil", "a/../../evil", "/etc/passwd", "a//b", "./a", "a\\b", "..\\evil", "C:/x", "C:x", "a\0b", "a\nb", "\u202ea",
        "/".join("a" * 10), "a" * 301, "é" * 101,
    ],
)  # fmt: skip
def test_a_path_that_could_mean_another_place_refuses_the_whole(name: str) -> None:
    with pytest.raises(Unusable, match=r"not a plain path|too long or too deep"):
        unzipped(special(name, "x", stat.S_IFREG | 0o644))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_links_and_devices_refuse_the_whole(kind: int) -> None:
    with pytest.raises(Unusable, match="is a link or a device"):
        unzipped(special("x", "/etc/passwd", kind | 0o777))


def test_encrypted_and_oddly_packed_files_are_not_taken() -> None:
    with pytest.raises(Unusable, match="is encrypted"):
        unzipped(special("x", "y", stat.S_IFREG | 0o644, flag=1))
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(Unusable, match="use an ordinary zip"):
            unzipped(zipped({"SKILL.md": SKILL, "x": "x" * 100}, method))


def test_size_and_number_are_bounded_also_where_the_entry_lies() -> None:
    bomb = zipped({"SKILL.md": SKILL, "x": b"\0" * 20_000_001})
    assert len(bomb) < 30_000
    with pytest.raises(Unusable, match="Unpacked it would be larger than 20 MB"):
        unzipped(bomb)
    with pytest.raises(Unusable, match="Unpacked"):
        unzipped(zipped({"SKILL.md": SKILL, **{f"{at}": b"\0" * 3_000_000 for at in range(7)}}))
    at = bomb.rindex(b"PK\x01\x02")
    with pytest.raises(Unusable):  # says that it is one byte
        unzipped(bomb[: at + 24] + (1).to_bytes(4, "little") + bomb[at + 28 :])
    with pytest.raises(Unusable, match="more than 500 files"):
        unzipped(zipped({"SKILL.md": SKILL, **{f"{at}.md": "" for at in range(500)}}))
    assert len(unzipped(zipped({"SKILL.md": SKILL, **{f"{at}.md": "" for at in range(499)}})).files) == 500
    with pytest.raises(Unusable, match="more than 500 files"):
        unzipped(zipped({"SKILL.md": SKILL, **{f".git/{at}": "" for at in range(3_000)}}))
    with pytest.raises(Unusable, match="larger than 10 MB"):
        unzipped(b"PK" + b"\0" * 10_000_000)


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A"), ("a", "a/b"), ("SKILL.md", "skill.MD")])
def test_two_entries_for_one_place_refuse_the_whole(names: tuple[str, str]) -> None:
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w") as archive:
        warnings.simplefilter("ignore")
        for name in ("SKILL.md", *names) if "SKILL.md" not in names else names:
            archive.writestr(name, SKILL)
    with pytest.raises(Unusable, match=r"twice|is a file"):
        unzipped(target.getvalue())


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a/SKILL.md", "b/SKILL.md"], "holds 2 skills"),
        (["skills/a/SKILL.md"], "lies too deep"),
        (["demo/Skill.md"], "called demo/Skill.md; exactly SKILL.md counts"),
        (["demo/README.md"], "no SKILL.md"),
        ([], "no SKILL.md"),
    ],
)
def test_a_zip_without_one_skill_says_what_it_holds(names: list[str], words: str) -> None:
    with pytest.raises(Unusable, match=words):
        unzipped(zipped(dict.fromkeys(names, SKILL)))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60), st.integers(0, 400), st.booleans())
def test_nothing_else_is_raised_whatever_the_bytes(noise: bytes, at: int, cut: bool) -> None:
    good = zipped({"demo/SKILL.md": SKILL, "demo/a": "a" * 50})
    data = good[:at] if cut else good[:at] + noise + good[at + len(noise) :]
    for text in (data, noise):
        try:
            found = unzipped(text)
        except Unusable:
            continue
        assert module.FILE in found.files
