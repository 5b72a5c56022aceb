"""Skills in folders as an owner sees them: uploaded as a zip, listed with what is wrong, removed for good."""

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents.models import Agent, SkillUpload
from agents.sources import SkillNotFoundError, sources_for, uploads
from agents.sources.folders import FolderSource, uploads_root
from marketplace.models import User
from tests.agents import rows
from tests.zips import SKILL, special, zipped

pytestmark = pytest.mark.django_db
PAGE = "/agents/scout/folders/"
NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # of NIP-19's own example


@pytest.fixture
def alice(client: Client) -> User:
    user = rows.owner()
    client.force_login(user)
    return user


@pytest.fixture
def own(alice: User, settings: Any, tmp_path: Path) -> Agent:
    settings.VAR_DIR = tmp_path / "var"
    return rows.agent(alice, "Scout")


def sent(data: bytes, name: str = "demo.zip") -> dict[str, Any]:
    return {"archive": SimpleUploadedFile(name, data, "application/zip")}


def skill(body: str = "Do it.", name: str = "demo") -> str:
    return f"---\nname: {name}\ndescription: Shows how\n---\n{body}\n"


def test_an_uploaded_folder_can_be_loaded_and_read(own: Agent, client: Client) -> None:
    answer = client.post(
        PAGE, sent(zipped({"demo/SKILL.md": SKILL, "demo/references/a.md": "alpha", "demo/.env": "x"}))
    )
    assert answer["Location"] == PAGE
    sources = sources_for(own)
    assert sources.load_skill("demo").body == "Do it."
    assert sources.read_file("demo", "references/a.md") == "alpha"
    row = SkillUpload.objects.get()
    assert (row.agent, row.name, row.files, len(row.digest)) == (own, "demo", 2, 64)
    page = client.get(PAGE).content.decode()
    assert "Left out: demo/.env" in page and "Shows how" in page and "references/a.md" in page
    assert "Remove its 2 files for good" in page


def test_files_are_for_this_server_alone_and_nothing_can_be_run(own: Agent, client: Client) -> None:
    client.post(PAGE, sent(zipped({"SKILL.md": SKILL, "scripts/run.sh": "#!/bin/sh\ntouch /tmp/ran"})))
    for top, folders, files in os.walk(uploads_root(own) / ".store"):
        for name in folders:
            assert stat.S_IMODE(Path(top, name).stat().st_mode) == 0o700
        for name in files:
            assert stat.S_IMODE(Path(top, name).stat().st_mode) == 0o600


def test_a_second_upload_replaces_the_first_in_one_step(own: Agent, client: Client) -> None:
    client.post(PAGE, sent(zipped({"SKILL.md": skill("one"), "old.md": "old"})))
    client.post(PAGE, sent(zipped({"SKILL.md": skill("two")})))
    entry = sources_for(own).load_skill("demo")
    assert entry.body == "two" and "old.md" not in entry.resources.where
    assert SkillUpload.objects.count() == 1
    assert len(list((uploads_root(own) / ".store").iterdir())) == 1


