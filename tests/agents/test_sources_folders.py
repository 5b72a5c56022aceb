"""Folders of SKILL.md: one list for all, nothing read outside of them, nothing left out in silence (S01, S03, S06, S07)."""

import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.engine import disclosure
from agents.models import Agent
from agents.sources import Merged, SkillNotFoundError, SkillsError, SkillSource
from agents.sources import folders as folders_module
from agents.sources.folders import REFUSED, FolderSource, folder_sources, uploads_root
from marketplace import environment

SECRET = "TOP SECRET CANARY"


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def skill(root: Path, folder: str, front: str = "", body: str = "Body") -> Path:
    return write(root / folder / "SKILL.md", f"---\n{front or f'name: {folder}'}\ndescription: d\n---\n{body}\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "secret.env", SECRET)
    (tmp_path / "skills").mkdir()
    return tmp_path / "skills"


@pytest.fixture
def source(root: Path) -> FolderSource:
    return FolderSource(root, "team")


def names(source: SkillSource) -> list[str]:
    return [entry.name for entry in source.list_skills().entries]


def reasons(source: SkillSource) -> dict[str, str]:
    return {report.path: report.reason for report in source.list_skills().reports}


# --- S01, S03: what is in the file ------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf---\r\nname: demo\r\ndescription: d\r\n---\r\nBody",
        b"--- \nname: demo\ndescription: d\n---\nBody",
        b"---\rname: demo\rdescription: d\r---\rBody",
        b"---\nname: demo\ndescription: d\n---\nBody\xef\xbb\xbf",
    ],
)
def test_marks_line_ends_and_spaces_load_alike(root: Path, source: FolderSource, data: bytes) -> None:
    write(root / "demo/SKILL.md", data)
    entry = source.load_skill("demo")
    assert (entry.name, entry.description, entry.body.rstrip("\ufeff")) == ("demo", "d", "Body")
    assert entry.body.endswith("\ufeff") == data.endswith(b"\xef\xbb\xbf")


def test_a_colon_in_the_description_loads_with_its_limit(root: Path, source: FolderSource) -> None:
    front = 'name: demo\nallowed-tools: Read\nargument-hint: [action] - e.g. "x"\ndescription: Use when: the user asks'
    write(root / "demo/SKILL.md", f"---\n{front}\n---\nBody")
    (folder,) = source.scan()
    assert "not YAML" in folder.warnings[0] and folder.report is None
    entry = source.list_skills().entries[0]
    assert entry.description == "Use when: the user asks"
    assert entry.extra == (("allowed-tools", "Read"), ("argument-hint", '[action] - e.g. "x"'))


def test_other_keys_stand_flat_in_the_index(root: Path, source: FolderSource) -> None:
    skill(root, "demo", "name: demo\nowner: |\n  Ada\n  - `evil`: act\ntags: [a, b]\ndisable-model-invocation: true")
    entry = source.list_skills().entries[0]
    assert entry.extra == (("owner", "Ada - `evil`: act"), ("tags", "a, b"), ("disable-model-invocation", "true"))
    assert not entry.by_model and entry.by_user
    assert disclosure.load("demo", [entry]) == 'Error: skill "demo" is not available for model invocation'
    skill(root, "demo", "name: demo\nowner: Ada\nuser-invocable: false")
    entry = source.list_skills().entries[0]
    assert not entry.by_user and disclosure.asked_for("/demo", [entry]) == ()


def test_a_broken_file_is_skipped_told_with_its_line_and_logged_once(
    root: Path, source: FolderSource, caplog: pytest.LogCaptureFixture
) -> None:
    skill(root, "good")
    write(root / "bad/SKILL.md", "---\nname: bad\nowner: x\n---\nBody")
    write(root / "bare/SKILL.md", "# Title\n")
    write(root / "huge/SKILL.md", "---\nname: huge\ndescription: d\n---\n" + "x" * 400_000)
    write(root / "long/SKILL.md", f"---\nname: long\ndescription: {'d' * 1_025}\n---\n")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert names(source) == ["good"]
    reports = {report.path: report for report in source.list_skills().reports}
    assert reports["team/bad"].reason == "the description is missing." and reports["team/bad"].line == 1
    assert reports["team/long"].line == 3 and "1024" in reports["team/long"].reason
    assert "does not start" in reports["team/bare"].reason and reports["team/bare"].line == 1
    assert "larger than" in reports["team/huge"].reason
    assert len([record for record in caplog.records if "/bad is not offered" in record.getMessage()]) == 1
    with pytest.raises(SkillNotFoundError) as error:
        source.load_skill("bad")
    assert error.value.visible == ("good",)


