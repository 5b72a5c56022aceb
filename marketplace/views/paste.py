"""What somebody pastes into the search: an npub, naddr, note, nostr: link, coordinate or address of a page."""

import re

from django.urls import reverse

from marketplace.models import ArchivedEvent, Skill
from marketplace.protocol import nip19
from marketplace.protocol.events import HEX64, Address
from marketplace.protocol.kinds import SKILL, SKILLS

_NAME = re.compile(r"(?:nostr:)?((?:npub|naddr|note|nevent|nprofile)1[02-9ac-hj-np-z]+)\Z", re.IGNORECASE)


class PrivateKey(ValueError):
    """A private key was pasted; it must not be shown, kept or searched for."""


def destination(text: str) -> str:
    """The page the text names, "" where it is a search. Raises PrivateKey, or ValueError in words."""
    text = text.strip()
    if nip19.looks_like_nsec(text):
        raise PrivateKey
    # The address of a page of any site that ends in such a name.
    found = _NAME.match(text.rstrip("/").rpartition("/")[2] if "://" in text else text)
    if found:
        return page_of(nip19.decode(found.group(1)))
    address = Address.parse(text)
    if address and address.kind in SKILLS:
        return _skill_page(address)
    if HEX64.match(text.lower()):
        return _event_page(text.lower()) or reverse("author", args=[nip19.encode_npub(text.lower())])
    return ""


def page_of(entity: nip19.Entity) -> str:
    """Raises ValueError in words for what has no page here."""
    if isinstance(entity, nip19.Npub | nip19.Nprofile):
        return reverse("author", args=[nip19.encode_npub(entity.pubkey)])
    if isinstance(entity, nip19.Naddr):
        if entity.address.kind not in SKILLS:
            raise ValueError(f"This names an event of kind {entity.address.kind}, not a skill.")
        return _skill_page(entity.address)
    url = _event_page(entity.id)
    if not url:
        raise ValueError("No relay we read has shown us this event as a skill.")
    return url


def _skill_page(address: Address) -> str:
    try:
        return reverse("skill", args=[nip19.encode_naddr(address)])
    except ValueError:
        skill = Skill.objects.filter(kind=address.kind, pubkey=address.pubkey, d=address.d).first()
        return reverse("skill", args=[nip19.encode_note(skill.event_id)]) if skill else ""


def _event_page(event_id: str) -> str:
    event = ArchivedEvent.objects.filter(pk=event_id, kind=SKILL).first()
    return _skill_page(Address(event.kind, event.pubkey, event.d)) if event else ""