def test_a_refused_upload_leaves_the_last_one_as_it_was(own: Agent, client: Client) -> None:
    client.post(PAGE, sent(zipped({"SKILL.md": skill("one")})))
    for data, words in (
        (b"no zip", "not a zip file"),
        (special("../evil", "x", stat.S_IFREG | 0o644), "not a plain path"),
        (special("evil", "/etc/passwd"), "is a link or a device"),
        (zipped({"SKILL.md": "---\nname: demo\n---\n"}), "line 1: the description is missing"),
        (zipped({"SKILL.md": skill(name="a--b")}), "is not a name"),
        (zipped({"SKILL.md": "---\nname: demo\ndescription: d\n---\n" + "x" * 400_000}), "larger than 400,000 bytes"),
        (zipped({"SKILL.md": skill(name="\U00010330" * 64)}), "too many bytes"),
        (b"", "empty"),
    ):
        answer = client.post(PAGE, sent(data))
        assert answer.status_code == 422 and words in answer.content.decode()
        assert sources_for(own).load_skill("demo").body == "one"
    assert client.post(PAGE, {}).status_code == 422
    root = uploads_root(own)
    assert {path.name for path in root.iterdir()} == {".store", "demo"} and not (root.parent / "evil").exists()
    assert len(list((root / ".store").iterdir())) == 1


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"demo/SKILL.md": skill(f"Sign with {NSEC}")}, "“SKILL.md” in it holds a secret key"),
        ({"demo/SKILL.md": f"---\nname: demo\ndescription: {NSEC}\n---\nx"}, "“SKILL.md” in it holds a secret key"),
        ({"demo/SKILL.md": SKILL, "demo/references/a.md": NSEC.upper()}, "“references/a.md” in it holds"),
        ({"demo/SKILL.md": SKILL, "demo/assets/key.bin": NSEC.encode("utf-16")}, "“assets/key.bin” in it holds"),
        ({"demo/SKILL.md": SKILL, f"demo/{NSEC}.md": "x"}, "A name in it holds a secret key"),
        ({f"{NSEC}/SKILL.md": SKILL}, "A name in it holds a secret key"),
        ({"demo/SKILL.md": SKILL, f"demo/.{NSEC}": "x"}, "A name in it holds a secret key"),
    ],
    ids=[
        "its words",
        "its description",
        "another file",
        "in two bytes a letter",
        "a name",
        "its folder",
        "a name left out",
    ],
)
def test_a_secret_key_in_any_file_is_refused_and_nothing_is_kept(
    own: Agent, client: Client, files: dict[str, Any], words: str
) -> None:
    answer = client.post(PAGE, sent(zipped(files)))
    assert answer.status_code == 422 and words in answer.content.decode()
    assert NSEC not in answer.content.decode().lower() and not SkillUpload.objects.exists()
    assert not list(uploads_root(own).rglob("*.md"))


def test_a_folder_may_speak_of_secret_keys(own: Agent, client: Client) -> None:
    assert client.post(PAGE, sent(zipped({"SKILL.md": skill("Never show nsec1… to anyone.")}))).status_code == 302
    assert "nsec1…" in sources_for(own).load_skill("demo").body


def test_a_zip_that_is_too_large_is_refused_beside_its_field_or_before_it_is_kept(own: Agent, client: Client) -> None:
    answer = client.post(PAGE, sent(b"PK" + b"\0" * 10_000_000))
    assert answer.status_code == 422 and "larger than 10 MB" in answer.content.decode()
    answer = client.post(PAGE, sent(b"PK" + b"\0" * 32_000_000))
    assert answer.status_code == 400 and "larger than this site takes" in answer.content.decode()