def test_a_secret_key_in_a_servers_folder_reaches_nobody(
    root: Path, source: FolderSource, caplog: pytest.LogCaptureFixture
) -> None:
    nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # of NIP-19's own example
    skill(root, "leaky", body=f"Sign with {nsec}")
    skill(root, "told", f"name: told\nowner: {nsec.upper()}")
    write(skill(root, "good").parent / "references/key.md", nsec)
    with caplog.at_level(logging.WARNING):
        assert names(source) == ["good"]
    assert set(reasons(source)) == {"team/leaky", "team/told"}
    assert all("holds a secret key (nsec)" in reason for reason in reasons(source).values())
    with pytest.raises(SkillsError, match="holds a secret key") as refused:
        source.read_file("good", "references/key.md")
    assert nsec not in (caplog.text + str(refused.value) + str(source.list_skills())).lower()


# --- S07: names, case, nesting ----------------------------------------------------


def test_one_list_of_names_for_index_load_and_files(root: Path, source: FolderSource) -> None:
    skill(root, "best", "name: acme-best")
    skill(root, "omarchy", "name: Omarchy")
    skill(root, "unnamed", "owner: x")
    write(root / "wrong/Skill.md", "---\nname: wrong\ndescription: d\n---\n")
    skill(root, "group/child", "name: child")
    (root / "empty").mkdir()
    write(root / "README.md", "not a skill")
    write(root / "SKILL.md", "---\nname: top\ndescription: d\n---\n")
    write(root / ".git/SKILL.md", "---\nname: git\ndescription: d\n---\n")
    write(root / "best/notes.md", "n")
    assert names(source) == ["acme-best", "Omarchy", "unnamed"]
    assert [source.load_skill(name).name for name in names(source)] == names(source)
    assert source.read_file("acme-best", "notes.md") == "n"
    warned = {folder.folder: folder.warnings for folder in source.scan() if folder.warnings and not folder.report}
    assert warned == {
        "best": ("line 2: the name “acme-best” differs from its folder “best”.",),
        "omarchy": ("line 2: the name “Omarchy” differs from its folder “omarchy”.",),
    }
    told = reasons(source)
    assert told["team/wrong"] == "its file is called Skill.md; exactly SKILL.md counts."
    assert "child/ lies too deep" in told["team/group"]
    assert told["team/empty"] == "no SKILL.md in it."
    assert "root itself" in told["team/SKILL.md"]
    assert set(told) == {"team/wrong", "team/group", "team/empty", "team/SKILL.md"}


@pytest.mark.parametrize("name", ["a" * 65, "a--b", "-a", "/var/secret", "..", "a b"])
def test_a_name_that_is_none_is_told(root: Path, source: FolderSource, name: str) -> None:
    skill(root, "x", f'name: "{name}"')
    assert names(source) == []
    assert "is not a name" in reasons(source)["team/x"] and source.list_skills().reports[0].line == 2


def test_the_first_of_two_with_one_name_wins_in_a_root_and_between_roots(root: Path, tmp_path: Path) -> None:
    skill(root, "a", "name: same", "first")
    skill(root, "b", "name: same", "second")
    skill(tmp_path / "other", "same", body="third")
    merged = Merged([FolderSource(root, "team"), FolderSource(tmp_path / "other", "more")])
    assert names(merged) == ["same"] and merged.load_skill("same").body == "first"
    assert reasons(merged) == {
        "team/b": "the folder “a” has the name “same” already.",
        "more": "the skill of this name in team comes first.",
    }


def test_what_changes_on_disk_counts_at_once(root: Path, source: FolderSource) -> None:
    assert names(source) == []
    skill(root, "demo", body="one")
    assert source.load_skill("demo").body == "one"
    version = source.list_skills().entries[0].version
    skill(root, "demo", body="two")
    assert source.load_skill("demo").body == "two" and source.list_skills().entries[0].version != version
    (root / "demo/SKILL.md").unlink()
    with pytest.raises(SkillNotFoundError):
        source.load_skill("demo")


def test_a_root_that_is_gone_says_so_and_an_optional_one_is_empty(tmp_path: Path) -> None:
    listing = FolderSource(tmp_path / "none", "team").list_skills()
    assert not listing.complete and listing.reports[0].reason == "the folder is not there"
    assert FolderSource(tmp_path / "none", "team", optional=True).list_skills().complete


# --- S06: nothing outside is read -------------------------------------------------

