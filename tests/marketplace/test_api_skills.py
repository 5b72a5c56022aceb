"""The API's skills: the same list as the page, one skill, its versions; what is wrong is a clear 4xx."""

import json
from urllib.parse import quote

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marketplace import ingest
from marketplace.protocol import nip19
from marketplace.protocol.events import Address, Event
from tests.keys import T0, Keys

pytestmark = pytest.mark.django_db


def store(*events: Event) -> None:
    ingest.store([ingest.Incoming(event, "ws://relay.example") for event in events], T0 + 100)


@pytest.fixture
def world(keys: Keys) -> str:
    content = {"description": "Corrects", "llm": "cheap", "tools": ["nostr_post"], "template": "user:\n{{message}}"}
    store(keys.A.profile("Ada"), keys.A.skill("translate", at=T0 - 1))
    store(keys.A.sign(31123, '{"description":"old"}', [["d", "spell"]], T0 - 9))
    store(
        keys.A.sign(31123, json.dumps(content), [["d", "spell"], ["t", "writing"]]),
        keys.B.adopts(keys.A.address("spell")),
    )
    return nip19.encode_naddr(Address(31123, keys.A.pubkey, "spell"))


def test_an_item_says_what_the_page_says(client: Client, world: str, keys: Keys) -> None:
    page = client.get("/api/v1/skills").json()
    assert page["next"] is None
    assert page["items"][0] == {
        "address": keys.A.address("spell"),
        "naddr": world,
        "name": "spell",
        "description": "Corrects",
        "author": {"pubkey": keys.A.pubkey, "npub": nip19.encode_npub(keys.A.pubkey), "name": "Ada"},
        "adopters": 1,
        "trigger": None,
        "tools": ["nostr_post"],
        "llm": "cheap",
        "state": "live",
        "updated_at": T0,
    }


def test_one_skill_by_naddr_and_by_coordinate(client: Client, world: str, keys: Keys) -> None:
    for name in (world, quote(keys.A.address("spell"))):
        skill = client.get(f"/api/v1/skills/{name}").json()
        assert skill["content"]["template"] == "user:\n{{message}}"
        assert ["t", "writing"] in skill["tags"]
        assert skill["adopted_by"] == [keys.B.pubkey]
        assert skill["problems"] == []
        assert len(skill["event_id"]) == 64


def test_versions_newest_first_with_a_cursor(client: Client, world: str) -> None:
    base = f"/api/v1/skills/{world}/versions"
    page = client.get(base).json()
    assert [(v["description"], v["current"]) for v in page["items"]] == [("Corrects", True), ("old", False)]
    first = client.get(f"{base}?limit=1").json()
    second = client.get(f"{base}?limit=1&cursor={first['next']}").json()
    assert first["items"] + second["items"] == page["items"]
    assert second["next"] is None


def test_the_cursor_walks_the_whole_list_once(client: Client, keys: Keys) -> None:
    store(*[keys.A.skill(f"s{n:02}", at=T0 - n) for n in range(25)])
    seen, cursor = [], ""
    while True:
        page = client.get("/api/v1/skills", {"limit": 7, "cursor": cursor}).json()
        seen += [item["name"] for item in page["items"]]
        cursor = page["next"]
        if not cursor:
            break
    assert seen == [f"s{n:02}" for n in range(25)]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("skills?limit=0", 422),
        ("skills?limit=101", 422),
        ("skills?limit=99999999999999999999999", 422),
        ("skills?sort=best", 400),
        ("skills?cursor=x", 400),
        ("skills?cursor=%00", 400),
        ("skills?author=nobody", 400),
        ("skills?q=nsec1" + "q" * 58, 400),
        ("skills/nothing", 400),
        ("skills/nsec1" + "q" * 58, 400),
        ("skills/31123:" + "f" * 64 + ":x", 404),
        ("skills/31123:" + "f" * 64 + ":%00", 404),
        ("skills/31124:" + "f" * 64 + ":x", 404),
        ("skills/30023:" + "f" * 64 + ":x", 404),
        ("skills/npub1" + "q" * 58 + "/versions", 400),
    ],
)
def test_what_is_wrong_is_said_with_a_clear_status(client: Client, world: str, path: str, status: int) -> None:
    response = client.get(f"/api/v1/{path}")
    assert response.status_code == status
    assert response.json()["detail"]


def test_private_and_deleted_skills_are_not_in_the_api(client: Client, keys: Keys) -> None:
    store(keys.A.sign(31124, '{"description":"x"}', [["d", "diary"]]), keys.A.skill("gone"))
    store(keys.A.deletes(keys.A.address("gone"), at=T0 + 5))
    assert client.get("/api/v1/skills").json()["items"] == []
    for kind, d in ((31124, "diary"), (31123, "gone")):
        assert client.get(f"/api/v1/skills/{keys.A.address(d, kind)}").status_code == 404


# Bytes as a browser or an attacker sends them: NUL, broken UTF-8, surrogates, anything.
JUNK = st.binary(max_size=40).map(quote) | st.text(max_size=40).map(lambda text: quote(text, errors="surrogatepass"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JUNK, st.sampled_from(["q", "sort", "trigger", "tool", "topic", "author", "limit", "cursor"]))
def test_no_input_makes_the_api_fail(client: Client, world: str, junk: str, name: str) -> None:
    assert client.get(f"/api/v1/skills?{name}={junk}").status_code < 500
    assert client.get(f"/api/v1/skills/{junk}x").status_code < 500
    assert client.get(f"/api/v1/skills/{world}/versions?{name}={junk}").status_code < 500


def test_the_documentation_runs_under_our_policy(client: Client) -> None:
    html = client.get("/api/v1/docs").content.decode()
    assert "swagger-ui-init.js" in html and "cdn" not in html
    assert "/api/v1/skills/{naddr}/versions" in client.get("/api/v1/openapi.json").json()["paths"]
