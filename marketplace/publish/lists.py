"""The adoption list (10123): read from its relays before it is replaced, by one writer at a time."""

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from marketplace import ingest, relays, signing
from marketplace.models import ArchivedEvent, Identity, Publication, Sighting, Skill, Tombstone
from marketplace.protocol import checks, kinds
from marketplace.protocol.adoptions import AdoptionList, read_adoptions, write_adoptions
from marketplace.protocol.events import Address, Draft, Event
from marketplace.protocol.filters import Filter
from marketplace.publish import sending
from marketplace.publish.errors import Busy, NoRelayAnswered, StaleList

FETCH_SECONDS = 8.0
LEASE_SECONDS = 40  # longer than fetching and publishing together may take
PATIENCE = 5.0  # seconds to wait for another writer of the same list


def adopt(identity: Identity, address: Address, now: int) -> Publication | None:
    """Append a skill to the key's list and publish it; None when it stands there already.

    Raises PublishError, and signing.NotHeld for a key that signs elsewhere.
    """
    hint = _hint(address)
    return _change(identity, now, f"adopt {address.d}", lambda old: old.with_(address, hint))


def unadopt(identity: Identity, address: Address, now: int) -> Publication | None:
    """Publish the list without a skill; None when it is not on it. Raises as `adopt`."""
    return _change(identity, now, f"un-adopt {address.d}", lambda old: old.without(address))


def reorder(identity: Identity, addresses: Sequence[Address], now: int) -> Publication | None:
    """Publish the list in this order; None when it is so already.

    Raises StaleList when the list no longer holds just these skills, else as `adopt`.
    """

    def edit(old: AdoptionList) -> AdoptionList:
        try:
            return old.reordered(addresses)
        except ValueError:
            raise StaleList("The list changed elsewhere since you opened it: here it is as it is now.") from None

    return _change(identity, now, "reorder adopted skills", edit)


def current_list(identity: Identity, urls: Sequence[str], now: int) -> Event | None:
    """The newest list of the key: of what its relays answer now and what the archive holds.

    Raises NoRelayAnswered unless one relay answered to its end, StaleList when the newest is dated in the future.
    """
    wanted = Filter(kinds=frozenset({kinds.ADOPTIONS}), authors=frozenset({identity.pubkey}))
    fetched = relays.fetch(urls, [wanted], FETCH_SECONDS)
    if not any(fetched.finished.values()):
        names = ", ".join(urls) or "none is configured"
        raise NoRelayAnswered(
            f"No relay told us your current list ({names}), so it was not replaced. Nothing changed; try again."
        )
    ahead = [event for event in fetched.events if checks.too_far_ahead(event, now)]
    if ahead:
        when = datetime.fromtimestamp(max(event.created_at for event in ahead), UTC)
        raise StaleList(
            f"Your list is dated {when:%Y-%m-%d %H:%M} UTC, in the future: relays take no other until then."
        )
    # What another client published in the meantime is news for the catalogue too.
    ingest.store([ingest.Incoming(event) for event in fetched.events], now)
    known = [*fetched.events, *_archived(identity.pubkey)]
    # NIP-01: the newest counts; equal time, lowest id.
    return min(known, key=lambda event: (-event.created_at, event.id), default=None)


def _change(identity: Identity, now: int, why: str, edit: Callable[[AdoptionList], AdoptionList]) -> Publication | None:
    urls = sending.write_relays(identity)
    with _only_writer(identity, now) as still_mine:
        newest = current_list(identity, urls, now)
        old = read_adoptions(newest) if newest else AdoptionList()
        new = edit(old)
        if new == old:
            return None
        content, tags = write_adoptions(new)
        at = sending.next_time(Address(kinds.ADOPTIONS, identity.pubkey, ""), max(now, _after(newest)))
        event = signing.sign(identity, Draft(identity.pubkey, at, kinds.ADOPTIONS, tags, content))
        if not still_mine():
            raise Busy("Another change of this list went ahead. Nothing was published; try again.")
        publication, _ = sending.record(identity, event, why, urls)
        return sending.send(publication, urls, now)


def _after(newest: Event | None) -> int:
    return newest.created_at + 1 if newest else 0


@contextmanager
def _only_writer(identity: Identity, now: int) -> Iterator[Callable[[], bool]]:
    """Hold the key's lease; yields a check that it is still held. Raises Busy after PATIENCE."""
    token, start = secrets.token_hex(16), time.monotonic()
    while True:
        at = datetime.fromtimestamp(now + time.monotonic() - start, UTC)
        if identity.take_lease(token, at, LEASE_SECONDS):
            break
        if time.monotonic() - start > PATIENCE:
            raise Busy("Another change of this list is being published. Nothing changed; try again in a moment.")
        time.sleep(0.05)
    try:
        yield lambda: Identity.objects.filter(pk=identity.pk, lease_token=token).exists()
    finally:
        identity.give_lease(token)


def _archived(pubkey: str) -> list[Event]:
    """The archive's newest list, unless its key deleted it."""
    row = ArchivedEvent.objects.filter(kind=kinds.ADOPTIONS, pubkey=pubkey).order_by("-created_at", "id").first()
    if row is None:
        return []
    deleted = Tombstone.objects.filter(
        pubkey=pubkey, what=Tombstone.What.ADDRESS, target=f"{kinds.ADOPTIONS}:{pubkey}:", until__gte=row.created_at
    )
    return [] if deleted.exists() else [Event.from_dict(json.loads(row.raw))]


def _hint(address: Address) -> str:
    """A relay where the skill was seen, "" if none is known."""
    skill = Skill.objects.filter(kind=address.kind, pubkey=address.pubkey, d=address.d).first()
    seen = (
        Sighting.objects.filter(event_id=skill.event_id).select_related("relay").order_by("pk").first()
        if skill
        else None
    )
    return seen.relay.url if seen else ""
