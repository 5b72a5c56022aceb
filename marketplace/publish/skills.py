"""Skills: from a spec to a signed event on relays; private ones are readable by their own key only."""

from typing import Any

from marketplace import signing
from marketplace.models import Identity, Publication
from marketplace.protocol import checks, kinds
from marketplace.protocol.events import Address, Draft, Event
from marketplace.protocol.skills import SkillSpec, kind_of, write_skill
from marketplace.publish import sending
from marketplace.publish.errors import Unpublishable


def unsigned_skill(identity: Identity, spec: SkillSpec, now: int) -> Draft:
    """The next version as it will be signed. Raises NotWritable (problems) or PublishError."""
    kind = kind_of(spec)
    content, tags = write_skill(spec)
    if kind == kinds.PRIVATE_SKILL:
        content = signing.encrypt(identity, content)
    at = sending.next_time(Address(kind, identity.pubkey, spec.d), now)
    return Draft(identity.pubkey, at, kind, tags, content)


def skill(identity: Identity, spec: SkillSpec, now: int, form_token: str = "") -> Publication:
    """Sign a skill and send it to every write relay; its answers stand in the publication.

    The same form token gives the first publication again. Raises NotWritable, PublishError, signing.NotHeld.
    """
    earlier = sending.first(identity, form_token)
    if earlier:
        return sending.answered(earlier)
    event = signing.sign(identity, unsigned_skill(identity, spec, now))
    return _publish(identity, event, now, form_token)


def signed_skill(
    identity: Identity,
    handed: Draft,
    raw: dict[str, Any] | str,
    now: int,
    form_token: str = "",
) -> Publication:
    """Send what a browser or remote signer made of the draft it was handed.

    Raises checks.Refused, signing.Differs or PublishError.
    """
    earlier = sending.first(identity, form_token)
    if earlier:
        return sending.answered(earlier)
    event = signing.accept(handed, raw)
    if checks.too_far_ahead(event, now):
        raise Unpublishable("Your signer dated the event in the future; check its clock.")
    return _publish(identity, event, now, form_token)


def _publish(identity: Identity, event: Event, now: int, form_token: str) -> Publication:
    urls = sending.write_relays(identity)
    publication, new = sending.record(identity, event, f"publish {event.value('d')}", urls, form_token)
    if not new:
        return sending.answered(publication)
    return sending.send(publication, urls, now)
