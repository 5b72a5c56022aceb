"""The editor: kept as typed, checked beside its fields, published as shown, and nobody else's."""

import json

import pytest
from django.utils import timezone

from marketplace import ingest, signing
from marketplace.forms import SkillForm, fields_of, typed_fields
from marketplace.models import Draft, Identity, Publication, Skill, User
from marketplace.protocol import kinds, nip19, nostr
from marketplace.protocol import skills as skill_format
from marketplace.protocol.events import Draft as Unsigned
from marketplace.protocol.events import Event
from tests.told_relay import ToldRelay

AUTHOR = "21" * 32
TRIGGER = {"trigger": "nostr-subscription", "filter": '{"kinds":[1]}', "enabled": "on", "action": "llm"}
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice(client):
    user = User.objects.create_user("alice")
    client.force_login(user)
    return user


@pytest.fixture
def identity(alice):
    return signing.create_identity(alice, "mine")


def typed(identity, **fields):
    base = {"identity": str(identity.pk), "visibility": "public", "d": "probe", "template": "user:\n{{message}}"}
    return {**base, **fields}


def published(secret_or_identity, content, *tags, d="probe"):
    at = int(timezone.now().timestamp()) - 100
    tags = (("d", d), *tags)
    if isinstance(secret_or_identity, Identity):
        event = signing.sign(secret_or_identity, Unsigned(secret_or_identity.pubkey, at, kinds.SKILL, tags, content))
    else:
        event = nostr.sign(Unsigned(nostr.public_key(AUTHOR), at, kinds.SKILL, tags, content), AUTHOR)
    ingest.store([ingest.Incoming(event)], at)
    return event


def problems(identity, **fields):
    form = SkillForm(typed(identity, **fields), identity.user)
    form.is_valid()
    return {name: " ".join(map(str, messages)) for name, messages in form.errors.items()}


# --- the form -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"d": ""}, "d", "Give the skill a name"),
        ({"d": "x" * 200}, "d", "184 bytes"),
        ({"max_tokens": "many"}, "max_tokens", "whole number"),
        ({"context_mode": "inject", "temperature": "3"}, "temperature", "from 0 to 2"),
        ({**TRIGGER, "filter": "{}"}, "filter", "Nothing narrows"),
        ({**TRIGGER, "filter": '{"kind":[1]}'}, "filter", "not a field"),
        ({**TRIGGER, "filter": "{kinds"}, "filter", "not JSON"),
        ({"trigger": "cron", "schedule": "0 0 30 2 *"}, "schedule", "never comes"),
        ({"trigger": "cron", "schedule": "0 0 * * *", "tz": "Mars/One"}, "tz", "not a time zone"),
        ({"trigger": "webhook", "params": "name colour"}, "params", "neither string"),
        ({"trigger": "chain", "source": "that one"}, "source", "not a skill's address"),
        ({**TRIGGER, "action": "template", "template": ""}, "template", "needs a text"),
        ({"context_mode": "full", "template": " "}, "template", "needs a template"),
        ({"context_mode": "inject", "tools_choice": "list"}, "tools", "Name the tools"),
        ({"template": "x" * 200_000}, "template", "65,536"),
        ({"visibility": "private", "template": "x" * 41_000}, "template", "40,000"),
        ({"context_mode": "sideways"}, "context_mode", "valid choice"),
        ({"trigger": "smoke-signal"}, "trigger", "valid choice"),
    ],
)
def test_a_problem_stands_beside_its_field(identity, fields, field, words):
    assert words in problems(identity, **fields)[field]


def test_keys_typed_into_a_filter_become_lower_hex(identity):
    key = nostr.public_key(AUTHOR)
    for written in (key.upper(), nip19.encode_npub(key)):
        form = SkillForm(typed(identity, **{**TRIGGER, "filter": json.dumps({"authors": [written]})}), identity.user)
        assert form.is_valid(), form.errors
        _, tags = skill_format.write_skill(form.spec)
        assert ("filter", json.dumps({"authors": [key]}, separators=(",", ":"))) in tags


def test_every_field_reaches_the_event_and_comes_back(identity):
    fields = typed(
        identity,
        description="What it does",
        topics="writing, #nostr",
        context_mode="override",
        llm="acme/big, cheap",
        max_tokens="900",
        temperature="0.3",
        seed="7",
        tools_choice="list",
        tools="nostr_post, nostr_query",
        license="MIT",
        version="2",
        **TRIGGER,
    )
    form = SkillForm(fields, identity.user)
    assert form.is_valid(), form.errors
    content, tags = skill_format.write_skill(form.spec)
    event = Unsigned(identity.pubkey, 1, kinds.SKILL, tags, content)
    again = {name: value for name, value in fields_of(skill_format.read_skill(event)).items() if value}
    assert again == {
        **{name: value for name, value in fields.items() if name != "identity"},
        "topics": "writing, nostr",
    }


