"""Reading and writing on Nostr with the agent's own key."""

import json
from typing import Any

from agents.tools.calls import ToolContext, ToolFailed, ToolRefused
from agents.tools.publishing import publish, read_relays, recalled
from marketplace import relays
from marketplace.protocol import kinds, nip19
from marketplace.protocol.events import HEX64, Event, Tag
from marketplace.protocol.filters import Filter, read_filter

MOST_EVENTS = 50
MOST_SECONDS = 8.0
LONGEST_NOTE = 20_000
LASTING = frozenset({kinds.DELETION, kinds.VANISH})  # deleting a deletion does nothing (NIP-09)


def nostr_post(ctx: ToolContext, content: str, reply_to: str = "") -> str:
    """Publish a short text note, signed by the agent. Anyone can read it.

    content: the text of the note
    reply_to: id (hex, note or nevent) of the event it answers; leave it out for a note of its own
    """
    if not content.strip():
        raise ToolRefused("The note is empty.")
    if len(content) > LONGEST_NOTE:
        raise ToolRefused(f"The note is longer than {LONGEST_NOTE:,} characters.")
    return publish(ctx, kinds.NOTE, _answering(ctx, reply_to), content)


def nostr_react(ctx: ToolContext, event_id: str, reaction: str = "+") -> str:
    """React to an event, with a plus for a like, a minus, or one emoji.

    event_id: id (hex, note or nevent) of the event
    reaction: what to say of it, "+" if left out
    """
    if not 0 < len(reaction) <= 20:
        raise ToolRefused("A reaction is one short sign.")
    wanted = _event_id(event_id)
    found = newest(ctx, Filter(ids=frozenset({wanted})))
    if found is None:
        raise ToolFailed("No relay has this event, so there is nothing to react to.")
    tags: tuple[Tag, ...] = (("e", wanted), ("p", found.pubkey), ("k", str(found.kind)))
    return publish(ctx, kinds.REACTION, tags, reaction)


def nostr_delete(ctx: ToolContext, event_id: str, reason: str = "") -> str:
    """Ask relays to delete a note, reaction or other single event of this agent's own.

    event_id: id (hex, note or nevent) of the event
    reason: why, which everyone may read; leave it out for none
    """
    if len(reason) > 500:
        raise ToolRefused("The reason is longer than 500 characters.")
    if (again := recalled(ctx)) is not None:
        return publish(ctx, again.kind, again.tags, again.content)
    wanted = _event_id(event_id)
    found = newest(ctx, Filter(ids=frozenset({wanted})))
    if found is None:
        raise ToolFailed("No relay has this event, so there is nothing to delete.")
    if found.pubkey != ctx.agent.identity.pubkey:
        raise ToolRefused("Only events of this agent's own can be deleted.")
    if found.kind in LASTING or kinds.is_replaceable(found.kind) or kinds.is_addressable(found.kind):
        raise ToolRefused("Profiles, lists, skills and deletions are not deleted with this tool.")
    return publish(ctx, kinds.DELETION, (("e", wanted), ("k", str(found.kind))), reason)


def nostr_query(ctx: ToolContext, filter: dict[str, Any], limit: int = 10) -> str:
    """Ask the relays for events. Newest first, at most 50.

    filter: a NIP-01 filter, for example {"kinds":[1],"authors":["<hex key>"]}; npub and note are converted
    limit: how many events at most
    """
    wanted, problems = read_filter(filter, own_input=True)
    if wanted is None:
        raise ToolRefused("The filter cannot be used: " + " ".join(problems))
    most = max(1, min(limit, wanted.limit or limit, MOST_EVENTS))
    events = query(ctx, wanted, most)
    if not events:
        return "No events were found."
    rows = "\n".join(json.dumps(event.to_dict(), ensure_ascii=False, separators=(",", ":")) for event in events)
    return ctx.fenced("events", rows)


def nostr_profile(ctx: ToolContext, pubkey: str) -> str:
    """Read the profile of a key: name, about, address.

    pubkey: the key as npub or hex
    """
    return profile(ctx, _key(pubkey))


