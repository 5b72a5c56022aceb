"""Adopting: the list is read before it is replaced, nothing of it is lost, and rights come with the click."""

import json
import re
import threading

import pytest
from django.db import connection

from agents.models import AdoptedSkill, Agent, Budget, Change, Trigger
from marketplace import ingest, publish, signing
from marketplace.models import Adoption, Identity, Skill, User
from marketplace.protocol import kinds, nip19, nostr
from marketplace.protocol.adoptions import read_adoptions
from marketplace.protocol.events import Address, Draft, Event
from tests.told_relay import ToldRelay

AUTHOR = "21" * 32
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice():
    return User.objects.create_user("alice")


@pytest.fixture
def agent(alice):
    identity = signing.create_identity(alice, "demo")
    return Agent.objects.create(owner=alice, identity=identity, name="Demo", slug="demo", grants=["nostr_query"])


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr("marketplace.publish.sending.OK_SECONDS", 0.7)
    monkeypatch.setattr("marketplace.publish.lists.FETCH_SECONDS", 0.7)
    monkeypatch.setattr("marketplace.publish.lists.PATIENCE", 3.0)


@pytest.fixture
def now():
    from django.utils import timezone

    return int(timezone.now().timestamp())


def skill_at(now, d="writer", *tags, **content):
    content = {"description": f"about {d}", "template": "Do it.", **content}
    draft = Draft(nostr.public_key(AUTHOR), now - 100, kinds.SKILL, (("d", d), *tags), json.dumps(content))
    event = nostr.sign(draft, AUTHOR)
    ingest.store([ingest.Incoming(event)], now)
    return event


def list_at(identity, at, *tags, content=""):
    return signing.sign(identity, Draft(identity.pubkey, at, kinds.ADOPTIONS, tags, content))


def use(settings, *relays):
    settings.WRITE_RELAYS = settings.RELAYS = [relay.url for relay in relays]


def listed(agent):
    rows = Adoption.objects.filter(adopter=agent.identity.pubkey).order_by("position")
    return [row.address.split(":", 2)[2] for row in rows]


def test_the_count_follows_on_a_real_relay(relay, agent, now):
    event = skill_at(now)
    publication = publish.adopt(agent.identity, event.address, now)
    assert publication.accepted
    assert Skill.objects.get(d="writer").adopters == 1
    assert publish.adopt(agent.identity, event.address, now) is None
    assert publish.unadopt(agent.identity, event.address, now).accepted
    assert Skill.objects.get(d="writer").adopters == 0


def test_what_another_client_adopted_meanwhile_and_what_we_do_not_know_stays(settings, agent, now):
    old = list_at(agent.identity, now - 500, ("a", f"31123:{'ab' * 32}:old"))
    newer = list_at(
        agent.identity,
        now - 50,
        ("a", f"31123:{'ab' * 32}:elsewhere", "wss://hint.example"),
        ("x-odd", "1", "2"),
        ("a", f"31123:{'AB' * 32}:upper"),
        content="somebody's encrypted list",
    )
    ingest.store([ingest.Incoming(old)], now)
    with ToldRelay() as relay:
        use(settings, relay)
        relay.events.append(newer.to_dict())
        publication = publish.adopt(agent.identity, skill_at(now).address, now)
    event = Event.from_dict(json.loads(publication.raw))
    assert event.content == "somebody's encrypted list"
    assert event.tags[:3] == newer.tags
    assert [address.d for address in read_adoptions(event).addresses] == ["elsewhere", "writer"]
    assert listed(agent) == ["elsewhere", "writer"]


def test_the_archives_list_counts_when_it_is_newer_than_the_relays(settings, agent, now):
    held = list_at(agent.identity, now - 10, ("a", f"31123:{'ab' * 32}:kept"))
    ingest.store([ingest.Incoming(held)], now)
    with ToldRelay() as relay:
        use(settings, relay)
        relay.events.append(list_at(agent.identity, now - 500).to_dict())
        publish.adopt(agent.identity, skill_at(now).address, now)
    assert listed(agent) == ["kept", "writer"]


