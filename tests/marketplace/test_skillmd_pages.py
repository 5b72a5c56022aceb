"""SKILL.md in and out of the site: any skill one may see leaves as a file, a file comes in as a draft, nothing is lost."""

import json
from pathlib import Path
from typing import Any

import pytest
import skills_ref
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from marketplace import ingest, signing
from marketplace.forms import SkillForm
from marketplace.models import ArchivedEvent, Draft, Identity, User
from marketplace.protocol import kinds, nip19
from marketplace.protocol.events import Address, Event
from marketplace.protocol.events import Draft as Unsigned
from marketplace.protocol.skillmd import from_spec, read_skillmd, to_spec
from marketplace.protocol.skills import read_skill, write_skill
from tests.keys import T0, Keys
from tests.zips import SKILL, special, zipped

pytestmark = pytest.mark.django_db
NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # of NIP-19's own example
CONTENT = {
    "description": "Watches **notes**: all of them",
    "context_mode": "full",
    "llm": "openai/gpt-4o-mini, cheap",
    "max_tokens": 400,
    "template": "system:\nBe brief.\n\nuser:\nThe note: {{triggering_event}}\n",
    "x_own": {"kept": [1.50]},
}
TAGS = [
    ["d", "Watch it"],
    ["scope", "public"],
    ["description", "Watches **notes**: all of them"],
    ["trigger", "nostr-subscription"],
    ["filter", '{"kinds":[1],"#t":["nostr"]}'],
    ["tools", "nostr_post"],
    ["t", "monitoring"],
    ["x-odd", "1", "2"],
]


def store(*events: Event) -> None:
    outcomes = ingest.store([ingest.Incoming(event, "ws://relay.example") for event in events], T0 + 100)
    assert [outcome.outcome for outcome in outcomes] == ["stored"] * len(events)


@pytest.fixture
def alice(client: Client) -> User:
    user = User.objects.create_user("alice")
    client.force_login(user)
    return user


@pytest.fixture
def identity(alice: User) -> Identity:
    return signing.create_identity(alice, "mine")


@pytest.fixture
def watch(keys: Keys) -> str:
    store(keys.A.sign(31123, json.dumps(CONTENT), TAGS))
    return f"/skills/{nip19.encode_naddr(Address(31123, keys.A.pubkey, 'Watch it'))}/"


def sent(data: bytes | str, name: str = "SKILL.md") -> dict[str, Any]:
    return {"file": SimpleUploadedFile(name, data.encode() if isinstance(data, str) else data)}


def form_of(draft: Draft) -> SkillForm:
    return SkillForm(draft.fields, draft.user, draft.imported_spec())


# --- Out --------------------------------------------------------------------------


def test_any_public_skill_leaves_as_a_file_that_the_validator_takes(client: Client, watch: str, tmp_path: Path) -> None:
    answer = client.get(f"{watch}SKILL.md")
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="SKILL.md"'
    text = answer.content.decode()
    assert text.startswith("---\nname: watch-it\n") and "allowed-tools: nostr_post\n" in text
    (tmp_path / "watch-it").mkdir()
    (tmp_path / "watch-it/SKILL.md").write_text(text)
    assert skills_ref.validate(tmp_path / "watch-it") == []
    assert f'href="{watch}SKILL.md"' in client.get(watch).content.decode()


def test_an_earlier_version_leaves_too_and_other_names_lead_there(client: Client, watch: str, keys: Keys) -> None:
    old = Address(31123, keys.A.pubkey, "Watch it")
    first = ArchivedEvent.objects.get(d=old.d).pk
    store(keys.A.sign(31123, json.dumps({**CONTENT, "template": "New."}), TAGS, at=T0 + 50))
    assert "New." in client.get(f"{watch}SKILL.md").content.decode()
    assert "Be brief." in client.get(f"{watch}SKILL.md?version={first}").content.decode()
    assert f"SKILL.md?version={first}" in client.get(f"{watch}?version={first}").content.decode()
    hinted = client.get(f"/skills/{nip19.encode_naddr(old, ['wss://x.example'])}/SKILL.md")
    assert (hinted.status_code, hinted["Location"]) == (301, f"{watch}SKILL.md")
    for name in ("version=0", "version=%00", "version=" + "a" * 64):
        assert client.get(f"{watch}SKILL.md?{name}").status_code == 404


@pytest.mark.parametrize("name", ["nothing", "naddr1qqqq", "npub1", "%00", "a" * 3_000])
def test_what_is_no_skill_is_not_there(client: Client, name: str) -> None:
    assert client.get(f"/skills/{name}/SKILL.md").status_code == 404


