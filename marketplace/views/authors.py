"""One key: what it says of itself, the skills it signed, and what it adopted."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from marketplace import rankings
from marketplace.models import Adoption, Author, Skill
from marketplace.protocol import nip19
from marketplace.protocol.events import Address
from marketplace.protocol.kinds import SKILL
from marketplace.views import kept, listing

MAX_ADOPTED = 200


@require_safe
@kept.for_visitors
def author(request: HttpRequest, npub: str) -> HttpResponse:
    try:
        pubkey = nip19.read_key(npub)
    except ValueError as error:
        raise Http404(str(error)) from None
    canonical = nip19.encode_npub(pubkey)
    if npub != canonical:
        return HttpResponsePermanentRedirect(reverse("author", args=[canonical]))
    profile = Author.objects.filter(pk=pubkey).first()
    asked = listing.read(request.GET)
    try:
        skills, following = rankings.page(Skill.objects.public().filter(pubkey=pubkey), "adoption", asked.cursor, 50)
    except ValueError:
        skills, following = [], None
    adopted = _adopted(pubkey)
    if profile is None and not skills and not adopted and not asked.cursor:
        raise Http404("No relay we read has shown us anything by this key.")
    context = {
        "pubkey": pubkey,
        "npub": canonical,
        "profile": profile,
        "rows": [(row, False) for row in listing.rows(list(skills), asked.at)],
        "next": listing.Asked(cursor=following, at=asked.at + 50).query() if following else "",
        "first_page": not asked.cursor,
        "adopted": adopted,
    }
    return render(request, "marketplace/author.html", context)


def _adopted(pubkey: str) -> list[tuple[Adoption, str, Skill | None, str]]:
    """The key's current list in its order: entry, name, the skill where we know it, its page. Private ones stay out."""
    entries = Adoption.objects.filter(adopter=pubkey).order_by("position", "pk")[:MAX_ADOPTED]
    parsed = [(entry, Address.parse(entry.address)) for entry in entries]
    addresses = [(entry, address) for entry, address in parsed if address and address.kind == SKILL]
    keys = {address.pubkey for _, address in addresses}
    names = {address.d for _, address in addresses}
    found = Skill.objects.public().filter(pubkey__in=keys, d__in=names)[: 10 * MAX_ADOPTED]
    known = {skill.address: skill for skill in found}
    rows = []
    for entry, address in addresses:
        skill = known.get(entry.address)
        rows.append((entry, address.d, skill, listing.skill_url(skill) if skill else ""))
    return rows
