"""Any permutation with repeats gives the state of a small reference model, and a rebuild gives it again."""

import os
import random
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marketplace import ingest, recount
from marketplace.ingest import Incoming
from marketplace.models import Adoption, ArchivedEvent, Author, Facet, Skill, Tombstone
from marketplace.protocol.events import Event
from tests.keys import T0, Key, Keys

NOW = T0 + 1_000
EXAMPLES = int(os.environ.get("TEST_EXAMPLES", "25"))  # more with TEST_EXAMPLES=…
SIGNED: dict[tuple[Any, ...], Event] = {}


def reference(events: list[Event], now: int) -> dict[str, Any]:
    """What the catalogue must show, said as plainly as possible."""
    unique = {event.id: event for event in events if event.created_at <= now + 900}

    def gone(event: Event) -> bool:
        own = [other for other in unique.values() if other.pubkey == event.pubkey]
        if event.kind != 62 and any(other.kind == 62 and other.created_at >= event.created_at for other in own):
            return True
        if event.kind in (5, 62):
            return False
        if event.value("expiration") and int(event.value("expiration")) <= now:
            return True
        deletions = [other for other in own if other.kind == 5 and not gone(other)]
        if any(event.id in deletion.values("e") for deletion in deletions):
            return True
        return any(
            str(event.address) in deletion.values("a") and deletion.created_at >= event.created_at
            for deletion in deletions
        )

    alive = [event for event in unique.values() if not gone(event)]
    current: dict[str, Event] = {}
    for event in sorted(alive, key=lambda event: (-event.created_at, event.id)):
        if event.address:
            current.setdefault(str(event.address), event)
    adopters: dict[str, set[str]] = {}
    for event in current.values():
        if event.kind == 10123:
            for address in event.values("a"):
                adopters.setdefault(address, set()).add(event.pubkey)
    return {
        address: (
            event.id,
            min(other.created_at for other in alive if str(other.address) == address),
            len(adopters.get(address, set()) - {event.pubkey}),
        )
        for address, event in current.items()
        if event.kind == 31123
    }


def shown() -> dict[str, Any]:
    rows = Skill.objects.public()
    return {skill.address: (skill.event_id, skill.first_published, skill.adopters) for skill in rows}


def everything() -> list[Any]:
    """All projections, without row numbers."""
    own = [field.name for field in Skill._meta.fields if field.name != "id"]
    return [
        list(Skill.objects.order_by("kind", "pubkey", "d").values(*own)),
        list(Facet.objects.order_by("skill__pubkey", "skill__d", "name", "value").values("name", "value")),
        list(Adoption.objects.order_by("adopter", "position").values("adopter", "address", "event_id", "counted")),
        list(Author.objects.order_by("pk").values()),
        set(Tombstone.objects.values_list("pubkey", "what", "target", "until", "by_event")),
        dict(ArchivedEvent.objects.values_list("pk", "gone")),
    ]


def event(key: Key, what: str, name: str, at: int, text: str) -> Event:
    """Signed once, since signing is what costs time here."""
    wanted = (key.name, what, name, at, text)
    if wanted not in SIGNED:
        SIGNED[wanted] = _sign(key, what, name, at, text)
    return SIGNED[wanted]