def test_a_private_skill_leaves_for_its_owner_alone(client: Client, identity: Identity) -> None:
    content = signing.encrypt(identity, json.dumps({"description": "d", "template": "hush hush"}))
    event = signing.sign(identity, Unsigned(identity.pubkey, T0, kinds.PRIVATE_SKILL, (("d", "p"),), content))
    store(event)
    url = f"/skills/{nip19.encode_naddr(Address(31124, identity.pubkey, 'p'))}/SKILL.md"
    answer = client.get(url)
    assert b"hush hush" in answer.content and b"didactyl-scope: private" in answer.content
    assert answer["Cache-Control"] == "private, no-store"
    assert client.head(url).status_code == 200 and client.post(url).status_code == 405
    client.force_login(User.objects.create_user("charlie"))
    assert client.get(url).status_code == 404
    client.force_login(User.objects.create_user("boss", is_staff=True))
    assert client.get(url).status_code == 404
    client.logout()
    assert client.get(url).status_code == 404


def test_what_cannot_be_read_cannot_leave(client: Client, identity: Identity) -> None:
    store(signing.sign(identity, Unsigned(identity.pubkey, T0, kinds.SKILL, (("d", "broken"),), "not json")))
    url = f"/skills/{nip19.encode_naddr(Address(31123, identity.pubkey, 'broken'))}/SKILL.md"
    answer = client.get(url)
    assert answer.status_code == 404 and "cannot be read" in answer.content.decode()


# --- In ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["text", "file", "zip", "zip of a folder"])
def test_a_file_becomes_a_draft(client: Client, identity: Identity, how: str) -> None:
    data: dict[str, Any] = {
        "text": {"text": SKILL.replace("\n", "\r\n")},
        "file": sent(SKILL),
        "zip": sent(zipped({"SKILL.md": SKILL, "references/a.md": "a"}), "demo.zip"),
        "zip of a folder": sent(zipped({"demo/SKILL.md": SKILL, "demo/a.md": "a", "demo/b.md": "b"})),
    }[how]
    answer = client.post("/drafts/import/", {"page": "t", **data})
    draft = Draft.objects.get()
    assert answer["Location"] == f"/drafts/{draft.pk}/"
    fields = {name: draft.fields[name] for name in ("d", "description", "template", "identity")}
    assert fields == {"d": "demo", "description": "Shows how", "template": "Do it.", "identity": str(identity.pk)}
    page = client.get(answer["Location"]).content.decode()
    assert "Nothing is published yet" in page
    assert ("stayed behind" in page) == how.startswith("zip")
    assert client.post("/drafts/import/", {"page": "t", **sent(SKILL)})["Location"] == answer["Location"]
    assert Draft.objects.count() == 1


def test_a_skill_goes_out_and_in_without_loss(client: Client, identity: Identity, watch: str) -> None:
    text = client.get(f"{watch}SKILL.md").content
    client.post("/drafts/import/", sent(text))
    form = form_of(Draft.objects.get())
    assert form.is_valid(), form.errors
    content, tags = write_skill(form.spec)
    original = read_skill(Unsigned("a" * 64, 0, 31123, tuple(map(tuple, TAGS)), json.dumps(CONTENT)))  # type: ignore[arg-type]
    assert (content, tags) == write_skill(original)
    assert '"x_own":{"kept": [1.5]}' in content and ("x-odd", "1", "2") in tags


FOREIGN = "---\nname: best\ndescription: Use when: asked\nargument-hint: '[x]'\nallowed-tools: Read\nmetadata:\n  author: Ada\n---\nDo it.\n"


