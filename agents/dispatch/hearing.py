"""Direct messages to an agent: those of whom it obeys become turns, everything else is counted and left alone."""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from agents.dispatch import talking
from agents.models import Agent, Conversation, IgnoredMessage, Run
from marketplace import signing
from marketplace.models import Author
from marketplace.protocol import nip19
from marketplace.protocol.direct import DirectMessage
from marketplace.protocol.events import Event
from marketplace.protocol.storable import storable
from marketplace.protocol.triggers import delivery_key

log = logging.getLogger(__name__)

LONGEST = 60_000  # characters; a gift wrap holds hardly more
MOST_OPEN = 50  # unanswered messages of one writer
REMEMBERED_DAYS = 5  # longer than a gift wrap's date may lie in the past
MOST_REMEMBERED = 10_000  # ignored messages of one agent that are told apart; a flood beyond is only counted


def hear(agent: Agent, event: Event, now: datetime, relay: str = "") -> Run | None:
    """The turn that this event is, once for each message however often and wrapped it comes. Its signature is checked.

    None for what is not obeyed: strangers, forged seals, and messages from before the agent could be talked to.
    """
    if IgnoredMessage.objects.filter(agent=agent, event_id=event.id).exists():
        return None
    try:
        message = signing.read_message(agent.identity, event)
    except ValueError:
        _ignore(agent, event, now)
        return None
    except (signing.NotHeld, signing.VaultError) as error:
        log.warning("messages to %s cannot be read: %s", agent.slug, error)
        return None
    if message.sender == agent.identity.pubkey or message.created_at < agent.heard_since:
        return None
    text = storable(message.text)
    if not obeys(agent, message.sender) or not 0 < len(text.strip()) <= LONGEST or nip19.holds_nsec(text):
        _ignore(agent, event, now)
        return None
    return _turn(agent, message, event, text, now, relay)


def obeys(agent: Agent, key: str) -> bool:
    return bool(key) and (key == agent.admin_pubkey or key in (agent.talkers or ()))


def _turn(agent: Agent, message: DirectMessage, event: Event, text: str, now: datetime, relay: str) -> Run | None:
    key = f"dm:{message.id}"
    known = Run.objects.filter(agent=agent, trigger_kind="manual", occasion_key=delivery_key(key)).first()
    if known is not None:
        return None
    sender = message.sender
    talk = talking.open_conversation(agent, Conversation.Channel.DM, now, _name(sender), peer=sender)
    origin: dict[str, Any] = {"peer": sender, "nip": 4 if message.legacy else 17, "relay": relay, "event": event.id}
    # What others than the admin ask for is written only with the owner's word.
    autonomy = "auto" if sender == agent.admin_pubkey else "suggest"
    try:
        return talking.say(talk, text, now, key, autonomy=autonomy, origin=origin, most_open=MOST_OPEN)
    except talking.Busy:
        _ignore(agent, event, now)
        return None


def _name(key: str) -> str:
    author = Author.objects.filter(pk=key).first()
    return (author.name if author else "") or nip19.short_npub(key)


def _ignore(agent: Agent, event: Event, now: datetime) -> None:
    with transaction.atomic():
        if IgnoredMessage.objects.filter(agent=agent).count() < MOST_REMEMBERED:
            _, new = IgnoredMessage.objects.get_or_create(agent=agent, event_id=event.id, defaults={"at": now})
            if not new:
                return
        Agent.objects.filter(pk=agent.pk).update(dms_ignored=F("dms_ignored") + 1)


def forget(now: datetime) -> int:
    """Ignored messages so old that no relay is asked for them again."""
    old, _ = IgnoredMessage.objects.filter(at__lt=now - timedelta(days=REMEMBERED_DAYS)).delete()
    return old