def nostr_admin_profile(ctx: ToolContext) -> str:
    """Read the profile of the agent's admin."""
    return profile(ctx, admin(ctx))


def nostr_admin_notes(ctx: ToolContext, limit: int = 10) -> str:
    """Read the newest public notes of the agent's admin.

    limit: how many notes at most, 10 if left out
    """
    wanted = Filter(kinds=frozenset({kinds.NOTE}), authors=frozenset({admin(ctx)}))
    events = query(ctx, wanted, max(1, min(limit, MOST_EVENTS)))
    notes = "\n".join(json.dumps({"at": event.created_at, "id": event.id, "text": event.content}) for event in events)
    return ctx.fenced("notes", notes) if notes else "The admin has no notes here."


def nostr_admin_relays(ctx: ToolContext) -> str:
    """Read the relay list of the agent's admin."""
    found = newest(ctx, Filter(kinds=frozenset({kinds.RELAYS}), authors=frozenset({admin(ctx)})))
    rows = [" ".join(tag[1:3]) for tag in found.all("r") if len(tag) > 1] if found else []
    return ctx.fenced("relay list", "\n".join(rows)) if rows else "The admin has published no relay list."


def admin(ctx: ToolContext) -> str:
    if not ctx.agent.admin_pubkey:
        raise ToolRefused("This agent has no admin key.")
    return ctx.agent.admin_pubkey


def profile(ctx: ToolContext, pubkey: str) -> str:
    found = newest(ctx, Filter(kinds=frozenset({kinds.PROFILE}), authors=frozenset({pubkey})))
    if found is None:
        return f"No profile was found for {nip19.encode_npub(pubkey)}."
    return ctx.fenced("profile", found.content)


def newest(ctx: ToolContext, wanted: Filter) -> Event | None:
    """The event that counts of those the relays have (NIP-01: newest, then lowest id)."""
    return next(iter(query(ctx, wanted, 5)), None)


def query(ctx: ToolContext, wanted: Filter, most: int) -> list[Event]:
    """Newest first. Raises ToolFailed when no relay answered."""
    asked = Filter(
        wanted.ids, wanted.authors, wanted.kinds, wanted.tags, wanted.since, wanted.until, most, wanted.search
    )
    fetched = relays.fetch(read_relays(ctx), [asked], min(MOST_SECONDS, ctx.left))
    if not fetched.events and not any(fetched.finished.values()):
        raise ToolFailed("No relay answered.")
    ordered = sorted({event.id: event for event in fetched.events}.values(), key=lambda one: (-one.created_at, one.id))
    return ordered[:most]


def _answering(ctx: ToolContext, reply_to: str) -> tuple[Tag, ...]:
    """The tags of a reply (NIP-10): its thread's root, what it answers, and whom."""
    if not reply_to.strip():
        return ()
    wanted = _event_id(reply_to)
    known = (ctx.run.input.get("event") or {}) if ctx.run else {}
    parent = Event.from_dict(known) if known.get("id") == wanted else newest(ctx, Filter(ids=frozenset({wanted})))
    if parent is None:
        return (("e", wanted, "", "root"),)
    root = next((tag[1] for tag in parent.all("e") if len(tag) > 3 and tag[3] == "root"), "")
    people = dict.fromkeys([parent.pubkey, *(key for key in parent.values("p") if HEX64.match(key))])
    people.pop(ctx.agent.identity.pubkey, None)
    thread: list[Tag] = [("e", root, "", "root"), ("e", wanted, "", "reply")] if root else [("e", wanted, "", "root")]
    return (*thread, *(("p", key) for key in list(people)[:20]))


def _event_id(text: str) -> str:
    if HEX64.match(text.strip().lower()):
        return text.strip().lower()
    try:
        found = nip19.decode(text.strip())
    except ValueError:
        found = None
    if isinstance(found, nip19.Note | nip19.Nevent):
        return found.id
    raise ToolRefused("This is not the id of an event (hex, note or nevent).")


def _key(text: str) -> str:
    try:
        return nip19.read_key(text)
    except ValueError as error:
        raise ToolRefused(f"This is not a public key: {error}") from None