@pytest.mark.django_db(transaction=True)
def test_keys_of_others_stay_through_the_editor_and_a_publication(
    relay: Any, client: Client, identity: Identity
) -> None:
    client.post("/drafts/import/", {"page": "p", "text": FOREIGN})
    draft = Draft.objects.get()
    assert "line 3: not YAML" in client.get(f"/drafts/{draft.pk}/").content.decode()
    typed = {**draft.fields, "description": "Use when asked to", "revision": draft.revision, "page": "q"}
    client.post(f"/drafts/{draft.pk}/", typed)
    page = client.get(f"/drafts/{draft.pk}/publish/")
    assert page.status_code == 200 and "argument-hint" in page.content.decode()
    published = client.post(f"/drafts/{draft.pk}/publish/", {"form_token": page.context["form_token"], "against": ""})
    assert published.status_code == 302
    url = f"/skills/{nip19.encode_naddr(Address(31123, identity.pubkey, 'best'))}/SKILL.md"
    file = read_skillmd(client.get(url).content, "best")
    assert file.description == "Use when asked to" and file.tools == ("Read",)
    assert file.fields["metadata"]["author"] == "Ada"
    assert dict(to_spec(file).extra_content)["skill_md"] == '{"argument-hint":"[x]","metadata":{"author":"Ada"}}'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "one of the two"),
        ({"text": SKILL, **sent(SKILL)}, "one of the two"),
        ({"text": "# Title"}, "line 1: the file does not start with a line ---"),
        ({"text": "---\nname: x\n---\n"}, "line 1: the description is missing"),
        ({"text": "---\nname: a--b\ndescription: d\n---\n"}, "line 2: “a--b” is not a name"),
        ({"text": '---\nname: x\ndescription: "a\\ud800"\n---\n'}, "half a character"),
        ({"text": '---\nname: x\ndescription: d\nmetadata:\n  didactyl-trigger: \'[["trigger","\\ud800"]]\'\n---\n'}, "half a character"),
        (sent(b"PK not a zip"), "not a zip file"),
        (sent(special("../x", "y", 0o100644)), "not a plain path"),
        (sent(zipped({"a/SKILL.md": SKILL, "b/SKILL.md": SKILL})), "holds 2 skills"),
        (sent(b"x" * 400_001), "at most 400,000 bytes"),
        (sent(b"x" * 10_000_001), "larger than 10 MB"),
        (sent(b""), "empty"),
    ],
    ids=range(13),
)  # fmt: skip
def test_what_cannot_become_a_draft_is_said_beside_its_field(
    client: Client, identity: Identity, data: dict[str, Any], words: str
) -> None:
    answer = client.post("/drafts/import/", data)
    assert answer.status_code == 422 and not Draft.objects.exists()
    page = answer.content.decode()
    assert words in page
    if "text" in data and "---" in data["text"]:
        assert "description" in page  # what was pasted is still there


@pytest.mark.parametrize(
    "text",
    ["x" * 200_000, "---\nname: 🍕\ndescription: 🍕\n---\n🍕", "\0" * 50, "---\nname: x\ndescription: d\n---\na\0b"],
)
def test_anything_pasted_is_survived(client: Client, identity: Identity, text: str) -> None:
    answer = client.post("/drafts/import/", {"text": text, "page": "\0"})
    assert answer.status_code in {302, 422}
    for draft in Draft.objects.all():
        assert client.get(f"/drafts/{draft.pk}/").status_code == 200 and "\0" not in json.dumps(draft.fields)


def test_a_secret_key_in_a_file_is_neither_kept_nor_shown(client: Client, identity: Identity) -> None:
    text = f"---\nname: x\ndescription: d {NSEC}\nowner: {NSEC}\n---\n{NSEC}"
    for data in ({"text": text}, sent(text)):
        answer = client.post("/drafts/import/", data)
        page = client.get(answer["Location"]).content.decode()
        draft = Draft.objects.latest("pk")
        assert NSEC not in page + json.dumps(draft.fields) + draft.imported
    broken = client.post("/drafts/import/", {"text": f"no front {NSEC}"})
    assert broken.status_code == 422 and NSEC not in broken.content.decode()


def test_drafts_are_made_for_their_owner_alone(client: Client, identity: Identity) -> None:
    client.post("/drafts/import/", sent(SKILL))
    client.force_login(User.objects.create_user("charlie"))
    assert client.get(f"/drafts/{Draft.objects.get().pk}/").status_code == 404
    assert client.get("/drafts/import/").status_code == 200
    client.logout()
    assert client.get("/drafts/import/").status_code == client.post("/drafts/import/", sent(SKILL)).status_code == 302
    assert Draft.objects.count() == 1


def test_every_skill_on_file_leaves_and_comes_back(tmp_path: Path) -> None:
    found = json.loads((Path(__file__).parent.parent / "events/skills.json").read_text())
    skills = [event for event in map(Event.from_dict, found.values()) if event.kind == kinds.SKILL]
    assert len(skills) > 3
    for event in skills:
        spec = read_skill(event)
        if not spec.readable:
            continue
        file = read_skillmd(from_spec(spec))
        (tmp_path / file.name).mkdir(exist_ok=True)
        (tmp_path / file.name / "SKILL.md").write_text(from_spec(spec))
        assert skills_ref.validate(tmp_path / file.name) == []
        back = to_spec(file)
        assert (back.d, back.template, back.tools, back.rule) == (spec.d, spec.template, spec.tools, spec.rule)
