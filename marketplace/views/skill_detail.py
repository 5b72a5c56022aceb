"""One skill: what it tells a model, what fires it, who adopted it, and the signed event behind all of it."""

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from marketplace import signing
from marketplace.models import Adoption, ArchivedEvent, Identity, Sighting, Skill
from marketplace.protocol import nip19
from marketplace.protocol.events import Address
from marketplace.protocol.kinds import PRIVATE_SKILL, SKILL, SKILLS
from marketplace.views import kept, listing, paste
from marketplace.views.sheet import Sheet, current_version

TABS = {"template": "Template", "versions": "Versions", "adopters": "Adopters", "runs": "Runs here", "event": "Event"}
PER_PAGE = 100
UNKNOWN = "No relay we read has shown us this skill. It appears here by itself when one does."


@dataclass(frozen=True, slots=True)
class Reader:
    """A skill and the key that opens it, where the viewer has it."""

    skill: Skill
    identity: Identity | None

    @property
    def owns(self) -> bool:
        return self.identity is not None


@require_safe
@kept.for_visitors
def skill(request: HttpRequest, name: str) -> HttpResponse:
    address = address_of(name)
    if isinstance(address, str):
        return HttpResponsePermanentRedirect(address)
    reader = find(request, address)
    if reader is None:
        return _gone(request, address)
    tab = request.GET.get("tab", "template")
    tab = tab if tab in TABS else "template"
    context = _context(request, reader, address) | {"tab": tab}
    context |= {"versions": _versions, "adopters": _adopters}.get(tab, _nothing)(request, reader.skill)
    response = render(request, "marketplace/skill.html", context)
    if reader.skill.kind == PRIVATE_SKILL:
        response.headers["Cache-Control"] = "private, no-store"
    return response


def find(request: HttpRequest, address: Address) -> Reader | None:
    """The skill, for those who may see it: a private or unreadable one is there for its owner alone.

    None where there is no skill at the address. Raises Http404 for those who may not know.
    """
    row = Skill.objects.filter(kind=address.kind, pubkey=address.pubkey, d=address.d).first()
    identity = None
    if row and request.user.is_authenticated:
        identity = Identity.objects.filter(user=request.user, pubkey=address.pubkey).first()
    if row is None:
        return None
    hidden = row.kind == PRIVATE_SKILL or row.state == "unreadable"
    if hidden and identity is None and not _may_inspect(request, row):
        raise Http404(UNKNOWN)
    return Reader(row, identity)


def _gone(request: HttpRequest, address: Address) -> HttpResponse:
    """What its author took back, or what had an end date; raises Http404 where we never had anything."""
    held = ArchivedEvent.objects.filter(kind=SKILL, pubkey=address.pubkey, d=address.d, gone=True)
    last = held.order_by("-created_at", "id").first() if address.kind == SKILL else None
    if last is None:
        raise Http404(UNKNOWN)
    context = {
        "name": address.d,
        "pubkey": address.pubkey,
        "expired": last.expires_at is not None and last.expires_at <= int(timezone.now().timestamp()),
        "adopters": Adoption.objects.filter(address=str(address), counted=True).count(),
    }
    return render(request, "marketplace/skill_gone.html", context, status=410)


def _may_inspect(request: HttpRequest, row: Skill) -> bool:
    """Operators see what could not be read, never what is private."""
    return row.kind != PRIVATE_SKILL and bool(getattr(request.user, "is_staff", False))


def address_of(name: str) -> Address | str:
    """The address a name stands for, or the one URL it should be asked under."""
    try:
        entity = nip19.decode(name)
        if isinstance(entity, nip19.Naddr):
            if entity.address.kind not in SKILLS:
                raise Http404(f"This names an event of kind {entity.address.kind}, not a skill.")
            if "\x00" in entity.address.d:  # no database can be asked for it
                raise Http404(UNKNOWN)
            canonical = nip19.encode_naddr(entity.address)
            return entity.address if name == canonical else reverse("skill", args=[canonical])
        url = paste.page_of(entity)
    except ValueError as error:
        raise Http404(str(error)) from None
    if url != reverse("skill", args=[name]):
        return url
    # The name is too long for an naddr, so the note itself is its page.
    row = ArchivedEvent.objects.get(pk=entity.id)  # type: ignore[union-attr]
    return Address(row.kind, row.pubkey, row.d)


def _context(request: HttpRequest, reader: Reader, address: Address) -> dict[str, Any]:
    skill, wanted = reader.skill, request.GET.get("version", "")
    row = version_of(skill, wanted) if wanted else current_version(skill)
    if row is None:
        raise Http404("We do not hold this version. Its author may have deleted it.")
    sheet = Sheet.of(row, plaintext_of(reader.identity, row))
    relays = Sighting.objects.filter(event=row).order_by("relay__url").values_list("relay__url", flat=True)
    return {
        "skill": skill,
        "sheet": sheet,
        "spec": sheet.spec,
        "received_at": row.received_at,
        "earlier": row.pk != skill.event_id,
        "naddr": listing.naddr(skill),
        "url": listing.skill_url(skill),
        "npub": nip19.encode_npub(skill.pubkey),
        "author_name": listing.names([skill.pubkey])[skill.pubkey],
        "relays": list(relays[:50]),
        "tabs": TABS if request.user.is_authenticated else {k: v for k, v in TABS.items() if k != "runs"},
        "owns": reader.owns,
    }


def plaintext_of(identity: Identity | None, row: ArchivedEvent) -> str | None:
    """A private skill in clear, where its key is held here."""
    if row.kind != PRIVATE_SKILL or identity is None or identity.custody != Identity.Custody.HELD:
        return None
    try:
        return signing.decrypt(identity, Sheet.of(row).event.content)
    except ValueError:
        return None  # the sheet says that it is encrypted


def version_of(skill: Skill, event_id: str) -> ArchivedEvent | None:
    return versions(skill).filter(pk=event_id[:64]).first() if event_id.isalnum() else None


def versions(skill: Skill) -> Any:
    """What we hold of it and its author did not take back, newest first."""
    held = ArchivedEvent.objects.filter(kind=skill.kind, pubkey=skill.pubkey, d=skill.d, gone=False)
    return held.order_by("-created_at", "id")


def _versions(request: HttpRequest, skill: Skill) -> dict[str, Any]:
    rows = [(row, Sheet.of(row)) for row in versions(skill)[:PER_PAGE]]
    return {"versions": rows, "more": len(rows) == PER_PAGE}


def _adopters(request: HttpRequest, skill: Skill) -> dict[str, Any]:
    """Keys whose current list names the skill; an author's own entry is shown, not counted."""
    after = request.GET.get("after", "")
    found = Adoption.objects.filter(address=skill.address, counted=True).order_by("adopter")
    if after.isalnum():
        found = found.filter(adopter__gt=after[:64])
    page = list(found[: PER_PAGE + 1])
    rows, more = page[:PER_PAGE], len(page) > PER_PAGE
    own = Adoption.objects.filter(address=skill.address, counted=False) if not after else Adoption.objects.none()
    rows += list(own[:1])
    called = listing.names(row.adopter for row in rows)
    adopters = [(row, nip19.encode_npub(row.adopter), called[row.adopter]) for row in rows]
    return {"adopters": adopters, "after": page[PER_PAGE - 1].adopter if more else ""}


def _nothing(request: HttpRequest, skill: Skill) -> dict[str, Any]:
    return {}
