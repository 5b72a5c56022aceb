"""The receipts: one signed event as we hold it, with the check of its signature made anew."""

import json

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from marketplace.models import ArchivedEvent, Sighting
from marketplace.protocol import nip19
from marketplace.protocol.adoptions import read_adoptions
from marketplace.protocol.events import HEX64, Event
from marketplace.protocol.kinds import ADOPTIONS, PRIVATE_SKILL, SKILL
from marketplace.views import kept, listing
from marketplace.views.paste import page_of
from marketplace.views.sheet import pretty, signature_problem

MAX_ENTRIES = 500


@require_safe
@kept.for_visitors
def event(request: HttpRequest, event_id: str) -> HttpResponse:
    """Public events that still stand. What is private or taken back is not shown here."""
    held = ArchivedEvent.objects.filter(gone=False).exclude(kind=PRIVATE_SKILL)
    row = held.filter(pk=event_id).first() if HEX64.match(event_id) else None
    if row is None:
        raise Http404("We do not hold this event, or its author took it back.")
    found = Event.from_dict(json.loads(row.raw))
    adoptions = read_adoptions(found) if row.kind == ADOPTIONS else None
    entries = adoptions.entries[:MAX_ENTRIES] if adoptions else ()
    context = {
        "event": found,
        "json": pretty(row.raw),
        "signature": signature_problem(found),
        "received_at": row.received_at,
        "npub": nip19.encode_npub(row.pubkey),
        "author_name": listing.names([row.pubkey])[row.pubkey],
        "relays": Sighting.objects.filter(event=row).order_by("relay__url").values_list("relay__url", flat=True)[:50],
        "adoptions": adoptions,
        "entries": [(entry.address.d, _page(entry.address), entry.hint) for entry in entries],
        "skill_url": page_of(nip19.Note(row.pk)) if row.kind == SKILL else "",
    }
    return render(request, "marketplace/event.html", context)


def _page(address: object) -> str:
    try:
        return page_of(nip19.Naddr(address))  # type: ignore[arg-type]
    except ValueError:
        return ""
