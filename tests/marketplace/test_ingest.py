"""Whatever the order, relay and repetition: the same events give the same catalogue."""

import json

import pytest

from marketplace import ingest, signals
from marketplace.ingest import Incoming
from marketplace.models import (
    Adoption,
    ArchivedEvent,
    Author,
    CatalogueVersion,
    Facet,
    HeldEvent,
    Relay,
    Sighting,
    Skill,
    Tombstone,
)
from marketplace.protocol.events import Event
from tests.keys import T0, Keys

pytestmark = pytest.mark.django_db
NOW = T0 + 10_000


def store(*events: object, now: int = NOW, relay: str = "") -> list[str]:
    return [outcome.outcome for outcome in ingest.store([Incoming(event, relay) for event in events], now)]


def listed() -> dict[str, str]:
    return dict(Skill.objects.public().values_list("d", "description"))


def changed(event: Event, **fields: object) -> dict[str, object]:
    return {**event.to_dict(), **fields}


# --- N01, N03: which version, which address --------------------------------


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_versions_in_one_second_the_lowest_id_stands(keys: Keys, order: tuple[int, int]) -> None:
    versions = [keys.A.skill("tie", "one"), keys.A.skill("tie", "two")]
    assert versions[1].id < versions[0].id
    for index in order:
        store(versions[index], relay=f"wss://relay{index}.example.com")
    assert listed() == {"tie": "two"}


def test_missing_bare_and_empty_d_are_one_address(keys: Keys) -> None:
    content = keys.A.skill("x").content
    spellings = [keys.A.sign(31123, content, tags) for tags in ([], [["d"]], [["d", ""]])]
    store(*spellings)
    assert [skill.event_id for skill in Skill.objects.all()] == [min(event.id for event in spellings)]
    assert Skill.objects.get().address == f"31123:{keys.A.pubkey}:"


def test_a_tag_without_a_name_is_refused(keys: Keys) -> None:
    assert store(changed(keys.A.skill("x"), tags=[[]])) == ["refused"]


def test_only_the_first_d_counts_and_it_may_hold_colons(keys: Keys) -> None:
    event = keys.A.sign(31123, keys.A.skill("x").content, [["d", "a:b:c"], ["d", "other"]])
    store(event, keys.B.adopts(f"31123:{keys.A.pubkey}:a:b:c"))
    assert Skill.objects.get().d == "a:b:c"
    assert Skill.objects.get().adopters == 1


def test_an_older_version_is_kept_but_not_shown_and_dates_the_skill_back(keys: Keys) -> None:
    assert store(keys.A.skill("s", "new", T0 + 5), keys.A.skill("s", "old", T0)) == ["stored", "older"]
    skill = Skill.objects.get()
    assert (skill.description, skill.created_at, skill.first_published) == ("new", T0 + 5, T0)
    assert ArchivedEvent.objects.count() == 2


# --- N05: deletions in time -------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_deletion_covers_versions_up_to_its_second_wherever_it_stands(keys: Keys, place: int) -> None:
    versions = [keys.A.skill("tie", str(at), T0 + at) for at in (0, 50, 51)]
    events = list(versions)
    events.insert(place, keys.A.deletes(keys.A.address("tie"), at=T0 + 50))
    for event in events:
        store(event)
    assert store(*versions[:2], now=NOW + 86_400) == ["deleted", "deleted"]
    assert listed() == {"tie": "51"}
    assert Skill.objects.get().first_published == T0 + 51


def test_a_deletion_alone_takes_the_skill_off_the_list(keys: Keys) -> None:
    store(keys.A.skill("s"), keys.B.adopts(keys.A.address("s")))
    assert store(keys.A.deletes(keys.A.address("s"), at=T0 + 1)) == ["stored"]
    assert not Skill.objects.exists()
    assert ArchivedEvent.objects.get(kind=31123).gone
    store(keys.A.skill("s", "again", T0 + 2))
    assert Skill.objects.get().adopters == 1


def test_deleting_the_newest_by_id_brings_back_the_one_before(keys: Keys) -> None:
    old, new = keys.A.skill("s", "old", T0), keys.A.skill("s", "new", T0 + 1)
    store(old, new, keys.A.deletes(new.id, at=T0 + 2))
    assert listed() == {"s": "old"}


def test_nobody_deletes_what_another_key_signed(keys: Keys) -> None:
    event = keys.A.skill("s")
    store(event, keys.B.deletes(keys.A.address("s"), event.id, at=T0 + 9))
    assert listed() == {"s": "one"}
    assert Tombstone.objects.count() == 1  # by id: whose it is shows only when the event is there


