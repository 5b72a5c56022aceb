"""The front page: who is first, what filters leave, what may be pasted, and what htmx gets."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from marketplace import ingest, signing
from marketplace.models import Skill, User
from marketplace.protocol import nip19
from marketplace.protocol.events import Address
from tests.keys import T0, Key, Keys

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/"}


def store(*events: object) -> None:
    outcomes = ingest.store([ingest.Incoming(event) for event in events], T0 + 100)
    assert [outcome.outcome for outcome in outcomes] == ["stored"] * len(events)


def names(html: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)</a>', html)


@pytest.fixture
def world(keys: Keys) -> None:
    trigger = [["trigger", "nostr-subscription"], ["filter", '{"kinds":[1]}'], ["tools", "nostr_post"]]
    store(
        keys.A.profile("Ada"),
        keys.A.skill("spellcheck", "Corrects spelling", tags=[["t", "writing"]]),
        keys.A.skill("translate", "Other languages", at=T0 + 1),
        keys.B.skill("watch", "Watches notes", at=T0 + 2, tags=trigger),
        keys.C.adopts(keys.A.address("spellcheck"), keys.B.address("watch")),
        keys.D.adopts(keys.A.address("spellcheck")),
        keys.A.adopts(keys.A.address("translate")),
    )


def test_most_adopted_comes_first_and_the_author_does_not_count(client: Client, world: None) -> None:
    html = client.get("/").content.decode()
    assert names(html) == ["spellcheck", "watch", "translate"]
    assert "Most adopters first" in html


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=spelling", ["spellcheck"]),
        ("q=ada", ["spellcheck", "translate"]),
        ("trigger=any", ["watch"]),
        ("trigger=none", ["spellcheck", "translate"]),
        ("trigger=cron", []),
        ("tool=nostr_post", ["watch"]),
        ("topic=writing", ["spellcheck"]),
        ("sort=newest", ["watch", "translate", "spellcheck"]),
        ("sort=nonsense&trigger=&q=", ["spellcheck", "watch", "translate"]),
    ],
)
def test_every_filter_is_a_plain_url(client: Client, world: None, query: str, expected: list[str]) -> None:
    assert names(client.get(f"/?{query}").content.decode()) == expected


def test_an_author_filter_takes_npub_and_hex(client: Client, world: None, keys: Keys) -> None:
    for author in (nip19.encode_npub(keys.B.pubkey), keys.B.pubkey.upper()):
        assert names(client.get("/", {"author": author}).content.decode()) == ["watch"]
    assert "typing mistake" in client.get("/", {"author": nip19.encode_npub(keys.B.pubkey)[:-1] + "q"}).content.decode()


def test_paging_shows_each_skill_once_also_when_one_is_added_between(client: Client, keys: Keys) -> None:
    store(*[keys.A.skill(f"skill-{n:03}", at=T0 - n) for n in range(120)])
    html = client.get("/").content.decode()
    seen = names(html)
    store(keys.B.skill("late", at=T0 + 50))
    while following := re.search(r'rel="next" href="([^"]*)"', html):
        html = client.get(following.group(1).replace("&amp;", "&")).content.decode()
        seen += names(html)
    assert seen == [f"skill-{n:03}" for n in range(120)]
    assert '<td class="num muted">120</td>' in html


def test_a_broken_cursor_leads_back_to_the_start(client: Client, world: None) -> None:
    for cursor in ("x", "WyJhZG9wdGlvbiJd", "%00", "\ud800".encode("utf-8", "surrogatepass").hex()):
        response = client.get(f"/?cursor={cursor}")
        assert response.status_code == 200
        assert "All skills" in response.content.decode()


def test_queries_do_not_grow_with_rows(client: Client, keys: Keys) -> None:
    counts = []
    for rows in (1, 30, 60):
        store(*[Key(f"author {rows} {n}").skill(f"s{rows}-{n}", at=T0 - n) for n in range(rows)])
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get("/").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] == counts[2] <= 5


def test_a_second_visitor_costs_one_query_and_an_unchanged_page_is_not_sent_again(
    client: Client, world: None, django_assert_num_queries: object
) -> None:
    first = client.get("/")
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert client.get("/").content == first.content
    again = client.get("/", headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304
    assert again["Vary"] == first["Vary"]


def test_a_new_adoption_is_on_the_next_page_shown(client: Client, world: None, keys: Keys) -> None:
    assert names(client.get("/").content.decode())[0] == "spellcheck"
    store(*[keys[f"fan {n}"].adopts(keys.A.address("translate")) for n in range(3)])
    assert names(client.get("/").content.decode())[0] == "translate"


def test_htmx_gets_the_list_alone_and_history_always_gets_the_page(client: Client, world: None) -> None:
    part = client.get("/?q=spell", headers=HTMX)
    assert "<html" not in part.content.decode()
    assert names(part.content.decode()) == ["spellcheck"]
    for headers in ({}, HTMX | {"HX-History-Restore-Request": "true"}):
        page = client.get("/?q=spell", headers=headers)
        assert page.content.decode().startswith("<!doctype html>")
        assert {"HX-Request", "HX-History-Restore-Request"} <= set(page["Vary"].split(", "))
    assert {"HX-Request", "HX-History-Restore-Request"} <= set(part["Vary"].split(", "))


def test_typing_stays_in_one_entry_of_the_history_and_a_filter_makes_a_new_one(client: Client, world: None) -> None:
    typed = client.get("/?q=spell&trigger=&tool=", headers=HTMX)
    assert typed["HX-Replace-Url"] == "/?q=spell"
    chosen = client.get("/?q=spell&trigger=any&tool=", headers=HTMX)
    assert chosen["HX-Push-Url"] == "/?q=spell&trigger=any"


def test_pasted_names_lead_to_what_they_name(client: Client, world: None, keys: Keys) -> None:
    address = Address(31123, keys.A.pubkey, "spellcheck")
    naddr, npub = nip19.encode_naddr(address), nip19.encode_npub(keys.A.pubkey)
    event_id = Skill.objects.get(d="spellcheck").event_id
    note = nip19.encode_note(event_id)
    skill, author = f"/skills/{naddr}/", f"/authors/{npub}/"
    for text, url in [
        (naddr, skill),
        (f"nostr:{naddr}", skill),
        (f" {address!s} ", skill),
        (note, skill),
        (event_id, skill),
        (f"https://njump.me/{naddr}", skill),
        (nip19.encode_naddr(address, ["wss://relay.example"]), skill),
        (npub, author),
        (npub.upper(), author),
        (f"https://example.com/p/{npub}/", author),
    ]:
        assert client.get("/", {"q": text})["Location"] == url, text
    assert client.get("/", {"q": naddr}, headers=HTMX)["HX-Redirect"] == skill


def test_a_private_key_is_refused_and_never_shown(client: Client, world: None) -> None:
    secret = "nsec1" + "q" * 58
    for headers in ({}, HTMX):
        response = client.get("/", {"q": f"nostr:{secret}"}, headers=headers)
        html = response.content.decode()
        assert "private key" in html
        assert secret not in html
        assert response["Cache-Control"] == "no-store"
    assert response["HX-Replace-Url"] == "/"


def test_descriptions_are_text_and_hidden_characters_are_marked(client: Client, keys: Keys) -> None:
    store(keys.A.skill("trap", "<script>alert(1)</script> \u202eevil\u200b \U000e0041"))
    html = client.get("/").content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html
    for mark in ("U+202E", "U+200B", "U+E0041"):
        assert f">{mark}</span>" in html


def test_private_and_deleted_skills_are_not_listed(client: Client, keys: Keys) -> None:
    store(keys.A.sign(31124, '{"description":"mine"}', [["d", "diary"]]), keys.A.skill("gone"), keys.A.skill("here"))
    store(keys.A.deletes(keys.A.address("gone"), at=T0 + 5))
    assert names(client.get("/").content.decode()) == ["here"]


def test_an_empty_site_says_what_to_do(client: Client) -> None:
    assert "No skill has been found on a relay yet" in client.get("/").content.decode()


def test_a_signed_in_owner_sees_what_is_adopted_and_the_page_is_not_stored(
    client: Client, world: None, keys: Keys
) -> None:
    from agents.models import Agent

    user = User.objects.create_user("alice")
    identity = signing.create_identity(user, "bot")
    Agent.objects.create(owner=user, identity=identity, name="bot", slug="bot")
    Key_ = identity.pubkey
    client.force_login(user)
    response = client.get("/")
    assert response["Cache-Control"] == "private, no-store"
    assert response.content.decode().count(">Adopt</a>") == 3
    from marketplace.models import Adoption

    Adoption.objects.create(
        adopter=Key_, address=keys.A.address("spellcheck"), position=0, event_id="e" * 64, listed_at=T0
    )
    store(keys.D.adopts(keys.B.address("watch"), at=T0 + 1))
    assert client.get("/").content.decode().count(">Adopt</a>") == 2


@pytest.mark.parametrize(
    "query", ["q=%00", "q=%ff%fe", "q=%ed%a0%80", "at=99999999999999", "at=-1", "tool=%00", "trigger=%00"]
)
def test_odd_characters_never_break_the_page(client: Client, world: None, query: str) -> None:
    assert client.get(f"/?{query}").status_code == 200
