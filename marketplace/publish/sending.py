"""One signed event on its way: its row first, then the relays, each answer kept, then the catalogue."""

import json
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from django.conf import settings
from django.db import IntegrityError, transaction

from marketplace import ingest, relays
from marketplace.models import ArchivedEvent, Author, Identity, Publication, RelayAnswer
from marketplace.protocol import checks
from marketplace.protocol.events import Address, Event
from marketplace.publish.errors import Unpublishable

OK_SECONDS = 8.0  # how long a relay may take to say OK
MOST_RELAYS = 10  # per publication; a relay list is somebody's text


def write_relays(identity: Identity) -> list[str]:
    """Where the key's events go: its agent's relays or the site's, then the key's own list (NIP-65)."""
    # By the name of the relation: the agents app sits above this one, and need not be there.
    own = getattr(getattr(identity, "agent", None), "relays", None)
    author = Author.objects.filter(pubkey=identity.pubkey).first()
    wanted = [*(own or settings.WRITE_RELAYS), *(author.write_relays if author else ())]
    return list(dict.fromkeys(url.rstrip("/") for url in wanted))[:MOST_RELAYS]


def next_time(address: Address, now: int) -> int:
    """`now`, or the second after the last version we know of: two edits in one second must not tie.

    Raises Unpublishable when that is further ahead than relays take.
    """
    versions = ArchivedEvent.objects.filter(kind=address.kind, pubkey=address.pubkey, d=address.d)
    last = versions.order_by("-created_at").values_list("created_at", flat=True).first() or 0
    for raw in Publication.objects.filter(identity__pubkey=address.pubkey, kind=address.kind).order_by("-pk")[:50]:
        sent = Event.from_dict(json.loads(raw.raw))
        if sent.address == address:
            last = max(last, sent.created_at)
    if last >= now + checks.FUTURE_SECONDS:
        when = datetime.fromtimestamp(last, UTC)
        raise Unpublishable(f"The last version is dated {when:%Y-%m-%d %H:%M} UTC, in the future: wait until then.")
    return max(now, last + 1)


def first(identity: Identity, form_token: str) -> Publication | None:
    """What an earlier submit of the same form became."""
    return Publication.objects.filter(identity=identity, form_token=form_token).first() if form_token else None


def record(
    identity: Identity, event: Event, why: str, urls: Sequence[str], form_token: str = ""
) -> tuple[Publication, bool]:
    """The publication's row, and whether it is new: a double submit gets the row of the first.

    Raises Unpublishable when the event breaks the limits that every relay holds.
    """
    try:
        checks.parse(event.to_dict())
    except checks.Refused as error:
        raise Unpublishable(str(error)) from None
    row = Publication(
        identity=identity,
        event_id=event.id,
        kind=event.kind,
        raw=event.to_json(),
        why=why[:200],
        relays=list(urls),
        form_token=form_token,
    )
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        return first(identity, form_token) or Publication.objects.get(event_id=event.id), False
    return row, True


def send(publication: Publication, urls: Iterable[str], now: int) -> Publication:
    """Send the same bytes to these relays, keep each answer, and ingest what one of them took; counts follow that."""
    event = Event.from_dict(json.loads(publication.raw))
    wanted = list(urls)
    given = {answer.url: answer for answer in relays.publish(event, wanted, OK_SECONDS)} if wanted else {}
    at = datetime.fromtimestamp(now, UTC)
    for url in wanted:
        answer = given.get(url)
        ok, message = (answer.ok, answer.message) if answer else (False, "no answer")
        RelayAnswer.objects.update_or_create(
            publication=publication, url=url, defaults={"ok": ok, "message": message[:300], "at": at}
        )
    took = [url for url in wanted if url in given and given[url].ok]
    if took:
        ingest.store([ingest.Incoming(event, url) for url in took], now)
    return publication


def retry(publication: Publication, now: int) -> Publication:
    """The same event, with the same id, once more to every relay that has not said OK."""
    done = set(publication.answers.filter(ok=True).values_list("url", flat=True))
    return send(publication, [url for url in publication.relays if url not in done], now)


def answered(publication: Publication, seconds: float = 5.0) -> Publication:
    """The publication once every relay has answered, or as it is after `seconds`: for the second of two submits."""
    end = time.monotonic() + seconds
    while publication.waiting_for and time.monotonic() < end:
        time.sleep(0.1)
        publication = Publication.objects.prefetch_related("answers").get(pk=publication.pk)
    return publication
