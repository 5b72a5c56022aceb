"""An author's page: profile, skills, what the key adopted."""

import pytest
from django.test import Client

from marketplace import ingest
from marketplace.protocol import nip19
from marketplace.protocol.events import Event
from tests.keys import T0, Keys

pytestmark = pytest.mark.django_db


def store(*events: Event) -> None:
    ingest.store([ingest.Incoming(event, "ws://relay.example") for event in events], T0 + 100)


def url(pubkey: str) -> str:
    return f"/authors/{nip19.encode_npub(pubkey)}/"


def test_profile_skills_and_adoptions_stand_there(client: Client, keys: Keys) -> None:
    about = keys.A.sign(0, '{"name":"Ada","about":"I <b>write</b> *skills*"}')
    store(about, keys.A.skill("spell"), keys.B.skill("watch"))
    store(keys.A.adopts(keys.B.address("watch"), keys.A.address("spell"), keys.C.address("unknown")))
    html = client.get(url(keys.A.pubkey)).content.decode()
    assert "<h1>Ada</h1>" in html
    assert "<em>skills</em>" in html and "<b>" not in html
    assert html.index(">watch</a>") < html.index("own, not counted")
    assert "not listed here" in html


def test_other_spellings_of_the_key_lead_to_one_address(client: Client, keys: Keys) -> None:
    store(keys.A.skill("spell"))
    for name in (keys.A.pubkey, keys.A.pubkey.upper(), nip19.encode_npub(keys.A.pubkey).upper()):
        response = client.get(f"/authors/{name}/")
        assert (response.status_code, response["Location"]) == (301, url(keys.A.pubkey))


def test_private_skills_are_not_shown_even_when_the_list_names_them(client: Client, keys: Keys) -> None:
    store(keys.A.sign(31124, "{}", [["d", "my-diary"]]), keys.A.skill("spell"))
    store(keys.A.adopts(keys.A.address("my-diary", 31124), keys.A.address("spell")))
    assert "my-diary" not in client.get(url(keys.A.pubkey)).content.decode()


@pytest.mark.parametrize("name", ["x", "npub1qqqq", "nsec1" + "q" * 58, "%00", "f" * 64])
def test_a_key_nobody_saw_is_not_found_in_words(client: Client, name: str) -> None:
    response = client.get(f"/authors/{name}/", follow=True)
    assert response.status_code == 404
    assert "Nothing was lost" in response.content.decode()


def test_queries_do_not_grow(client: Client, keys: Keys, django_assert_max_num_queries: object) -> None:
    store(*[keys.A.skill(f"s{n}") for n in range(60)])
    store(keys.A.adopts(*[keys.A.address(f"s{n}") for n in range(60)]))
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        assert client.get(url(keys.A.pubkey)).status_code == 200


def test_triggers_page_lists_skills_that_act_by_themselves(client: Client, keys: Keys) -> None:
    tags = [["trigger", "nostr-subscription"], ["filter", '{"kinds":[1]}']]
    daily = [["trigger", "cron"], ["schedule", "0 9 * * *"]]
    store(keys.A.skill("plain"), keys.A.skill("watch", tags=tags), keys.A.skill("daily", tags=daily))
    html = client.get("/triggers/").content.decode()
    assert ">watch</a>" in html and ">daily</a>" in html and ">plain</a>" not in html
    assert "When there is a note" in html
    assert ">watch</a>" not in client.get("/triggers/?trigger=cron").content.decode()
    assert "From the start" in client.get("/triggers/?cursor=broken").content.decode()