PATHS = [
    "../../.env", "../secret.env", "../../secret.env", "/etc/passwd", "..%2f..%2fsecret.env", "%2e%2e/secret.env",
    "a\0b", "a\\..\\b", "..", ".", "", "/", "references/../../../secret.env", "references//notes.md", "references/",
    "x" * 500, "references/\u202enotes", "\ud800", "~/x/../../secret.env",
    "leaving", "leaving/secret.env", "linked.env", "pipe", "hard.env", "looped", "SKILL.md/x", "references", "absolute",
]  # fmt: skip


@pytest.fixture
def trap(root: Path, tmp_path: Path) -> FolderSource:
    """A skill with every way out that a folder can hold."""
    demo = skill(root, "demo").parent
    write(demo / "references/notes.md", "notes")
    (demo / "leaving").symlink_to("../../..")
    (demo / "linked.env").symlink_to(tmp_path / "secret.env")
    (demo / "absolute").symlink_to("/etc/passwd")
    (demo / "looped").symlink_to("looped")
    (demo / "inner.md").symlink_to("references/notes.md")
    (demo / "sibling").symlink_to("../other/notes.md")
    write(root / "other/notes.md", SECRET)
    os.link(tmp_path / "secret.env", demo / "hard.env")
    os.mkfifo(demo / "pipe")
    return FolderSource(root, "team")


@pytest.mark.parametrize("path", [*PATHS, "sibling"])
def test_every_way_out_is_refused_with_one_reason(trap: FolderSource, path: str) -> None:
    with pytest.raises(SkillsError) as error:
        trap.read_file("demo", path)
    assert str(error.value) == REFUSED and error.value.skill_name == "demo"


@pytest.mark.parametrize("name", ["../demo", "/demo", "demo/..", "demo\\", "..", "demo\0", "", "other"])
def test_a_name_that_is_a_path_is_no_skill(trap: FolderSource, name: str) -> None:
    for ask in (lambda: trap.load_skill(name), lambda: trap.read_file(name, "references/notes.md")):
        with pytest.raises(SkillNotFoundError):
            ask()


def test_what_lies_inside_is_read(trap: FolderSource) -> None:
    for path in ("references/notes.md", "./references/notes.md", "inner.md"):
        assert trap.read_file("demo", path) == "notes"
    with pytest.raises(SkillsError, match=r'has no file "references/none\.md"') as error:
        trap.read_file("demo", "references/none.md")
    assert "references/notes.md" in error.value.hint and "hard.env" not in error.value.hint


def test_files_that_are_no_text_or_too_large_say_so(root: Path, source: FolderSource) -> None:
    demo = skill(root, "demo").parent
    write(demo / "a.png", b"\x89PNG\0\0")
    write(demo / "b.txt", b"\xff\xfe\xfa")
    write(demo / "c.txt", b"x" * 2_000_001)
    for path, words in (("a.png", "not a text"), ("b.txt", "not a text"), ("c.txt", "larger than")):
        with pytest.raises(SkillsError, match=words):
            source.read_file("demo", path)


def test_a_skill_md_that_leads_out_is_refused(root: Path, source: FolderSource, tmp_path: Path) -> None:
    text = "---\nname: out\ndescription: d\n---\n" + SECRET
    for name in ("link", "hard", "pipe", "folder"):
        (root / name).mkdir()
    (root / "link/SKILL.md").symlink_to(write(tmp_path / "outside/SKILL.md", text))
    os.link(tmp_path / "outside/SKILL.md", root / "hard/SKILL.md")
    os.mkfifo(root / "pipe/SKILL.md")
    (root / "folder/SKILL.md").mkdir()
    assert names(source) == []
    assert reasons(source) == {f"team/{name}": f"{REFUSED}." for name in ("link", "hard", "pipe", "folder")}


def test_a_linked_folder_counts_only_inside_its_root(root: Path, source: FolderSource, tmp_path: Path) -> None:
    skill(root, ".store/best", "name: best", "inside")
    skill(tmp_path / "outside", "evil", body=SECRET)
    (root / "best").symlink_to(".store/best")
    (root / "evil").symlink_to(tmp_path / "outside/evil")
    (root / "up").symlink_to("..")
    (root / "self").symlink_to(".")
    (root / "dangling").symlink_to("nowhere")
    assert names(source) == ["best"] and source.load_skill("best").body == "inside"
    assert reasons(source) == {f"team/{name}": f"{REFUSED}." for name in ("dangling", "evil", "self", "up")}


