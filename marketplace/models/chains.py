"""Which published skills start which, read from their current versions."""

import json

from marketplace.models.archive import ArchivedEvent
from marketplace.models.skills import Skill
from marketplace.protocol.events import Address, Event
from marketplace.protocol.triggers import read_trigger
from marketplace.protocol.triggers.chain import Chain

LONGEST = 20  # skills; a longer chain never runs to its end


def sources(address: str) -> dict[str, str]:
    """Address -> the skill whose end starts it, from this one backwards; two queries for each step."""
    found: dict[str, str] = {}
    while address and address not in found and len(found) < LONGEST:
        source = _source(address)
        if not source:
            break
        found[address], address = source, source
    return found


def _source(text: str) -> str:
    address = Address.parse(text)
    if address is None:
        return ""
    named = Skill.objects.filter(kind=address.kind, pubkey=address.pubkey, d=address.d, trigger_kind="chain")
    event_id = named.values_list("event_id", flat=True).first()
    row = ArchivedEvent.objects.filter(pk=event_id).first() if event_id else None
    trigger = read_trigger(Event.from_dict(json.loads(row.raw)).tags) if row else None
    return str(trigger.data.source) if trigger and isinstance(trigger.data, Chain) else ""