def test_an_agent_has_only_so_many(own: Agent, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_UPLOADS", 2)
    for name in ("a", "b"):
        client.post(PAGE, sent(zipped({"SKILL.md": skill(name=name)})))
    answer = client.post(PAGE, sent(zipped({"SKILL.md": skill(name="c")})))
    assert answer.status_code == 422 and "remove one first" in answer.content.decode()
    assert client.post(PAGE, sent(zipped({"SKILL.md": skill("new", "b")}))).status_code == 302
    assert sources_for(own).load_skill("b").body == "new"


@pytest.mark.django_db(transaction=True)
def test_uploads_at_once_leave_one_whole_folder(own: Agent) -> None:
    archives = [zipped({"SKILL.md": skill(f"{at}"), **{f"{at}-{n}.md": "x" for n in range(20)}}) for at in range(4)]

    def keep(data: bytes) -> None:
        try:
            uploads.keep(Agent.objects.get(pk=own.pk), data, timezone.now())
        finally:
            connection.close()

    threads = [threading.Thread(target=keep, args=(data,)) for data in archives]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    source = FolderSource(uploads_root(own), "uploads")
    (folder,) = source.scan()
    at = source.load_skill("demo").body
    assert source.files(folder) == sorted(f"{at}-{n}.md" for n in range(20))
    assert len(list((uploads_root(own) / ".store").iterdir())) == 1 and SkillUpload.objects.count() == 1


def test_removing_takes_the_files_away(own: Agent, client: Client) -> None:
    client.post(PAGE, sent(zipped({"SKILL.md": SKILL})))
    assert client.post(f"{PAGE}remove/", {"name": "demo"})["Location"] == PAGE
    assert not SkillUpload.objects.exists() and list((uploads_root(own) / ".store").iterdir()) == []
    with pytest.raises(SkillNotFoundError):
        sources_for(own).load_skill("demo")
    assert b"None yet" in client.get(PAGE).content


@pytest.mark.parametrize(
    "name",
    ["", "demo", "../7", ".store", "..", "/etc", "a\0b", "x" * 10_000, "demo/../demo"],
    ids=lambda name: ascii(name)[:20],
)
def test_removing_what_is_not_there_touches_nothing(own: Agent, client: Client, name: str) -> None:
    client.post(PAGE, sent(zipped({"SKILL.md": skill(name="kept")})))
    assert client.post(f"{PAGE}remove/", {"name": name}).status_code == 404
    assert sources_for(own).load_skill("kept").body == "Do it."


def test_the_page_tells_what_is_wrong_with_each_folder(
    own: Agent, client: Client, settings: Any, tmp_path: Path
) -> None:
    team = tmp_path / "team"
    for path, text in {
        "good/SKILL.md": "---\nname: Good\ndescription: Use <b>me</b>\nowner: \u202eAda\n---\nBody",
        "quiet/SKILL.md": "---\nname: quiet\ndescription: d\ndisable-model-invocation: true\n---\nBody",
        "bad/SKILL.md": "---\nname: bad\nowner: x\n---\n",
        "wrong/skill.md": SKILL,
        "demo/SKILL.md": SKILL,
    }.items():
        (team / path).parent.mkdir(parents=True)
        (team / path).write_text(text)
    (team / "out").symlink_to("/etc")
    settings.SKILLS_DIRS = [str(team), str(tmp_path / "gone")]
    client.post(PAGE, sent(zipped({"SKILL.md": SKILL})))
    page = client.get(PAGE).content.decode()
    for words in (
        "Server folder team",
        "Use &lt;b&gt;me&lt;/b&gt;",
        "the name “Good” differs from its folder “good”",
        "SKILL.md, line 1: the description is missing.",
        "its file is called skill.md; exactly SKILL.md counts.",
        "the path is not a file inside this skill&#x27;s folder.",
        "Not offered: the skill of this name in your uploads comes first.",
        'Only you may ask for it, as <span class="mono">/quiet</span>',
        "U+202E",
        "Not read now: the folder is not there.",
    ):
        assert words in page, words
    assert "\u202e" not in page and str(tmp_path) not in page


def test_the_page_says_which_tools_are_lacking(own: Agent, client: Client) -> None:
    assert "no model sees these skills" in client.get(PAGE).content.decode()
    own.grants = ["skill"]
    own.save()
    assert "no model can read the files" in client.get(PAGE).content.decode()
    own.grants = ["read_skill_file", "skill"]
    own.save()
    assert "Grant it" not in client.get(PAGE).content.decode()


def test_another_owner_sees_and_changes_nothing(own: Agent, client: Client) -> None:
    client.post(PAGE, sent(zipped({"SKILL.md": SKILL})))
    client.force_login(User.objects.create_user("charlie"))
    charlies = rows.agent(User.objects.get(username="charlie"), "Other")
    assert client.get(PAGE).status_code == 404
    assert client.post(PAGE, sent(zipped({"SKILL.md": SKILL}))).status_code == 404
    assert client.post(f"{PAGE}remove/", {"name": "demo"}).status_code == 404
    assert client.post("/agents/other/folders/remove/", {"name": "demo"}).status_code == 404
    assert sources_for(charlies).list_skills().entries == ()
    client.logout()
    assert client.get(PAGE).status_code == 302
    assert client.post(f"{PAGE}remove/", {"name": "demo"}).status_code == 302
    assert sources_for(own).load_skill("demo").body == "Do it."


def test_the_page_takes_few_queries_however_many_folders(
    own: Agent, client: Client, django_assert_max_num_queries: Any
) -> None:
    for at in range(8):
        client.post(PAGE, sent(zipped({"SKILL.md": skill(name=f"s{at}")})))
    with django_assert_max_num_queries(10):
        assert client.get(PAGE).content.count(b"Remove its") == 8