def test_deleting_a_deletion_changes_nothing(keys: Keys) -> None:
    deletion = keys.A.deletes(keys.A.address("s"), at=T0 + 5)
    store(deletion, keys.A.deletes(deletion.id, at=T0 + 6))
    assert store(keys.A.skill("s")) == ["deleted"]


@pytest.mark.parametrize("tags", [[], [["a"]], [["a", ""]], [["e", ""]], [["a", "31123:zz:s"]], [["a", "31123"]]])
def test_an_empty_target_touches_nothing(keys: Keys, tags: list[list[str]]) -> None:
    store(keys.A.skill("s"), keys.A.sign(5, "", tags, T0 + 5))
    assert listed() == {"s": "one"}
    assert not Tombstone.objects.exists()


def test_a_deleted_list_is_no_list(keys: Keys) -> None:
    store(keys.A.skill("s"), keys.B.adopts(keys.A.address("s")))
    store(keys.B.deletes(f"10123:{keys.B.pubkey}:", at=T0 + 1))
    assert Skill.objects.get().adopters == 0
    assert not Adoption.objects.exists()


# --- 62: vanish --------------------------------------------------------------


def test_who_vanishes_is_purged_and_stays_out(keys: Keys) -> None:
    store(keys.A.skill("s"), keys.A.profile("Ann"), keys.B.skill("b"), keys.A.adopts(keys.B.address("b")))
    assert Skill.objects.get(d="b").adopters == 1
    store(keys.A.vanishes(T0 + 10))
    assert store(keys.A.skill("s", "again", T0 + 10)) == ["deleted"]
    assert listed() == {"b": "one"}
    assert Skill.objects.get().adopters == 0
    assert not Author.objects.exists()
    assert set(ArchivedEvent.objects.values_list("pubkey", "kind")) == {(keys.A.pubkey, 62), (keys.B.pubkey, 31123)}
    assert store(keys.A.skill("s", "later", T0 + 11)) == ["stored"]


def test_vanishing_from_another_relay_asks_nothing_of_us(keys: Keys) -> None:
    store(keys.A.skill("s"), keys.A.sign(62, "", [["relay", "wss://elsewhere.example.com"]], T0 + 1))
    assert listed() == {"s": "one"}


# --- time ---------------------------------------------------------------------


def test_an_event_from_the_future_is_held_until_due(keys: Keys) -> None:
    assert store(keys.A.skill("s", "now", NOW), keys.A.skill("s", "later", NOW + 901)) == ["stored", "held"]
    assert store(keys.A.skill("s", "edit", NOW + 1)) == ["stored"]
    assert ingest.release_held(NOW) == []
    assert listed() == {"s": "edit"}
    assert [outcome.outcome for outcome in ingest.release_held(NOW + 1)] == ["stored"]
    assert listed() == {"s": "later"}
    assert not HeldEvent.objects.exists()


@pytest.mark.parametrize("at", [-1, 1.5, "1760000000", True, None, T0 * 1000, 2**63])
def test_a_time_that_is_none_is_refused(keys: Keys, at: object) -> None:
    assert store(changed(keys.A.skill("s"), created_at=at)) == ["refused"]
    if isinstance(at, int) and 0 < at < 2**53 and at is not True:
        assert store(keys.A.skill("s", at=at)) == ["refused"]


def test_what_expired_disappears_when_due(keys: Keys) -> None:
    event = keys.A.skill("s", "new", T0 + 1, [["expiration", str(NOW + 5)]])
    assert store(keys.A.skill("s", "old"), event) == ["stored", "stored"]
    assert Skill.objects.get().expires_at == NOW + 5
    assert ingest.expire(NOW + 4) == 0
    assert ingest.expire(NOW + 5) == 1
    assert listed() == {"s": "old"}
    assert store(event, now=NOW + 6) == ["expired"]


# --- N09, N10: bytes ------------------------------------------------------------


def test_ids_are_of_unescaped_text(keys: Keys) -> None:
    content = 'line\nquote" back\\ tab\t cr\r bs\b ff\f slash/ é 🍕 \u2028 \u007f'
    event = keys.A.sign(31123, content, [["d", "esc"]])
    assert event.id == "8907e8ad85dbd0b411c593160279c5ce8052cd9d27d84c3ffe69b0c69949d59e"
    assert store(changed(event, id="3ed3e703" + event.id[8:]), event.to_json()) == ["refused", "stored"]
    assert ArchivedEvent.objects.get().problem.startswith("The content is not a JSON object")
    assert Skill.objects.get().state == "unreadable"
    assert listed() == {}


