"""Identities: a key generated or pasted once, what it signs, and what a browser signed instead."""

from typing import Any

from django.db import IntegrityError, transaction
from django.views.decorators.debug import sensitive_variables

from marketplace.models import Identity, User
from marketplace.protocol import checks, direct, nostr
from marketplace.protocol.events import Draft, Event
from marketplace.signing import vault


class NotHeld(Exception):
    """This site does not hold the key: its owner signs elsewhere."""


class Differs(Exception):
    """What came back signed is not what was handed out."""


@sensitive_variables()
def create_identity(user: User, label: str, nsec: str | None = None) -> Identity:
    """A key held here: generated, or the pasted nsec (or 64 hex digits). Raises ValueError in words."""
    if nsec is None:
        secret = nostr.generate_secret()
    else:
        try:
            secret = nostr.read_secret(nsec.strip())
        except ValueError:
            # From None: the original names what it was given.
            raise ValueError("This is not a secret key: it starts with nsec1 or has 64 hex digits.") from None
    return _keep(
        Identity(
            user=user,
            label=label,
            pubkey=nostr.public_key(secret),
            custody=Identity.Custody.HELD,
            sealed=vault.seal(secret),
        )
    )


def register_browser_key(user: User, label: str, pubkey: str) -> Identity:
    """A key that stays in the owner's browser; every signature is made there and checked by `accept`."""
    return _keep(Identity(user=user, label=label, pubkey=pubkey, custody=Identity.Custody.BROWSER))


def _keep(identity: Identity) -> Identity:
    try:
        with transaction.atomic():
            identity.save()
    except IntegrityError:
        known = Identity.objects.get(user=identity.user, pubkey=identity.pubkey)
        raise ValueError(f"You have this key already, as “{known.label}”.") from None
    return identity


@sensitive_variables()
def sign(identity: Identity, draft: Draft) -> Event:
    """The signed event. Raises NotHeld for a key that is elsewhere, Differs when the draft names another key."""
    if draft.pubkey != identity.pubkey:
        raise Differs("The event names another key than the one that should sign it.")
    return nostr.sign(draft, _secret(identity))


def accept(draft: Draft, raw: dict[str, Any] | str) -> Event:
    """An event signed elsewhere (NIP-07, NIP-46): valid, and equal to the draft in pubkey, kind, tags and content.

    The time may differ, signers set their own. Raises checks.Refused or Differs.
    """
    event = checks.check(raw)
    handed = {"key": draft.pubkey, "kind": draft.kind, "tags": draft.tags, "content": draft.content}
    returned = {"key": event.pubkey, "kind": event.kind, "tags": event.tags, "content": event.content}
    different = [name for name, value in handed.items() if returned[name] != value]
    if different:
        raise Differs(f"What was signed is not what you wrote: {', '.join(different)} changed. Nothing was published.")
    return event


@sensitive_variables()
def encrypt(identity: Identity, text: str) -> str:
    """Text for the key itself (NIP-44), as private skills are stored."""
    return nostr.encrypt_to_self(_secret(identity), text)


@sensitive_variables()
def decrypt(identity: Identity, payload: str) -> str:
    """What the key's owner encrypted for itself: NIP-44, NIP-04, or JSON in clear. Raises ValueError."""
    return nostr.decrypt_own(_secret(identity), identity.pubkey, payload)


@sensitive_variables()
def gift_wrap(identity: Identity, receiver: str, text: str) -> Event:
    """A direct message to a key (NIP-17), ready to be sent to the receiver's relays."""
    return nostr.gift_wrap(_secret(identity), receiver, text)


@sensitive_variables()
def unwrap(identity: Identity, event: Event) -> tuple[str, str]:
    """Sender and text of a message to this key (NIP-17). Raises ValueError."""
    message = direct.read(_secret(identity), event)
    return message.sender, message.text


@sensitive_variables()
def read_message(identity: Identity, event: Event) -> direct.DirectMessage:
    """A direct message that this key got or wrote, of either kind. Raises ValueError."""
    return direct.read(_secret(identity), event)


@sensitive_variables()
def write_legacy(identity: Identity, receiver: str, text: str, now: int) -> Event:
    """A direct message as kind 4 (NIP-04), signed."""
    return direct.write_legacy(_secret(identity), receiver, text, now)


@sensitive_variables()
def _secret(identity: Identity) -> str:
    if identity.custody != Identity.Custody.HELD or not identity.sealed:
        raise NotHeld(f"The key “{identity.label}” is {identity.get_custody_display()}: it signs there, not here.")
    return vault.unseal(identity.sealed)