def test_unknown_fields_tags_and_trigger_kinds_stay_byte_for_byte(identity):
    content = '{"description":"one","template":"a\\r\\nb","x-odd": {"b":1.50,  "a":[null]}}'
    tags = (("trigger", "smoke-signal"), ("x-mine", "1", "2"), ("client", "other"))
    event = published(identity, content, *tags)
    spec = skill_format.read_skill(event)
    fields = {**fields_of(spec), "identity": str(identity.pk), "description": "two"}
    fields["template"] = fields["template"].replace("\r\n", "\n").replace("\n", "\r\n")  # as browsers do
    form = SkillForm(fields, identity.user, spec)
    assert form.is_valid(), form.errors
    new, new_tags = skill_format.write_skill(form.spec)
    assert '{"b":1.50,  "a":[null]}' in new
    assert json.loads(new)["template"] == "a\r\nb"
    assert {("x-mine", "1", "2"), ("client", "other"), ("trigger", "smoke-signal")} <= set(new_tags)


def test_a_secret_key_in_a_field_is_taken_out_and_said():
    nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"
    fields, words = typed_fields({"template": f"use {nsec} please"})
    assert nsec not in fields["template"]
    assert "secret key" in words[0]


# --- the pages ------------------------------------------------------------------


def test_what_is_typed_is_kept_whatever_it_is(client, identity):
    text = "user:\n🍕 é \u2028 \x7f {{message}}" + "long " * 40_000
    sent = {**typed(identity, d="", template=text), "page": "a" * 32, "next": "save"}
    answer = client.post("/drafts/new/", sent)
    draft = Draft.objects.get()
    assert answer["Location"] == f"/drafts/{draft.pk}/"
    assert draft.fields["template"] == text
    assert "🍕" in client.get(f"/drafts/{draft.pk}/").content.decode()


def test_a_nul_becomes_a_mark_and_is_said(client, identity):
    page = client.post("/drafts/new/", {**typed(identity, template="a\0b"), "page": "a" * 32}).content.decode()
    assert Draft.objects.get().fields["template"] == "a␀b"
    assert "NUL character was taken out" in page


def test_a_first_save_sent_twice_is_one_draft(client, identity):
    for _ in range(2):
        client.post("/drafts/new/", {**typed(identity), "page": "a" * 32})
    assert Draft.objects.count() == 1


def test_two_tabs_do_not_overwrite_each_other_silently(client, identity):
    client.post("/drafts/new/", {**typed(identity), "page": "a" * 32})
    draft = Draft.objects.get()
    seen = draft.revision
    one = client.post(f"/drafts/{draft.pk}/", {**typed(identity, d="tab one"), "page": "b" * 32, "revision": seen})
    assert one.status_code == 302
    two = client.post(f"/drafts/{draft.pk}/", {**typed(identity, d="tab two"), "page": "c" * 32, "revision": seen})
    assert two.status_code == 409
    page = two.content.decode()
    assert 'value="tab two"' in page  # nothing typed is lost
    assert "tab one" in page
    draft.refresh_from_db()
    assert draft.fields["d"] == "tab one"
    again = {**typed(identity, d="tab two"), "page": "c" * 32, "revision": draft.revision}
    assert client.post(f"/drafts/{draft.pk}/", again).status_code == 302


@pytest.mark.parametrize("number", ["²", "9" * 5_000, "-1", "0", "1\0"])
def test_a_number_that_names_no_draft_is_not_found(client, identity, number):
    for path in ("/drafts/save/", "/drafts/new/"):
        assert client.post(path, {**typed(identity), "draft": number}).status_code == 404
    row = Draft.objects.create(user=identity.user, fields=typed(identity))
    sent = {**typed(identity), "page": "b" * 32, "revision": number}
    assert client.post(f"/drafts/{row.pk}/", sent).status_code == 409
    assert client.post(f"/drafts/{row.pk}/unsigned/", {"identity": number}).status_code == 404


