"""Owners make agents, set them up, and switch them off; keys go in and never come out."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.engine.disclosure import USAGE_RULES
from agents.models import Agent, Budget, Change, ProviderKey, Run, Trigger
from agents.tools import TOOLS
from marketplace import signing
from marketplace.models import Identity, User
from marketplace.protocol import nip19, nostr
from tests.agents import rows

pytestmark = pytest.mark.django_db
NSEC = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5"  # of NIP-19's own example
PUBKEY = "7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e"


@pytest.fixture
def alice(client: Client) -> User:
    user = rows.owner()
    client.force_login(user)
    return user


@pytest.fixture
def own(alice: User) -> Agent:
    return rows.agent(alice, "Scout", llm="")


def settings_of(own: Agent, **changes: Any) -> dict[str, Any]:
    return {"name": own.name, "soul": "", "admin_pubkey": "", "llm": "", "aliases": "", "relays": ""} | changes


def test_a_first_visit_says_what_to_do_next(alice: User, client: Client) -> None:
    assert b"Make your first agent" in client.get("/agents/").content


def test_a_new_agent_has_a_key_no_rights_and_a_dollar_a_day(alice: User, client: Client) -> None:
    response = client.post("/agents/new/", {"name": "Späher 日本", "key": "new"})
    made = Agent.objects.get(owner=alice)
    assert response["Location"].endswith("/settings/") and made.slug == "späher-日本"
    assert made.grants == ["read_skill_file", "skill"] and Budget.objects.get(agent=made).limit == Decimal(1)
    assert made.identity.sealed and client.get(response["Location"]).status_code == 200
    assert client.session["agent"] == made.pk


def test_a_pasted_key_is_sealed_and_never_shown(alice: User, client: Client) -> None:
    client.post("/agents/new/", {"name": "Old friend", "key": "paste", "nsec": NSEC})
    made = Agent.objects.get(owner=alice)
    assert made.identity.pubkey == PUBKEY and "nsec" not in str(made.identity.__dict__)
    for page in ("", "settings/", "grants/"):
        assert b"nsec1vl0" not in client.get(f"/agents/{made.slug}/{page}").content
    again = client.post("/agents/new/", {"name": "Twice", "key": "paste", "nsec": NSEC})
    assert again.status_code == 422 and "You have this key already" in again.content.decode()


@pytest.mark.parametrize("nsec", ["", "nsec1qqqq", "0" * 64, "npub1"])
def test_a_key_that_is_none_is_refused_and_not_shown_again(alice: User, client: Client, nsec: str) -> None:
    response = client.post("/agents/new/", {"name": "x", "key": "paste", "nsec": nsec})
    assert response.status_code == 422 and not Agent.objects.exists() and not Identity.objects.exists()
    assert not nsec or f'value="{nsec}"'.encode() not in response.content


TEXTS = [
    "name",
    "soul",
    "admin_pubkey",
    "llm",
    "aliases",
    "usage_rules",
    "relays",
    "dm_recipients",
    "max_tokens",
    "day",
]


@pytest.mark.parametrize("field", TEXTS)
def test_a_secret_key_in_any_setting_is_neither_kept_nor_shown(own: Agent, client: Client, field: str) -> None:
    given = f"x = openai/{NSEC.upper()}" if field == "aliases" else f"wss://x.test/{NSEC}"
    page = client.post("/agents/scout/settings/", settings_of(own, **{field: given}))
    assert page.status_code == 422 and b"This held a secret key" in page.content
    assert b"nsec1vl0" not in page.content.lower() + client.get("/agents/scout/settings/").content.lower()


@pytest.mark.parametrize("field", ["provider", "base_url", "key"])
def test_a_nostr_key_is_no_key_for_a_provider(own: Agent, client: Client, field: str) -> None:
    page = client.post("/agents/scout/keys/", {"provider": "openai", "key": "sk-1", field: NSEC})
    assert page.status_code == 422 and NSEC.encode() not in page.content and not ProviderKey.objects.exists()


def test_a_soul_may_speak_of_keys(own: Agent, client: Client) -> None:
    typed = settings_of(own, soul="Never repeat what begins with nsec1 or looks like it.")
    assert client.post("/agents/scout/settings/", typed).status_code == 302


def test_a_secret_key_as_a_name_is_not_shown_again(alice: User, client: Client) -> None:
    page = client.post("/agents/new/", {"name": NSEC, "key": "new"})
    assert page.status_code == 422 and NSEC.encode() not in page.content and not Agent.objects.exists()


HIDDEN = [
    f"Scout{chr(point)}" for point in (0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x202A, 0x202E, 0x2066, 0x2069, 0xFEFF)
]


@pytest.mark.parametrize("name", [*HIDDEN, "\u200b\u200b", "\u202eadmin", "\u3164"], ids=ascii)
def test_a_name_that_cannot_be_seen_as_it_is_is_refused(alice: User, client: Client, name: str) -> None:
    page = client.post("/agents/new/", {"name": name, "key": "new"})
    assert page.status_code == 422 and "only characters that can be seen" in page.content.decode()
    assert not Agent.objects.exists()
    own = rows.agent(alice, "Scout", llm="")
    page = client.post("/agents/scout/settings/", settings_of(own, name=name))
    assert page.status_code == 422 and f"U+{ord(name.strip('Scoutadmin')[0]):04X}" in page.content.decode()
    own.refresh_from_db()
    assert own.name == "Scout"


@pytest.mark.parametrize("name", ["Späher 日本", "👩\u200d🔬 lab", "می\u200cخواهم", "עוזר"])
def test_a_name_in_any_script_is_taken(alice: User, client: Client, name: str) -> None:
    assert client.post("/agents/new/", {"name": name, "key": "new"}).status_code == 302
    assert Agent.objects.get().name == name


def test_a_name_from_before_stays_until_it_is_changed(alice: User, client: Client) -> None:
    own = rows.agent(alice, "Sc\u200bout", llm="")
    assert client.post(f"/agents/{own.slug}/settings/", settings_of(own, soul="Be kind.")).status_code == 302


def test_two_agents_of_one_name_get_two_addresses(alice: User, client: Client) -> None:
    for _ in range(2):
        client.post("/agents/new/", {"name": "New", "key": "new"})
    assert sorted(Agent.objects.values_list("slug", flat=True)) == ["new-2", "new-3"]  # "new" is a page


def test_settings_are_kept_as_typed(own: Agent, client: Client) -> None:
    admin = nostr.public_key(nostr.generate_secret())
    typed = settings_of(
        own,
        soul="system:\nBe kind.",
        admin_pubkey=nip19.encode_npub(admin),
        llm="cheap",
        aliases="cheap = openai/gpt-4o-mini, ollama/llama3\nbest=anthropic/x",
        max_tokens="512",
        temperature="0.5",
        relays="wss://relay.example/\nwss://relay.example",
        day="0.25",
        month="",
    )
    assert client.post("/agents/scout/settings/", typed).status_code == 302
    own.refresh_from_db()
    assert (own.admin_pubkey, own.relays, own.max_tokens) == (admin, ["wss://relay.example"], 512)
    assert own.aliases == {"cheap": "openai/gpt-4o-mini, ollama/llama3", "best": "anthropic/x"}
    assert Budget.objects.get(agent=own).limit == Decimal("0.25")
    page = client.get("/agents/scout/settings/").content.decode()
    assert nip19.encode_npub(admin) in page and "cheap = openai/gpt-4o-mini, ollama/llama3" in page


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("admin_pubkey", NSEC, "secret key"),
        ("admin_pubkey", "npub1nope", "not a key"),
        ("soul", f"my key is {NSEC}", "secret key"),
        ("relays", "https://relay.example", "wss://"),
        ("relays", "wss://user:pass@relay.example", "password"),
        ("aliases", "cheap openai", "name = provider/model"),
        ("temperature", "nan", ""),
        ("temperature", "3", "Between 0 and 2"),
        ("max_tokens", "0", "Between 1"),
        ("name", "nul\x00", ""),
        ("day", "-1", ""),
    ],
)
def test_what_cannot_be_is_said_beside_its_field(
    own: Agent, client: Client, field: str, value: str, words: str
) -> None:
    response = client.post("/agents/scout/settings/", settings_of(own, **{field: value}))
    assert response.status_code == 422 and field in response.context["form"].errors
    assert words in response.content.decode()
    own.refresh_from_db()
    assert own.name == "Scout" and own.soul == "" and own.relays == []


def test_a_provider_key_goes_in_and_never_comes_out(own: Agent, client: Client, settings: Any) -> None:
    settings.ALLOW_ADDRESSES = ["127.0.0.0/8"]
    given = {"provider": "openai", "base_url": "http://127.0.0.1:11434/v1", "key": "sk-very-secret"}
    client.post("/agents/scout/keys/", given)
    row = ProviderKey.objects.get(agent=own)
    assert "sk-very" not in row.sealed and signing.unseal(row.sealed) == "sk-very-secret"
    page = client.get("/agents/scout/settings/").content.decode()
    assert "sealed" in page and "sk-very" not in page and row.sealed not in page
    bad = client.post("/agents/scout/keys/", {**given, "base_url": "file:///etc/passwd"})
    assert bad.status_code == 422 and b"sk-very" not in bad.content
    client.post(f"/agents/scout/keys/{row.pk}/remove/")
    assert not ProviderKey.objects.exists()


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        *[
            (url, "not a public address")
            for url in (
                "http://169.254.169.254/",
                "http://127.0.0.1:8230/v1",
                "http://localhost:11434/v1",
                "http://box.localhost/v1",
                "http://LOCALHOST./v1",
                "http://2130706433/v1",
                "http://127.1/v1",
                "http://[::1]:11434/v1",
                "http://[::ffff:10.0.0.1]/v1",
                "http://192.168.1.5:11434/v1",
            )
        ],
        ("https://llm.example/v1?api_key=sk-CANARY", "Leave out what follows"),
        ("https://llm.example/v1#sk-CANARY", "Leave out what follows"),
        ("https://llm.example/v1?", "Leave out what follows"),
    ],
)
def test_an_address_that_could_never_work_is_refused_beside_its_field(
    own: Agent, client: Client, base_url: str, words: str
) -> None:
    page = client.post("/agents/scout/keys/", {"provider": "openai", "base_url": base_url, "key": "sk-1"})
    assert page.status_code == 422 and words in str(page.context["key_form"].errors["base_url"])
    assert not ProviderKey.objects.exists() and not Change.objects.filter(what="provider key").exists()


@pytest.mark.parametrize("base_url", ["http://ollama.lan:11434/v1", "https://8.8.8.8/v1", "https://llm.example/v1"])
def test_a_public_address_or_a_name_is_kept_and_no_name_is_looked_up(
    own: Agent, client: Client, monkeypatch: pytest.MonkeyPatch, base_url: str
) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: pytest.fail("looked up"))
    client.post("/agents/scout/keys/", {"provider": "openai", "base_url": base_url, "key": "sk-1"})
    assert ProviderKey.objects.get().base_url == base_url


@pytest.mark.parametrize("allowed", ["localhost", "localhost.", "127.0.0.1", "10.0.0.0/8"])
def test_an_address_the_operator_allows_is_kept(own: Agent, client: Client, settings: Any, allowed: str) -> None:
    settings.ALLOW_ADDRESSES = ["127.0.0.1" if allowed == "localhost." else allowed]
    host = allowed.replace("0.0/8", "0.7")
    client.post("/agents/scout/keys/", {"provider": "ollama", "base_url": f"http://{host}:11434/v1"})
    assert ProviderKey.objects.get().base_url == f"http://{host}:11434/v1"


def test_the_rules_for_skills_on_demand_are_the_sites_the_owners_or_none(own: Agent, client: Client) -> None:
    page = client.get("/agents/scout/settings/").content.decode()
    assert "call the `skill` tool with the exact" in page
    for sent, kept in ((USAGE_RULES, None), ("Only on Mondays.", "Only on Mondays."), ("", "")):
        client.post("/agents/scout/settings/", settings_of(own, usage_rules=sent))
        own.refresh_from_db()
        assert own.usage_rules == kept
    client.post("/agents/scout/settings/", settings_of(own))  # a form without the field leaves it alone
    own.refresh_from_db()
    assert own.usage_rules == ""


def test_what_is_hidden_and_how_long_descriptions_are_is_kept_beside_other_limits(own: Agent, client: Client) -> None:
    Agent.objects.filter(pk=own.pk).update(limits={"skill_tokens": 100})
    client.post("/agents/scout/settings/", settings_of(own, hidden_skills="a\nb\n", catalog_length="40"))
    own.refresh_from_db()
    assert own.limits == {"skill_tokens": 100, "hidden_skills": ["a", "b"], "catalogDescriptionMaxLength": 40}
    page = client.get("/agents/scout/settings/").content.decode()
    assert "a\nb</textarea>" in page and 'value="40"' in page
    wrong = client.post("/agents/scout/settings/", settings_of(own, hidden_skills="c", catalog_length="2"))
    assert wrong.status_code == 422 and "c</textarea>" in wrong.content.decode()
    own.refresh_from_db()
    assert own.limits["hidden_skills"] == ["a", "b"]
    client.post("/agents/scout/settings/", settings_of(own))
    own.refresh_from_db()
    assert own.limits == {"skill_tokens": 100}


def test_grants_show_each_tools_risk_and_take_only_what_exists(own: Agent, client: Client) -> None:
    page = client.get("/agents/scout/grants/").content.decode()
    assert all(name in page for name in TOOLS) and "badge-warning" in page
    client.post("/agents/scout/grants/", {"grant": ["nostr_post", "rm_rf"]})
    own.refresh_from_db()
    assert own.grants == ["nostr_post"]


def test_the_kill_switch_stops_what_is_open_and_disarms(own: Agent, client: Client) -> None:
    run = rows.run(own, status="running")
    client.post("/agents/scout/enabled/", {"enabled": "off"})
    own.refresh_from_db()
    run.refresh_from_db()
    assert not own.enabled and run.status == Run.Status.CANCELLED
    assert b"Switched off" in client.get("/agents/").content
    client.post("/agents/scout/enabled/", {"enabled": "on"})
    own.refresh_from_db()
    assert own.enabled


def test_attention_comes_first(own: Agent, client: Client) -> None:
    rows.run(own, status="waiting", reason="approval")
    rows.run(own, status="failed")
    address = f"31123:{'a' * 64}:x"
    trigger = Trigger.objects.create(
        agent=own, address=address, event_id="b" * 64, kind="cron", armed_at=0, usable=False, problem="No schedule."
    )
    page = client.get("/agents/scout/").content.decode()
    for words in ("1 run waits for your approval", "1 run failed", "1 trigger cannot fire", "no admin"):
        assert words in page
    assert page.index("waits for your approval") < page.index("Latest runs")
    assert (
        "offline echo, not a language model" in page
        and "No schedule." in client.get("/agents/scout/triggers/").content.decode()
    )
    client.post(f"/agents/scout/triggers/{trigger.pk}/", {"autonomy": "auto"})
    trigger.refresh_from_db()
    assert trigger.autonomy == "auto"
    client.post(f"/agents/scout/triggers/{trigger.pk}/", {"enabled": "off"})
    trigger.refresh_from_db()
    assert not trigger.enabled


def test_the_switcher_is_kept_and_goes_back_only_here(own: Agent, alice: User, client: Client) -> None:
    second = rows.agent(alice, "Second")
    response = client.post("/agents/switch/", {"agent": "second", "next": "//evil.example/"})
    assert response["Location"] == "/agents/" and client.session["agent"] == second.pk
    assert client.post("/agents/switch/", {"agent": "scout", "next": "/costs/"})["Location"] == "/costs/"
    answer = client.post("/agents/switch/", {"agent": "scout"}, headers={"HX-Request": "true"})
    assert answer["HX-Refresh"] == "true"


def test_pages_take_few_queries_however_many_agents(
    alice: User, client: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(5):
        rows.run(rows.agent(alice, f"Agent{number}"), status="failed")
    client.get("/agents/")  # the state of the site is remembered for some seconds
    for address, most in {"/agents/": 12, "/agents/agent0/": 14, "/runs/": 6}.items():
        with django_assert_max_num_queries(most):
            assert client.get(address).status_code == 200
