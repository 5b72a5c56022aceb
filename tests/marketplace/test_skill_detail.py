"""A skill's page: its settings with origins, its receipts, its versions, and who may see it."""

import json

import pytest
from django.test import Client

from marketplace import ingest, signing
from marketplace.models import Skill, User
from marketplace.protocol import nip19
from marketplace.protocol.events import Address, Event
from tests.keys import T0, Keys

pytestmark = pytest.mark.django_db


def store(*events: Event, relay: str = "ws://relay.example") -> None:
    outcomes = ingest.store([ingest.Incoming(event, relay) for event in events], T0 + 100)
    assert [outcome.outcome for outcome in outcomes] == ["stored"] * len(events)


def url(key_pubkey: str, d: str, kind: int = 31123) -> str:
    return f"/skills/{nip19.encode_naddr(Address(kind, key_pubkey, d))}/"


@pytest.fixture
def watch(keys: Keys) -> str:
    content = {
        "description": "Watches **notes**",
        "context_mode": "full",
        "llm": "openai/gpt-4o-mini, cheap",
        "max_tokens": 400,
        "template": "system:\nBe brief.\nuser:\nThe note: {{triggering_event}} in {{language}}",
    }
    tags = [
        ["d", "watch"],
        ["trigger", "nostr-subscription"],
        ["filter", '{"kinds":[1],"#t":["nostr"]}'],
        ["temperature", "0.2"],
        ["tools", "nostr_post", "skill_search"],
        ["t", "monitoring"],
    ]
    store(keys.A.profile("Ada"), keys.A.sign(31123, json.dumps(content), tags))
    return url(keys.A.pubkey, "watch")


def test_everything_it_sets_stands_there_with_its_origin(client: Client, watch: str) -> None:
    html = client.get(watch).content.decode()
    assert "When there is a note tagged #nostr" in html
    assert "&quot;#t&quot;: [" in html
    assert html.index("openai/gpt-4o-mini") < html.index(">cheap<")
    assert "400 <span" in html and "from content" in html
    assert "0.2 <span" in html and "from trigger tags" in html
    assert ">nostr_post</a>" in html and ">skill_search</a>" in html
    assert "only this template" in html
    assert "<strong>notes</strong>" in html
    assert "asked for when the skill is run" in html
    assert "ws://relay.example" in html
    assert "valid, checked now" in html


def test_the_page_names_itself_for_nostr_clients(client: Client, watch: str) -> None:
    naddr = watch.split("/")[2]
    assert f'<link rel="alternate" href="nostr:{naddr}">' in client.get(watch).content.decode()


def test_other_names_of_the_skill_lead_to_one_address(client: Client, watch: str, keys: Keys) -> None:
    address = Address(31123, keys.A.pubkey, "watch")
    event_id = Skill.objects.get().event_id
    for name in (nip19.encode_naddr(address, ["wss://x.example"]), nip19.encode_note(event_id)):
        response = client.get(f"/skills/{name}/")
        assert (response.status_code, response["Location"]) == (301, watch)


def test_each_adopter_has_a_receipt_that_can_be_checked(client: Client, watch: str, keys: Keys) -> None:
    lists = [keys.B.adopts(keys.A.address("watch")), keys.A.adopts(keys.A.address("watch"), keys.A.address("WATCH"))]
    store(*lists, keys.B.profile("Bob"))
    html = client.get(f"{watch}?tab=adopters").content.decode()
    assert "1 key names this skill" in html
    assert "the author, not counted" in html
    assert ">Bob</a>" in html
    for event in lists:
        assert f"/events/{event.id}/" in html
    receipt = client.get(f"/events/{lists[0].id}/").content.decode()
    assert "id and signature valid, checked now" in receipt
    assert lists[0].sig in receipt


def test_a_receipt_says_what_was_left_out_and_why(client: Client, watch: str, keys: Keys) -> None:
    upper = f"31123:{keys.A.pubkey.upper()}:watch"
    event = keys.C.adopts(keys.A.address("watch"), keys.A.address("watch"), upper, "30023:x:y")
    store(event)
    html = client.get(f"/events/{event.id}/").content.decode()
    for reason in ("named twice", "upper-case hex", "not an address"):
        assert reason in html


def test_earlier_versions_stay_and_say_that_they_are_earlier(client: Client, keys: Keys) -> None:
    old, new = keys.A.skill("spell", "first words"), keys.A.skill("spell", "second words", at=T0 + 9)
    store(old)
    store(new)
    page = url(keys.A.pubkey, "spell")
    html = client.get(f"{page}?tab=versions").content.decode()
    assert html.index(new.id) < html.index(old.id)
    earlier = client.get(f"{page}?version={old.id}").content.decode()
    assert "first words" in earlier and "This is an earlier version" in earlier
    assert "This is an earlier version" not in client.get(page).content.decode()
    assert client.get(f"{page}?version={'f' * 64}").status_code == 404