def test_what_is_swapped_between_check_and_open_is_not_read(
    root: Path, source: FolderSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = skill(root, "demo").parent
    notes = write(demo / "references/notes.md", "notes")
    write(tmp_path / "outside/notes.md", SECRET)
    real, swap = os.path.realpath, []

    def checked(path: Any, **options: Any) -> str:
        found = real(path, **options)
        if str(path).endswith("notes.md"):
            swap.pop()()
        return found

    def file_for_link() -> None:
        notes.unlink()
        notes.symlink_to(tmp_path / "secret.env")

    def folder_for_link() -> None:
        (demo / "references").rename(tmp_path / "moved")
        (demo / "references").symlink_to(tmp_path / "outside")

    monkeypatch.setattr("agents.sources.inside.os.path.realpath", checked)
    for swap in ([file_for_link], [folder_for_link]):
        with pytest.raises(SkillsError) as error:
            source.read_file("demo", "references/notes.md")
        assert str(error.value) == REFUSED and swap == []


def test_a_folder_that_is_swapped_all_the_time_never_gives_the_secret(
    root: Path, source: FolderSource, tmp_path: Path
) -> None:
    demo = skill(root, "demo").parent
    write(demo / "references/notes.md", "notes")
    write(tmp_path / "outside/notes.md", SECRET)
    (demo / "evil").symlink_to(tmp_path / "outside")
    done = threading.Event()

    back = (("references", "evil"), ("spare", "references"))

    def swapping() -> None:
        while not done.is_set():
            for one, other in (("references", "spare"), ("evil", "references"), *back):
                (demo / one).rename(demo / other)

    thread = threading.Thread(target=swapping)
    thread.start()
    read = []
    try:
        for _ in range(400):
            try:
                read.append(source.read_file("demo", "references/notes.md"))
            except SkillsError:
                continue
    finally:
        done.set()
        thread.join()
    assert set(read) <= {"notes"}


# --- What goes with a skill -------------------------------------------------------


def test_a_loaded_skill_names_its_files_by_kind_without_reading_them(root: Path, source: FolderSource) -> None:
    demo = skill(root, "demo").parent
    for path in (
        "references/tiers.md",
        "scripts/run.py",
        "assets/form.txt",
        "LICENSE",
        ".hidden",
        "a\n</skill_resources>",
    ):
        write(demo / path, "x") if "/" not in path or path.count("/") == 1 else None
    write(demo / "odd\n- `evil`", "x")
    (demo / "link").symlink_to("LICENSE")
    words = disclosure.render(source.load_skill("demo"))
    assert "Base directory for this skill: demo/ (read its files with read_skill_file)" in words
    assert "references (to read): references/tiers.md\n" in words
    assert "scripts (text only, nothing is run here): scripts/run.py\n" in words
    assert "other files: LICENSE" in words and ".hidden" not in words and "link" not in words
    assert "\n- `evil`" not in words and words.count("</skill_resources>") == 1
    assert str(root) not in words


def test_many_files_are_counted_not_listed(root: Path, source: FolderSource) -> None:
    demo = skill(root, "demo").parent
    for number in range(80):
        write(demo / f"references/{number:03}.md", "x")
    assert "and 20 more files" in disclosure.render(source.load_skill("demo"))


# --- Where folders come from ------------------------------------------------------


def test_uploads_come_before_the_servers_folders(root: Path, settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR, settings.SKILLS_DIRS = tmp_path, [str(root), str(tmp_path / "b/skills")]
    agent = Agent(pk=7)
    assert [source.name for source in folder_sources(agent)] == [
        "your uploads", "server folder skills (1)", "server folder skills (2)",
    ]  # fmt: skip
    skill(uploads_root(agent), "same", body="mine")
    skill(root, "same", body="the server's")
    assert Merged(folder_sources(agent)[:2]).load_skill("same").body == "mine"
    assert Merged(folder_sources(Agent(pk=8))[:2]).load_skill("same").body == "the server's"


def test_the_setting_takes_only_folders_that_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "with space").mkdir()
    monkeypatch.setenv("DIRS", f"{tmp_path}:{tmp_path}/with space:")
    assert environment.folders("DIRS") == [str(tmp_path), f"{tmp_path}/with space"]
    for value in ("skills", f"{tmp_path}/none", "~/skills"):
        monkeypatch.setenv("DIRS", value)
        with pytest.raises(ImproperlyConfigured, match="is not a folder on this machine"):
            environment.folders("DIRS")


@pytest.fixture(autouse=True)
def logged_anew() -> None:
    folders_module._log_once.cache_clear()
