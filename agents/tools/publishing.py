"""From a tool's words to a signed event on relays: the intent is kept first, so that a retry sends the same id."""

from collections.abc import Sequence

from django.conf import settings

from agents.tools.calls import ToolContext, ToolFailed, ToolRefused
from marketplace import ingest, relays, signing
from marketplace import publish as skills
from marketplace.models import Author, Publication
from marketplace.protocol import checks
from marketplace.protocol.events import Draft, Event, Tags
from marketplace.protocol.problems import NotWritable
from marketplace.protocol.skills import SkillSpec

MOST_RELAYS = 10


def own_relays(ctx: ToolContext) -> list[str]:
    """Where the agent's own events go: its relays or the site's, then what its key names itself (NIP-65)."""
    author = Author.objects.filter(pk=ctx.agent.identity.pubkey).first()
    wanted = [*(ctx.agent.relays or settings.WRITE_RELAYS), *(author.write_relays if author else ())]
    return distinct(wanted)


def read_relays(ctx: ToolContext) -> list[str]:
    return distinct([*(ctx.agent.relays or ()), *settings.RELAYS])


def distinct(urls: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(url.rstrip("/") for url in urls))[:MOST_RELAYS]


def publish(ctx: ToolContext, kind: int, tags: Tags, content: str) -> str:
    """Sign and send; the answer names the event and how many relays took it."""
    return send(ctx, recalled(ctx) or _signed(ctx, kind, tags, content), own_relays(ctx))


def recalled(ctx: ToolContext) -> Event | None:
    """The event that an earlier attempt of this very call signed."""
    row = ctx.recalled.get("event")
    return Event.from_dict(row) if row else None


def _signed(ctx: ToolContext, kind: int, tags: Tags, content: str) -> Event:
    draft = Draft(ctx.agent.identity.pubkey, int(ctx.now.timestamp()), kind, tags, content)
    try:
        return signing.sign(ctx.agent.identity, draft)
    except (signing.NotHeld, signing.VaultError) as error:
        raise ToolRefused(str(error)) from None


def published_skill(ctx: ToolContext, spec: SkillSpec, base: str = "") -> Event:
    """The next version of a skill, signed once and taken by a relay; `base` is the version it was made from.

    Raises ToolRefused, and ToolFailed where no relay took it.
    """
    identity, now = ctx.agent.identity, int(ctx.now.timestamp())
    event = recalled(ctx)
    try:
        if event is None:
            event = signing.sign(identity, skills.unsigned_skill(identity, spec, now))
            ctx.remember({"event": event.to_dict(), "base": base})
        sent = Publication.objects.filter(event_id=event.id).first()
        if sent is None:
            draft = Draft(event.pubkey, event.created_at, event.kind, event.tags, event.content)
            sent = skills.signed_skill(identity, draft, event.to_dict(), now)
        else:
            sent = skills.retry(sent, now)
    except (skills.PublishError, NotWritable, signing.NotHeld, signing.VaultError) as error:
        raise ToolRefused(str(error)) from None
    answers = list(sent.answers.all())
    if not any(answer.ok for answer in answers):
        said = "; ".join(f"{answer.url}: {answer.message or 'no answer'}" for answer in answers)
        raise ToolFailed(f"No relay took the event {event.id}. {said}")
    # A worker that died between the relay's yes and here left the catalogue without it.
    ingest.store([ingest.Incoming(event)], now)
    return event


def send(ctx: ToolContext, event: Event, urls: Sequence[str]) -> str:
    """Keeps the event as this call's intent, then offers it to each relay. Raises ToolFailed when none took it."""
    if len(event.to_json().encode()) > checks.MAX_BYTES:
        raise ToolRefused(f"The event is larger than {checks.MAX_BYTES:,} bytes; relays refuse it.")
    if not urls:
        raise ToolRefused("There is no relay to send it to.")
    ctx.remember({"event": event.to_dict(), "relays": list(urls)})
    answers = relays.publish(event, urls, min(8.0, ctx.left))
    took = [answer.url for answer in answers if answer.ok]
    refused = "; ".join(f"{answer.url}: {answer.message or 'no answer'}" for answer in answers if not answer.ok)
    if not took:
        raise ToolFailed(f"No relay took the event {event.id}. {refused}")
    return f"Sent as event {event.id} to {', '.join(took)}." + (f" Refused by {refused}." if refused else "")