def test_nul_is_kept_without_loss_and_takes_nothing_with_it(keys: Keys) -> None:
    odd = keys.A.sign(31123, "a\0b\x1fc", [["d", "ctl"]])
    named = keys.A.sign(31123, json.dumps({"description": "x\0y"}), [["d", "n\0l"], ["t", "a\0"]])
    described = keys.A.sign(31123, json.dumps({"description": "x\0y"}), [["d", "fine"], ["t", "a\0"]])
    assert store(keys.A.skill("before"), odd, named, described, keys.A.skill("after")) == ["stored"] * 5
    assert json.loads(ArchivedEvent.objects.get(pk=odd.id).raw)["content"] == "a\0b\x1fc"
    assert listed() == {"before": "one", "after": "one", "fine": "x\ufffdy"}
    assert "cannot be listed" in ArchivedEvent.objects.get(pk=named.id).problem


def test_a_name_too_long_for_a_column_is_archived_and_not_listed(keys: Keys) -> None:
    assert store(keys.A.skill("n" * 30_000), keys.A.skill("m" * 30_000)) == ["stored", "stored"]
    assert listed() == {}
    assert store(keys.A.deletes(keys.A.address("n" * 30_000), at=T0 + 1), keys.A.skill("n" * 30_000)) == [
        "stored",
        "deleted",
    ]


# --- N11, Y05: counting -------------------------------------------------------------


def test_upper_case_entries_do_not_count(keys: Keys) -> None:
    store(keys.A.skill("tie"), keys.B.adopts(f"31123:{keys.A.pubkey.upper()}:tie"))
    assert Skill.objects.get().adopters == 0
    assert Skill.objects.count() == 1


def test_one_adopter_counts_once_by_their_newest_list(keys: Keys) -> None:
    address = keys.A.address("s")
    store(keys.A.skill("s"), keys.B.adopts(*[address] * 50), keys.A.adopts(address))
    assert Skill.objects.get().adopters == 1  # an author's own is shown, not counted
    assert Adoption.objects.filter(counted=False).count() == 1
    store(*(keys.B.adopts(address, at=T0 + at) for at in range(1, 11)))
    assert Skill.objects.get().adopters == 1
    assert store(keys.B.adopts(at=T0 + 20), keys.B.adopts(address, at=T0 + 15)) == ["stored", "older"]
    assert Skill.objects.get().adopters == 0
    assert not Adoption.objects.filter(adopter=keys.B.pubkey).exists()


def test_naming_a_skill_that_comes_later_counts_when_it_is_there(keys: Keys) -> None:
    store(keys.B.adopts(keys.A.address("s"), keys.A.address("never")))
    store(keys.A.skill("s"))
    assert Skill.objects.get().adopters == 1


def test_a_burst_of_fresh_keys_counts_each_once(keys: Keys) -> None:
    store(keys.A.skill("s"))
    store(*(keys[f"fresh{n}"].adopts(keys.A.address("s"), at=T0 + n % 60) for n in range(300)))
    assert Skill.objects.get().adopters == 300


def test_entries_keep_their_order(keys: Keys) -> None:
    wanted = [keys.A.address(d) for d in "cab"]
    store(keys.B.adopts(*wanted))
    assert list(Adoption.objects.order_by("position").values_list("address", flat=True)) == wanted


# --- the door itself ----------------------------------------------------------------


def test_every_mutation_of_a_good_event_is_refused_and_leaves_no_row(keys: Keys) -> None:
    good = keys.A.skill("s")
    other = keys.B.skill("s")
    mutations = [
        changed(good, content=other.content + " "),
        changed(good, created_at=T0 + 1),
        changed(good, kind=31124),
        changed(good, tags=[["d", "t"]]),
        changed(good, pubkey=keys.B.pubkey),
        changed(good, pubkey="f" * 64),
        changed(good, id=other.id),
        changed(good, id=good.id.upper()),
        changed(good, sig=other.sig),
        changed(good, sig=""),
        changed(good, sig=good.sig[:-2]),
        changed(good, sig=None),
        {name: value for name, value in good.to_dict().items() if name != "sig"},
        "{",
        "[]",
        "",
        b"\xff",
        good.to_json().replace('"kind":31123', '"kind":31123,"kind":1'),
        '{"id":' + "[" * 5000,
    ]
    outcomes = ingest.store([Incoming(raw) for raw in mutations], NOW)
    assert [outcome.outcome for outcome in outcomes] == ["refused"] * len(mutations)
    assert all(outcome.reason for outcome in outcomes)
    assert not ArchivedEvent.objects.exists()
    assert not Skill.objects.exists()


def test_a_bad_event_does_not_take_its_batch_with_it(keys: Keys) -> None:
    batch = [keys.A.skill("a"), changed(keys.A.skill("b"), sig="0" * 128), keys.A.skill("c"), keys.A.sign(1, "hello")]
    assert store(*batch) == ["stored", "refused", "stored", "ignored"]