@pytest.mark.parametrize("answer", ["silent", "no-end"])
def test_without_an_answer_to_its_end_nothing_is_written(settings, agent, now, answer):
    with ToldRelay(answer) as relay:
        use(settings, relay)
        with pytest.raises(publish.NoRelayAnswered, match="was not replaced"):
            publish.adopt(agent.identity, skill_at(now).address, now)
    assert relay.received == []
    assert Identity.objects.get(pk=agent.identity_id).lease_token == ""


def test_one_relay_that_answers_is_enough_and_the_other_is_named(settings, agent, now):
    with ToldRelay("silent") as mute, ToldRelay() as good:
        use(settings, mute, good)
        publication = publish.adopt(agent.identity, skill_at(now).address, now)
    assert {answer.url: answer.ok for answer in publication.answers.all()} == {mute.url: False, good.url: True}


def test_a_list_dated_in_the_future_is_not_written_under(settings, agent, now):
    with ToldRelay() as relay:
        use(settings, relay)
        relay.events.append(list_at(agent.identity, now + 5_000).to_dict())
        with pytest.raises(publish.StaleList, match="in the future"):
            publish.adopt(agent.identity, skill_at(now).address, now)
    assert relay.received == []


def test_two_at_once_lose_neither(settings, agent, now):
    addresses = [skill_at(now, name).address for name in ("a", "b", "c")]

    def adopt(address):
        try:
            publish.adopt(Identity.objects.get(pk=agent.identity_id), address, now)
        finally:
            connection.close()

    with ToldRelay() as relay:
        use(settings, relay)
        threads = [threading.Thread(target=adopt, args=(address,)) for address in addresses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sorted(listed(agent)) == ["a", "b", "c"]


def test_a_writer_who_holds_the_lease_is_waited_for_and_then_said(settings, agent, now, monkeypatch):
    from django.utils import timezone

    monkeypatch.setattr("marketplace.publish.lists.PATIENCE", 0.2)
    assert agent.identity.take_lease("other", timezone.now(), 60)
    with pytest.raises(publish.Busy):
        publish.adopt(agent.identity, skill_at(now).address, now)


def test_reordering_needs_the_list_as_it_is(settings, agent, now):
    a, b = (skill_at(now, name).address for name in "ab")
    with ToldRelay() as relay:
        use(settings, relay)
        publish.adopt(agent.identity, a, now)
        publish.adopt(agent.identity, b, now)
        with pytest.raises(publish.StaleList):
            publish.reorder(agent.identity, [a], now)
        publish.reorder(agent.identity, [b, a], now)
    assert listed(agent) == ["b", "a"]


# --- in the browser -----------------------------------------------------------


def test_the_question_comes_before_the_click(client, alice, agent, now):
    trigger = (("trigger", "nostr-subscription"), ("filter", '{"kinds":[1],"#p":["<agent_pubkey>"]}'))
    event = skill_at(now, "answer", *trigger, tools=["nostr_post", "nostr_query", "shell"])
    client.force_login(alice)
    page = client.get("/adopt/", {"address": str(event.address)}).content.decode()
    assert "When there is a note mentioning the agent" in page
    assert 'name="grant" value="nostr_post"' in page
    assert "granted already" in page
    assert "suggest" in page
    assert "shell" in page


def test_adopting_grants_what_was_ticked_pins_what_was_seen_and_starts_in_suggest(relay, client, alice, agent, now):
    trigger = (("trigger", "nostr-subscription"), ("filter", '{"kinds":[1],"#p":["<agent_pubkey>"]}'))
    event = skill_at(now, "answer", *trigger, tools=["nostr_post", "http_fetch"])
    client.force_login(alice)
    sent = {"agent": "demo", "address": str(event.address), "event": event.id, "grant": ["nostr_post", "nostr_dm_send"]}
    answer = client.post("/adopt/", sent, headers={"HX-Request": "true"})
    page = answer.content.decode()
    assert "Adopted by Demo" in page
    assert "1 adopter<" in page
    agent.refresh_from_db()
    assert agent.grants == ["nostr_post", "nostr_query"]  # what it did not ask for is not granted with it
    assert AdoptedSkill.objects.get(agent=agent).pinned_event == event.id
    assert Trigger.objects.get(agent=agent).autonomy == "suggest"
    client.post("/unadopt/", {"agent": "demo", "address": str(event.address)})
    assert not AdoptedSkill.objects.exists()
    assert not Trigger.objects.exists()


def test_a_version_that_came_since_is_shown_instead_of_adopted(relay, client, alice, agent, now):
    event = skill_at(now)
    client.force_login(alice)
    newer = nostr.sign(Draft(event.pubkey, now - 5, event.kind, event.tags, '{"template":"Other."}'), AUTHOR)
    ingest.store([ingest.Incoming(newer)], now)
    client.post("/adopt/", {"agent": "demo", "address": str(event.address), "event": event.id})
    assert not AdoptedSkill.objects.exists()
    assert listed(agent) == []


def test_a_relay_that_refuses_is_named_and_nothing_is_granted(settings, client, alice, agent, now):
    event = skill_at(now, tools=["nostr_post"])
    client.force_login(alice)
    with ToldRelay() as relay:
        use(settings, relay)
        relay.answer = "refuse"
        sent = {"agent": "demo", "address": str(event.address), "event": event.id, "grant": ["nostr_post"]}
        page = client.post("/adopt/", sent, headers={"HX-Request": "true"}).content.decode()
    assert f"{relay.url} refused: blocked: pay first" in page
    agent.refresh_from_db()
    assert agent.grants == ["nostr_query"]
    assert not AdoptedSkill.objects.exists()


def test_the_list_page_moves_drags_and_drops_skills(relay, client, alice, agent, now):
    addresses = [str(skill_at(now, name).address) for name in "abc"]
    client.force_login(alice)
    for address in addresses:
        publish.adopt(agent.identity, Address.parse(address), now)
    page = client.get("/agents/demo/skills/").content.decode()
    assert page.index(">a</a>") < page.index(">b</a>") < page.index(">c</a>")
    client.post("/reorder/", {"agent": "demo", "address": addresses[2], "move": "up"})
    assert listed(agent) == ["a", "c", "b"]
    client.post("/reorder/", {"agent": "demo", "address": addresses})
    assert listed(agent) == ["a", "b", "c"]


def test_a_name_that_hides_characters_shows_them_before_and_after_adopting(client, alice, agent, now):
    tags = (("trigger", "nostr-subscription"), ("filter", '{"#t":["\u202etxet"]}'))
    event = skill_at(now, "safe\u202egnp.exe", *tags, tools=["\u202eloot"])
    client.force_login(alice)
    asked = client.get("/adopt/", {"address": str(event.address)}).content.decode()
    AdoptedSkill.objects.create(agent=agent, address=str(event.address), pinned_event=event.id)
    for page in (asked, client.get("/agents/demo/skills/").content.decode()):
        assert "U+202E" in page and "\u202e" not in re.sub(r"<[^>]*>", "", page)


def test_the_list_page_takes_few_queries_however_long_it_is(client, alice, agent, now, django_assert_max_num_queries):
    for name in "abcdefgh":
        event = skill_at(now, name)
        AdoptedSkill.objects.create(agent=agent, address=str(event.address), pinned_event=event.id)
    client.force_login(alice)
    with django_assert_max_num_queries(12):
        assert client.get("/agents/demo/skills/").status_code == 200


def test_a_stranger_finds_nothing_and_the_anonymous_are_asked_to_sign_in(client, agent, now):
    event = skill_at(now)
    naddr = nip19.encode_naddr(event.address)
    for path in ("/adopt/", "/unadopt/", "/reorder/", "/agents/demo/skills/"):
        assert client.get(path, {"address": str(event.address)}).status_code == 302
    fragment = client.get(
        "/adopt/button/",
        {"address": str(event.address)},
        headers={"HX-Request": "true", "HX-Current-URL": f"http://testserver/skills/{naddr}/"},
    )
    assert f"?next=/skills/{naddr}/" in fragment.content.decode()
    client.force_login(User.objects.create_user("charlie"))
    assert client.get("/agents/demo/skills/").status_code == 404
    for path in ("/adopt/", "/unadopt/", "/reorder/"):
        assert client.post(path, {"agent": "demo", "address": str(event.address)}).status_code == 404


def test_somebody_elses_private_skill_cannot_be_offered(client, alice, agent, now):
    other = signing.create_identity(User.objects.create_user("bob"), "bobs")
    content = signing.encrypt(other, '{"template":"hush"}')
    event = signing.sign(other, Draft(other.pubkey, now - 5, kinds.PRIVATE_SKILL, (("d", "p"),), content))
    ingest.store([ingest.Incoming(event)], now)
    client.force_login(alice)
    assert client.get("/adopt/", {"address": str(event.address)}).status_code == 404


# --- Adopt and arm in one flow ---------------------------------------------------------


def armable(now, *tools, **wanted):
    wanted = wanted or {"kinds": [1], "#p": ["<admin_pubkey>", "<agent_pubkey>"]}
    tags = (("trigger", "nostr-subscription"), ("filter", json.dumps(wanted)), ("tools", *tools))
    return skill_at(now, "writer", *tags)


@pytest.fixture
def armed(client, alice, agent, relay, now):
    """The skill, with an owner who looks at it."""
    client.force_login(alice)
    return armable(now, "nostr_post")


def adopting(event, **given):
    return {"agent": "demo", "address": str(event.address), "event": event.id, "grant": ["nostr_post"], **given}


def test_the_filter_stands_filled_in_words_and_as_it_is_before_the_click(client, alice, agent, armed):
    page = client.get("/adopt/", {"address": str(armed.address)}).content.decode()
    assert "Demo has no admin: it will not fire until you" in page
    agent.admin_pubkey = nostr.public_key("33" * 32)
    agent.save()
    page = client.get("/adopt/", {"address": str(armed.address)}).content.decode()
    assert (
        "mentioning the agent or you" in page and "Here “you” is the admin of Demo" in page and "no admin" not in page
    )
    assert agent.admin_pubkey in page and agent.identity.pubkey in page and "&lt;admin_pubkey&gt;" not in page


def test_what_writes_asks_first_unless_its_owner_says_otherwise(client, armed):
    client.post("/adopt/", adopting(armed))
    trigger = Trigger.objects.get()
    assert trigger.autonomy == "suggest"
    client.post("/unadopt/", {"agent": "demo", "address": str(armed.address)})
    assert not Trigger.objects.exists()
    client.post("/adopt/", adopting(armed, autonomy="auto"))
    assert Trigger.objects.get().autonomy == "auto"
    assert ["autonomy: suggest → auto"] in [one.words for one in Change.objects.filter(what="trigger")]


def test_its_budget_is_set_with_the_click(client, agent, armed):
    client.post("/adopt/", adopting(armed, budget="0.25"))
    budget = Budget.objects.get(agent=agent)
    assert (budget.scope, budget.target, budget.period, str(budget.limit)[:4]) == (
        "trigger", str(armed.address), "day", "0.25",
    )  # fmt: skip
    assert Change.objects.filter(what="budgets").count() == 1


@pytest.mark.parametrize("htmx", [{}, {"HX-Request": "true"}])
@pytest.mark.parametrize(
    "given", [{"budget": "-1"}, {"budget": "much"}, {"budget": "1e999"}, {"budget": "9" * 200_000}, {"autonomy": "\0x"}]
)
def test_bad_input_is_said_beside_its_field_and_nothing_is_adopted(client, agent, armed, given, htmx):
    sent = adopting(armed, carry="demand", **given)
    response = client.post("/adopt/", sent, headers=htmx)
    page = response.content.decode()
    assert response.status_code == 422 and 'class="error"' in page
    assert re.search(r'value="nostr_post" checked', page) and re.search(r'value="demand" checked', page)
    assert not AdoptedSkill.objects.exists() and not Budget.objects.exists()


def test_when_no_relay_takes_the_list_the_budget_goes_too(client, alice, agent, settings, now):
    client.force_login(alice)
    event = armable(now, "nostr_post")
    with ToldRelay("refuse") as relay:
        use(settings, relay)
        client.post("/adopt/", adopting(event, budget="1", autonomy="auto"))
    assert not AdoptedSkill.objects.exists() and not Budget.objects.exists()


def test_what_only_reads_is_not_asked_about(client, alice, agent, relay, now):
    client.force_login(alice)
    event = armable(now, "nostr_query", kinds=[1])
    page = client.get("/adopt/", {"address": str(event.address)}).content.decode()
    assert 'name="autonomy"' not in page and 'name="budget"' in page
    client.post("/adopt/", adopting(event, autonomy="suggest"))
    assert Trigger.objects.get().autonomy == "auto"