def test_saving_while_typing_makes_the_draft_and_then_follows_it(client, identity):
    page = {"page": "a" * 32}
    first = client.post("/drafts/save/", {**typed(identity, d="a"), **page}, headers={"HX-Request": "true"})
    draft = Draft.objects.get()
    assert first["HX-Replace-Url"] == f"/drafts/{draft.pk}/"
    sent = {**typed(identity, d="ab"), **page, "draft": draft.pk, "revision": draft.revision}
    assert "Saved" in client.post("/drafts/save/", sent, headers={"HX-Request": "true"}).content.decode()
    stale = {**sent, "page": "z" * 32, "d": "other", "revision": 1}
    assert "Not saved" in client.post("/drafts/save/", stale, headers={"HX-Request": "true"}).content.decode()
    draft.refresh_from_db()
    assert draft.fields["d"] == "ab"


def test_publishing_shows_the_difference_then_each_answer(settings, client, identity):
    published(identity, '{"description":"one","template":"user:\\n{{message}}"}')
    naddr = nip19.encode_naddr(_address(identity))
    editor = client.get("/drafts/new/", {"from": naddr}).content.decode()
    assert ">\none</textarea>" in editor
    base = Skill.objects.get().event_id
    sent = {**typed(identity, description="two"), "base_event": base, "page": "a" * 32, "next": "publish"}
    with ToldRelay() as good, ToldRelay("refuse") as bad:
        settings.WRITE_RELAYS = settings.RELAYS = [good.url, bad.url]
        review = client.get(client.post("/drafts/new/", sent)["Location"])
        page = review.content.decode()
        assert "<del>description: &quot;one&quot;</del>" in page
        assert "<ins>description: &quot;two&quot;</ins>" in page
        assert good.url in page
        form = {"form_token": review.context["form_token"], "against": base}
        first = client.post(f"/drafts/{Draft.objects.get().pk}/publish/", form)
        second = client.post(f"/drafts/{Draft.objects.get().pk}/publish/", form)
        assert first["Location"] == second["Location"]
        answers = client.get(first["Location"]).content.decode()
        assert "blocked: pay first" in answers
        assert "at least one relay took it" in answers
        assert len(good.received) == len(bad.received) == 1
        client.post(f"/publications/{Publication.objects.get().pk}/retry/")
        assert [event["id"] for event in bad.received] == [Publication.objects.get().event_id] * 2
    assert Skill.objects.get().description == "two"
    assert Draft.objects.get().base_event == Skill.objects.get().event_id


def _address(identity):
    from marketplace.protocol.events import Address

    return Address(kinds.SKILL, identity.pubkey, "probe")


def test_a_version_that_came_meanwhile_is_shown_before_it_is_replaced(settings, client, identity):
    base = published(identity, '{"template":"one"}')
    Draft.objects.create(user=identity.user, fields=typed(identity), base_event=base.id)
    draft = Draft.objects.get()
    review = client.get(f"/drafts/{draft.pk}/publish/")
    newer = signing.sign(
        identity, Unsigned(identity.pubkey, base.created_at + 5, base.kind, base.tags, '{"template":"x"}')
    )
    ingest.store([ingest.Incoming(newer)], base.created_at + 60)
    form = {"form_token": review.context["form_token"], "against": base.id}
    answer = client.post(f"/drafts/{draft.pk}/publish/", form)
    assert answer.status_code == 409
    assert not Publication.objects.exists()


def test_a_draft_with_problems_is_not_offered_for_publishing(client, identity):
    draft = Draft.objects.create(user=identity.user, fields=typed(identity, **{**TRIGGER, "filter": "{}"}))
    answer = client.get(f"/drafts/{draft.pk}/publish/", follow=True)
    page = answer.content.decode()
    assert "Nothing narrows this filter" in page
    assert 'aria-describedby="error-filter"' in page


def test_somebody_elses_skill_is_remixed_into_an_own_one(client, identity):
    event = published(AUTHOR, '{"description":"theirs","template":"Do."}')
    page = client.get("/drafts/new/", {"from": nip19.encode_naddr(event.address)}).content.decode()
    assert "Remixed from" in page
    assert 'name="base_event" value=""' in page


