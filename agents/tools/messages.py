"""Direct messages (NIP-17): to the admin by default, to others only where the owner named them."""

import json

from django.conf import settings

from agents.tools import leaks
from agents.tools.calls import ToolContext, ToolRefused
from agents.tools.nostr import admin, query
from agents.tools.publishing import distinct, own_relays, read_relays, recalled, send
from marketplace import relays, signing
from marketplace.models import Author
from marketplace.protocol import kinds, nip19
from marketplace.protocol.filters import Filter

LONGEST_MESSAGE = 20_000
LOOKED_AT = 100  # gift wraps: only opening one tells who wrote it


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
    leaks.stop(ctx, message)
    event = recalled(ctx)
    if event is None:
        try:
            event = signing.gift_wrap(ctx.agent.identity, receiver, message)
        except (signing.NotHeld, signing.VaultError) as error:
            raise ToolRefused(str(error)) from None
    return send(ctx, event, ctx.recalled.get("relays") or _relays_of(ctx, receiver))


def nostr_dm_history(ctx: ToolContext, limit: int = 20) -> str:
    """Read the newest private messages that the agent's admin sent to the agent.

    limit: how many messages at most
    """
    wanted = Filter(kinds=frozenset({kinds.GIFT_WRAP}), tags={"p": frozenset({ctx.agent.identity.pubkey})})
    rows = []
    for event in query(ctx, wanted, LOOKED_AT):
        try:
            sender, text = signing.unwrap(ctx.agent.identity, event)
        except ValueError:
            continue  # not for us, or forged: nobody's message
        except (signing.NotHeld, signing.VaultError) as error:
            raise ToolRefused(str(error)) from None
        if sender == admin(ctx):
            rows.append(json.dumps({"at": event.created_at, "text": text}, ensure_ascii=False))
    shown = rows[: max(1, min(limit, LOOKED_AT))]
    return ctx.fenced("messages", "\n".join(shown)) if shown else "There are no messages from the admin."


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
    """Where the receiver reads messages (NIP-17: kind 10050); without such a list the relays we share."""
    wanted = Filter(kinds=frozenset({kinds.DM_RELAYS}), authors=frozenset({receiver}))
    author = Author.objects.filter(pk=receiver).first()
    urls = distinct([*read_relays(ctx), *(author.write_relays if author else ())])
    found = sorted(relays.fetch(urls, [wanted], min(4.0, ctx.left)).events, key=lambda one: (-one.created_at, one.id))
    named = distinct(found[0].values("relay"))[:5] if found else []
    if named:
        return named
    if receiver == ctx.agent.admin_pubkey:
        return own_relays(ctx) or list(settings.WRITE_RELAYS)
    raise ToolRefused("The recipient has published no relays for private messages (kind 10050).")