def test_a_forged_copy_of_a_known_event_is_refused(keys: Keys) -> None:
    good = keys.A.skill("s")
    store(good)
    assert store(changed(good, content="{}"), good) == ["refused", "duplicate"]


def test_repetition_is_a_duplicate_and_notes_the_relay(keys: Keys) -> None:
    event = keys.A.skill("s")
    assert store(event, event, relay="wss://one.example.com") == ["stored", "duplicate"]
    store(event, relay="wss://two.example.com")
    store(event, relay="wss://two.example.com")
    assert Sighting.objects.filter(event_id=event.id).count() == 2
    assert not Relay.objects.get(url="wss://two.example.com").reads


def test_private_skills_are_never_listed(keys: Keys) -> None:
    store(keys.A.sign(31124, "sealed", [["d", "mine"]]), keys.A.sign(31124, '{"template":"x"}', [["d", "clear"]]))
    assert listed() == {}
    assert set(Skill.objects.values_list("d", "state")) == {("mine", "live"), ("clear", "live")}


def test_columns_and_facets_follow_the_current_version(keys: Keys) -> None:
    content = {
        "description": "d",
        "template": "t",
        "llm": "a/b, cheap",
        "tools": ["nostr_post"],
        "context_mode": "full",
    }
    tags = [["d", "s"], ["t", "Writing"], ["trigger", "cron"], ["schedule", "0 7 * * *"]]
    store(keys.A.profile("Ann"), keys.A.sign(31123, json.dumps(content), tags))
    skill = Skill.objects.get()
    assert (skill.llm, skill.tools, skill.topics, skill.generation) == ("a/b, cheap", ["nostr_post"], ["Writing"], "A")
    assert (skill.context_rule, skill.trigger_kind, skill.action) == ("full", "cron", "llm")
    assert set(Facet.objects.values_list("name", "value")) == {("topic", "writing"), ("tool", "nostr_post")}
    store(keys.A.skill("s", "plain", T0 + 1))
    assert not Facet.objects.exists()
    assert Skill.objects.get().trigger_kind == ""


def test_a_skill_is_found_by_its_authors_name_whichever_came_first(keys: Keys) -> None:
    store(keys.A.skill("a"), keys.A.profile("Ann"), keys.B.profile("Bob"), keys.B.skill("b"))
    assert [skill.d for skill in Skill.objects.public().search("ann")] == ["a"]
    assert [skill.d for skill in Skill.objects.public().search("bob")] == ["b"]
    store(keys.A.profile("Zoë", T0 + 1))
    assert not Skill.objects.public().search("ann")
    assert Author.objects.get(pk=keys.A.pubkey).name == "Zoë"


def test_a_skill_is_not_found_by_a_name_that_its_author_deleted(keys: Keys) -> None:
    store(keys.A.skill("a", at=T0 + 5), keys.A.profile("Ann"), keys.B.skill("b"), keys.B.profile("Bob"))
    store(keys.A.vanishes(T0 + 1), keys.B.deletes(f"0:{keys.B.pubkey}:", at=T0 + 1))
    assert not Skill.objects.public().search("ann")
    assert not Skill.objects.public().search("bob")
    assert set(listed()) == {"a", "b"}


def test_write_relays_come_from_the_newest_relay_list(keys: Keys) -> None:
    tags = [["r", "wss://a.example.com/"], ["r", "wss://b.example.com", "read"], ["r", "nonsense"], ["r"]]
    store(keys.A.sign(10002, "", tags, T0 + 1), keys.A.sign(10002, "", [["r", "wss://old.example.com"]], T0))
    assert Author.objects.get().write_relays == ["wss://a.example.com"]


def test_the_catalogue_has_a_new_number_only_when_it_changed(keys: Keys) -> None:
    event = keys.A.skill("s")
    store(event)
    number = CatalogueVersion.current()
    assert number > 0
    store(event, keys.A.sign(3, "", []), keys.B.deletes(event.id))
    assert CatalogueVersion.current() == number
    store(keys.B.adopts(keys.A.address("s")))
    assert CatalogueVersion.current() > number


@pytest.mark.django_db(transaction=True)
def test_what_was_stored_is_told_after_commit(keys: Keys) -> None:
    told: list[str] = []

    def listen(outcomes: list[ingest.Outcome], **_: object) -> None:
        told.extend(outcome.id for outcome in outcomes)

    signals.stored.connect(listen)
    try:
        event = keys.A.skill("s")
        store(event, keys.A.skill("s", "old", T0 - 1))
        store(event)
    finally:
        signals.stored.disconnect(listen)
    assert told == [event.id]