def test_what_a_browser_signed_goes_out_only_as_handed_out(settings, client, alice, identity):
    secret = "5d" * 32
    key = signing.register_browser_key(alice, "extension", nostr.public_key(secret))
    draft = Draft.objects.create(user=alice, fields=typed(identity))
    handed = client.post(f"/drafts/{draft.pk}/unsigned/", {"identity": key.pk}).json()
    unsigned = Unsigned(handed["pubkey"], handed["created_at"], handed["kind"], _tags(handed), handed["content"])
    other = Unsigned(unsigned.pubkey, unsigned.created_at, unsigned.kind, unsigned.tags, "{}")
    with ToldRelay() as relay:
        settings.WRITE_RELAYS = settings.RELAYS = [relay.url]
        for draft_of, status in ((other, 422), (unsigned, 200)):
            event: Event = nostr.sign(draft_of, secret)
            sent = {"identity": key.pk, "event": event.to_json()}
            assert client.post(f"/drafts/{draft.pk}/signed/", sent).status_code == status
    assert [event["pubkey"] for event in relay.received] == [key.pubkey]


def _tags(handed):
    return tuple(map(tuple, handed["tags"]))


def test_drafts_and_publications_of_others_are_not_there(client, identity):
    draft = Draft.objects.create(user=identity.user, fields=typed(identity))
    row = Publication.objects.create(identity=identity, event_id="ab" * 32, kind=1, raw="{}", why="x")
    client.force_login(User.objects.create_user("charlie"))
    for path in ("", "publish/", "delete/", "unsigned/", "signed/"):
        assert client.post(f"/drafts/{draft.pk}/{path}").status_code == 404
    assert client.get(f"/drafts/{draft.pk}/").status_code == 404
    assert client.get(f"/publications/{row.pk}/").status_code == 404
    assert client.post(f"/publications/{row.pk}/retry/").status_code == 404
    assert client.post("/drafts/save/", {"draft": draft.pk}).status_code == 404
    client.logout()
    assert client.get(f"/drafts/{draft.pk}/").status_code == 302


def test_a_private_skill_of_another_key_cannot_be_opened(client, alice):
    other = signing.create_identity(User.objects.create_user("bob"), "bobs")
    content = signing.encrypt(other, '{"template":"hush"}')
    at = int(timezone.now().timestamp()) - 10
    event = signing.sign(other, Unsigned(other.pubkey, at, kinds.PRIVATE_SKILL, (("d", "p"),), content))
    ingest.store([ingest.Incoming(event)], at)
    assert client.get("/drafts/new/", {"from": nip19.encode_naddr(event.address)}).status_code == 404
    sent = {"identity": "", "base_event": event.id, "page": "a" * 32}
    client.post("/drafts/new/", sent)
    assert Draft.objects.get().base_event == ""


def test_the_preview_shows_messages_and_names_what_is_wrong(client, identity):
    sent = {**typed(identity, **{**TRIGGER, "filter": '{"kind":[1]}'}), "sample_message": "Bonjour"}
    page = client.post("/preview/", sent, headers={"HX-Request": "true"}).content.decode()
    assert "Bonjour" in page
    assert "is not a field of a filter" in page
    assert 'id="error-filter" hx-swap-oob="true"' in page
    whole = client.post("/preview/", sent).content.decode()
    assert "<html" in whole
    assert "hx-swap-oob" not in whole


def test_a_published_page_is_a_whole_page_after_back(client, identity):
    row = Publication.objects.create(
        identity=identity, event_id="ab" * 32, kind=1, raw=_raw(identity), why="x", relays=["ws://127.0.0.1:1"]
    )
    part = client.get(f"/publications/{row.pk}/", headers={"HX-Request": "true"}).content.decode()
    back = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert "<html" not in part
    assert 'hx-trigger="every 1s"' in part
    assert "<html" in client.get(f"/publications/{row.pk}/", headers=back).content.decode()


def _raw(identity):
    return signing.sign(identity, Unsigned(identity.pubkey, 1, 1, (), "x")).to_json()


def test_a_chain_that_would_start_itself_is_refused_beside_its_source(identity):
    own = f"31123:{identity.pubkey}:"
    first = SkillForm(typed(identity, d="first", trigger="chain", source=f"{own}first"), identity.user)
    assert "It would start itself: first → first" in str(first.errors["source"])
    tags = (("d", "second"), ("trigger", "chain"), ("source", f"{own}first"))
    draft = Unsigned(identity.pubkey, 1_760_000_000, 31123, tags, '{"description": "x", "template": "y"}')
    ingest.store([ingest.Incoming(signing.sign(identity, draft))], 1_760_000_100)
    circle = SkillForm(typed(identity, d="first", trigger="chain", source=f"{own}second"), identity.user)
    assert "first → second → first" in str(circle.errors["source"])
    line = SkillForm(typed(identity, d="third", trigger="chain", source=f"{own}second"), identity.user)
    assert "source" not in line.errors