def _sign(key: Key, what: str, name: str, at: int, text: str) -> Event:
    other = Key("b" if key.name == "a" else "a")
    moment = T0 + at
    match what:
        case "delete":
            return key.deletes(key.address(name), at=moment)
        case "delete-id":
            return key.deletes(_sign(key, "skill", name, at // 2, text).id, at=moment)
        case "delete-foreign":
            return key.deletes(other.address(name), _sign(other, "skill", name, at, text).id, at=moment)
        case "delete-deletion":
            return key.deletes(_sign(key, "delete", name, at, text).id, at=moment)
        case "adopt":
            return key.adopts(*(other.address(d) for d in name + text), key.address(name), at=moment)
        case "unlist":
            return key.deletes(f"10123:{key.pubkey}:", at=moment)
        case "expired":
            return key.skill(name, text, moment, [["expiration", str(NOW - 1)]])
        case "future":
            return key.skill(name, text, moment + 5_000)
        case "vanish":
            return key.vanishes(moment)
        case "profile":
            return key.profile(text, moment)
    return key.skill(name, text, moment)


KINDS = ["skill"] * 8 + ["adopt"] * 4 + ["delete", "delete", "delete-id", "delete-foreign", "delete-deletion"]
KINDS += ["unlist", "expired", "future", "vanish", "profile"]
EVENTS = st.builds(
    event,
    st.sampled_from([Key("a"), Key("b")]),
    st.sampled_from(KINDS),
    st.sampled_from("st"),
    st.integers(0, 4),
    st.sampled_from("st"),
)


@pytest.mark.django_db
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENTS, min_size=1, max_size=24), st.randoms(use_true_random=False), st.integers(1, 9))
def test_any_order_with_repeats_gives_the_reference_model(
    events: list[Event], chance: random.Random, size: int
) -> None:
    wanted = reference(events, NOW)
    states = []
    for _ in range(2):
        delivery = events + chance.choices(events, k=len(events) // 2)
        chance.shuffle(delivery)
        with transaction.atomic():
            for start in range(0, len(delivery), size):
                ingest.store([Incoming(event) for event in delivery[start : start + size]], NOW)
            assert shown() == wanted
            states.append(everything()[:4])
            before = everything()
            ingest.rebuild(NOW)
            assert everything() == before
            transaction.set_rollback(True)
    assert states[0] == states[1]


@pytest.mark.django_db
def test_two_hundred_events_in_any_order_give_one_state(keys: Keys) -> None:
    chance = random.Random(7)
    pool = [Key("a"), Key("b")]
    events = [
        event(chance.choice(pool), chance.choice(KINDS[:-2]), chance.choice("stuv"), chance.randrange(30), "st"[n % 2])
        for n in range(200)
    ]
    wanted = reference(events, NOW)
    assert len(wanted) > 2
    for _ in range(3):
        chance.shuffle(events)
        with transaction.atomic():
            ingest.store([Incoming(item) for item in events], NOW)
            assert shown() == wanted
            transaction.set_rollback(True)


@pytest.mark.django_db
def test_a_rebuild_repairs_whatever_happened_to_projections(keys: Keys) -> None:
    ingest.store([Incoming(item) for item in _world(keys)], NOW)
    before = everything()
    Skill.objects.filter(d="s").update(adopters=99, description="wrong")
    Skill.objects.create(kind=31123, pubkey="0" * 64, d="ghost", event_id="0" * 64, created_at=1, first_published=1)
    Facet.objects.all().delete()
    Adoption.objects.filter(adopter=keys.B.pubkey).delete()
    Adoption.objects.create(adopter="1" * 64, address=keys.A.address("s"), position=0, event_id="1" * 64, listed_at=1)
    Author.objects.all().update(name="wrong")
    Author.objects.create(pubkey="2" * 64, name="ghost", profile_id="2" * 64)
    Tombstone.objects.all().delete()
    ArchivedEvent.objects.update(gone=False)
    told: list[int] = []
    ingest.rebuild(NOW, told.append)
    assert everything() == before
    assert told


@pytest.mark.django_db
def test_the_live_counts_are_what_a_full_recount_gives(keys: Keys) -> None:
    ingest.store([Incoming(item) for item in _world(keys)], NOW)
    assert recount.recount_all() == 0
    Skill.objects.update(adopters=7)
    assert recount.recount_all() == Skill.objects.count()


def _world(keys: Keys) -> list[Event]:
    return [
        keys.A.profile("Ann"),
        keys.A.skill("s", tags=[["t", "writing"]]),
        keys.A.skill("gone"),
        keys.A.deletes(keys.A.address("gone"), at=T0 + 1),
        keys.B.adopts(keys.A.address("s"), keys.A.address("gone")),
        keys.B.skill("mine", "old"),
        keys.B.skill("mine", "new", T0 + 3),
        keys.A.adopts(keys.B.address("mine"), keys.A.address("s")),
        keys.C.skill("late"),
        keys.C.vanishes(T0 + 2),
        keys.D.sign(10002, "", [["r", "wss://d.example.com"]]),
    ]
