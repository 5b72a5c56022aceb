"""Direct messages (NIP-17, and NIP-04 in kind): to the admin, and to others only where the owner named them."""

import json
from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings

from agents.models import Step
from agents.tools import leaks
from agents.tools.calls import ToolContext, ToolFailed, ToolRefused
from agents.tools.nostr import MOST_SECONDS, admin
from agents.tools.publishing import distinct, own_relays, read_relays, recalled, send
from marketplace import relays, signing
from marketplace.models import Author
from marketplace.protocol import kinds, nip19
from marketplace.protocol.filters import Filter

LONGEST_MESSAGE = 20_000
LOOKED_AT = 100  # gift wraps: only opening one tells who wrote it
LEGACY = 4  # the NIP of the old kind
ANSWER = "dm_answer"  # the step that sends a turn's answer
REMEMBERED = timedelta(days=30)  # how far back the agent's own messages are looked up


def nostr_dm_send(ctx: ToolContext, message: str, recipient: str = "") -> str:
    """Send a private message. It goes to the agent's admin unless the owner allowed another recipient.

    message: the text
    recipient: key (npub or hex) of the receiver; leave it out for the admin
    """
    if not message.strip():
        raise ToolRefused("The message is empty.")
    if len(message) > LONGEST_MESSAGE:
        raise ToolRefused(f"The message is longer than {LONGEST_MESSAGE:,} characters.")
    receiver = _receiver(ctx, recipient)
    event = recalled(ctx)
    if event is None:
        try:
            event = signing.gift_wrap(ctx.agent.identity, receiver, message)
        except (signing.NotHeld, signing.VaultError) as error:
            raise ToolRefused(str(error)) from None
    return send(ctx, event, ctx.recalled.get("relays") or _relays_of(ctx, receiver))


def answer(ctx: ToolContext, receiver: str, text: str, nip: int, relay: str) -> str:
    """Back to who wrote to the agent, in the way and to where they wrote; the turn itself is the owner's leave."""
    leaks.stop(ctx, text)
    event = recalled(ctx)
    if event is None:
        try:
            if nip == LEGACY:
                event = signing.write_legacy(ctx.agent.identity, receiver, text, int(ctx.now.timestamp()))
            else:
                event = signing.gift_wrap(ctx.agent.identity, receiver, text)
        except (signing.NotHeld, signing.VaultError) as error:
            raise ToolRefused(str(error)) from None
    back = distinct([*([relay] if relay else ()), *own_relays(ctx)])
    return send(ctx, event, ctx.recalled.get("relays") or (back if nip == LEGACY else _named_by(ctx, receiver) or back))


def nostr_dm_history(ctx: ToolContext, limit: int = 20) -> str:
    """Read the newest private messages between the agent and its admin, newest first.

    limit: how many messages at most
    """
    own, other = ctx.agent.identity.pubkey, admin(ctx)
    sent, known = _sent(ctx, other)
    rows = [*sent, *_on_relays(ctx, own, other, known)]
    shown = sorted(rows, key=lambda row: row[0], reverse=True)[: max(1, min(limit, LOOKED_AT))]
    lines = [json.dumps({"at": at, "from": by, "text": text}, ensure_ascii=False) for at, by, text in shown]
    return ctx.fenced("messages", "\n".join(lines)) if lines else "There are no messages from the admin."


def _on_relays(ctx: ToolContext, own: str, other: str, known: set[str]) -> Iterator[tuple[int, str, str]]:
    """What the admin wrote, of both kinds, and what was written to them from elsewhere with the agent's key."""
    to, old = {"p": frozenset({own})}, frozenset({kinds.ENCRYPTED_DM})
    wanted = [
        Filter(kinds=frozenset({kinds.GIFT_WRAP}), tags=to, limit=LOOKED_AT),
        Filter(kinds=old, authors=frozenset({other}), tags=to, limit=LOOKED_AT),
        Filter(kinds=old, authors=frozenset({own}), tags={"p": frozenset({other})}, limit=LOOKED_AT),
    ]
    fetched = relays.fetch(read_relays(ctx), wanted, min(MOST_SECONDS, ctx.left))
    if not fetched.events and not any(fetched.finished.values()):
        raise ToolFailed("No relay answered.")
    seen: set[str] = set()
    for event in {event.id: event for event in fetched.events if event.id not in known}.values():
        try:
            message = signing.read_message(ctx.agent.identity, event)
        except ValueError:
            continue  # not for us, or forged: nobody's message
        except (signing.NotHeld, signing.VaultError) as error:
            raise ToolRefused(str(error)) from None
        if message.sender in {other, own} and message.id not in seen:
            seen.add(message.id)
            yield message.created_at, "admin" if message.sender == other else "you", message.text


def _sent(ctx: ToolContext, other: str) -> tuple[list[tuple[int, str, str]], set[str]]:
    """What the agent wrote to its admin, as its runs have it: nobody can read a gift wrap to somebody else."""
    steps = Step.objects.filter(
        run__agent=ctx.agent,
        run__created_at__gte=ctx.now - REMEMBERED,
        kind=Step.Kind.TOOL,
        state=Step.State.DONE,
        name__in=("nostr_dm_send", ANSWER),
    )
    rows, ids = list[tuple[int, str, str]](), set[str]()
    for step in steps.order_by("-started_at").only("started_at", "input", "intent")[:LOOKED_AT]:
        arguments = step.input.get("arguments") or {}
        to = str(arguments.get("recipient") or "").strip()
        if to.lower() in {"", "admin"} or _key_of(to) == other:
            rows.append((int(step.started_at.timestamp()), "you", str(arguments.get("message") or "")))
            ids.add(str((step.intent.get("event") or {}).get("id")))
    return rows, ids


def _key_of(text: str) -> str:
    try:
        return nip19.read_key(text)
    except ValueError:
        return ""


def _receiver(ctx: ToolContext, recipient: str) -> str:
    if not recipient.strip() or recipient.strip().lower() == "admin":
        return admin(ctx)
    try:
        key = nip19.read_key(recipient)
    except ValueError:
        raise ToolRefused("The recipient is not a public key.") from None
    if key != ctx.agent.admin_pubkey and key not in (ctx.agent.dm_recipients or ()):
        raise ToolRefused("The owner has not allowed messages to this recipient.")
    return key


def _relays_of(ctx: ToolContext, receiver: str) -> list[str]:
    """Where the receiver reads messages; the admin without such a list at the relays we share."""
    named = _named_by(ctx, receiver)
    if named:
        return named
    if receiver == ctx.agent.admin_pubkey:
        return own_relays(ctx) or list(settings.WRITE_RELAYS)
    raise ToolRefused("The recipient has published no relays for private messages (kind 10050).")


def _named_by(ctx: ToolContext, receiver: str) -> list[str]:
    """The receiver's own list of relays for private messages (NIP-17: kind 10050)."""
    wanted = Filter(kinds=frozenset({kinds.DM_RELAYS}), authors=frozenset({receiver}))
    author = Author.objects.filter(pk=receiver).first()
    urls = distinct([*read_relays(ctx), *(author.write_relays if author else ())])
    found = sorted(relays.fetch(urls, [wanted], min(4.0, ctx.left)).events, key=lambda one: (-one.created_at, one.id))
    return distinct(found[0].values("relay"))[:5] if found else []