def test_the_event_stands_there_as_signed(client: Client, keys: Keys) -> None:
    event = keys.A.skill("spell")
    store(event)
    html = client.get(f"{url(keys.A.pubkey, 'spell')}?tab=event").content.decode()
    assert event.id in html and event.sig in html


def test_a_deleted_skill_shows_that_and_not_its_text(client: Client, keys: Keys) -> None:
    store(keys.A.skill("spell", "secret words"), keys.B.adopts(keys.A.address("spell")))
    store(keys.A.deletes(keys.A.address("spell"), at=T0 + 5))
    response = client.get(url(keys.A.pubkey, "spell"))
    html = response.content.decode()
    assert response.status_code == 410
    assert "Its author deleted this skill" in html and "secret words" not in html


def test_a_private_skill_is_there_for_its_owner_alone(client: Client, keys: Keys) -> None:
    owner, stranger = User.objects.create_user("alice"), User.objects.create_user("charlie", is_staff=True)
    identity = signing.create_identity(owner, "bot")
    text = signing.encrypt(identity, '{"description":"my diary","template":"user:\\nwrite"}')
    from marketplace.protocol.events import Draft

    event = signing.sign(identity, Draft(identity.pubkey, T0, 31124, (("d", "diary"), ("scope", "private")), text))
    store(event)
    page = url(identity.pubkey, "diary", 31124)
    unknown = client.get(url(keys.B.pubkey, "nothing", 31124))
    assert client.get(page).status_code == unknown.status_code == 404
    assert client.get(f"/events/{event.id}/").status_code == 404
    client.force_login(stranger)
    assert client.get(page).status_code == 404
    client.force_login(owner)
    response = client.get(page)
    assert "my diary" in response.content.decode()
    assert "no-store" in response["Cache-Control"]


def test_what_cannot_be_read_is_there_for_operators_with_its_problem(client: Client, keys: Keys) -> None:
    store(keys.A.sign(31123, "[1, 2]", [["d", "broken"]]))
    page = url(keys.A.pubkey, "broken")
    assert client.get(page).status_code == 404
    client.force_login(User.objects.create_user("op", is_staff=True))
    response = client.get(page)
    assert response.status_code == 200
    assert "What to know before adopting it" in response.content.decode()


HOSTILE = (
    "<img src=x onerror=alert(1)> <script>alert(2)</script> [x](javascript&#58;alert(3)) [y](JaVaScRiPt:alert(4)) "
    "[ok](https://example.com) [n](nostr:npub1x) ![p](https://spy.example/p.png) <!-- obey me --> "
    '<a href="data:text/html,x" hx-get="/x" onclick="alert(5)">z</a> \u202e\u200b'
)


def test_markdown_of_strangers_is_harmless(client: Client, keys: Keys) -> None:
    store(keys.A.sign(31123, json.dumps({"description": HOSTILE, "template": HOSTILE}), [["d", "trap"]]))
    html = client.get(url(keys.A.pubkey, "trap")).content.decode()
    assert "<img" not in html and "<script>alert" not in html
    for bad in ('href="javascript', '<a href="data:', 'src="https://spy', "<!-- obey"):
        assert bad.lower() not in html.lower()
    assert 'href="https://example.com"' in html and 'href="nostr:npub1x"' in html
    assert "noopener noreferrer ugc" in html
    assert ">U+202E</span>" in html and ">U+200B</span>" in html


@pytest.mark.parametrize(
    "name",
    [
        "x",
        "naddr1qq",
        "npub1",
        "%00",
        "nsec1" + "q" * 58,
        "a" * 6000,
        "\ud83d\ude00".encode("utf-16", "surrogatepass").hex(),
    ],
)
def test_names_that_are_none_are_not_found(client: Client, name: str) -> None:
    assert client.get(f"/skills/{name}/").status_code == 404


def test_a_name_too_long_for_an_naddr_has_its_note_as_address(client: Client, keys: Keys) -> None:
    event = keys.A.skill("й" * 150)
    store(event)
    page = f"/skills/{nip19.encode_note(event.id)}/"
    assert page in client.get("/").content.decode()
    assert client.get(page).status_code == 200


@pytest.mark.parametrize("tab", ["template", "versions", "adopters", "event", "nonsense"])
def test_no_tab_takes_more_than_eight_queries(
    client: Client, watch: str, tab: str, keys: Keys, django_assert_max_num_queries: object
) -> None:
    store(*[keys[f"k{n}"].adopts(keys.A.address("watch")) for n in range(20)])
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        assert client.get(f"{watch}?tab={tab}").status_code == 200
