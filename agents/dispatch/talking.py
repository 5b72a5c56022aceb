"""Talking: what somebody says to an agent becomes a turn of their conversation, which is an ordinary run."""

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from agents.dispatch.announcing import announce_after_commit
from agents.models import Agent, Conversation, Run
from marketplace.protocol.events import Address
from marketplace.protocol.triggers import delivery_key

MOST_OPEN = 5  # turns of one conversation that are not answered yet
LONGEST_TITLE = 60  # characters of the first message that name a conversation


class Busy(Exception):
    """Too many messages wait for an answer already; the words are for who wrote one more."""


def open_conversation(agent: Agent, channel: str, now: datetime, title: str = "", peer: str = "") -> Conversation:
    """A new one; by direct message the one there is with this key."""
    if channel != Conversation.Channel.DM:
        return Conversation.objects.create(
            agent=agent, channel=channel, title=title[:120], created_at=now, updated_at=now
        )
    found, _ = Conversation.objects.get_or_create(
        agent=agent, channel=channel, peer=peer, defaults={"title": title[:120], "created_at": now, "updated_at": now}
    )
    return found


def begin(agent: Agent, channel: str, message: str, now: datetime, key: str, **more: Any) -> Run:
    """The first turn of a new conversation, as `say`; the same key gives the same run and makes no second one."""
    known = Run.objects.filter(**_one_run(agent.pk, key)).first()
    if known is not None:
        return known
    talk = open_conversation(agent, channel, now)
    run = say(talk, message, now, key, **more)
    if run.conversation_id != talk.pk:  # sent twice at the same moment
        talk.delete()
    return run


def say(
    conversation: Conversation,
    message: str,
    now: datetime,
    key: str,
    *,
    skill: tuple[str, str] = ("", ""),
    overrides: dict[str, Any] | None = None,
    autonomy: str = "auto",
    origin: dict[str, Any] | None = None,
    most_open: int = MOST_OPEN,
) -> Run:
    """The next turn; the same key gives the same run. While an earlier turn is open it waits for that one's end.

    `skill` is address and event id of the version to run; `origin` says where a direct message came from.
    Raises Busy.
    """
    own = _one_run(conversation.agent_id, key)
    address = Address.parse(skill[0])
    fields: dict[str, Any] = {
        "skill_address": skill[0],
        "skill_event": skill[1],
        "skill_name": address.d if address else "",
        "input": {"message": message, "arguments": {}, **({"dm": origin} if origin else {})},
        "overrides": overrides or {},
        "autonomy": autonomy,
        "created_at": now,
    }
    try:
        with transaction.atomic():
            return _next_turn(conversation, own, fields, now, most_open)
    except IntegrityError:  # said at the same moment by another process, with this key
        return Run.objects.get(**own)


def _one_run(agent_id: int, key: str) -> dict[str, Any]:
    """What the database holds to be one run."""
    return {"agent_id": agent_id, "trigger_kind": "manual", "occasion_key": delivery_key(key)}


def _next_turn(
    conversation: Conversation, own: dict[str, Any], fields: dict[str, Any], now: datetime, most_open: int
) -> Run:
    # One writer of a conversation at a time: turns are numbered without gaps or doubles.
    kept = Conversation.objects.select_for_update().get(pk=conversation.pk)
    said = Run.objects.filter(**own).first()
    if said is not None:
        return said
    turns = Run.objects.filter(conversation=kept)
    waiting = turns.open().count()
    if waiting >= most_open:
        raise Busy(f"{waiting} messages wait for an answer already. Wait for one, or stop it.")
    last = turns.aggregate(last=Max("turn"))["last"] or 0
    run = Run.objects.create(**own, **fields, conversation=kept, turn=last + 1)
    title = kept.title or title_of(fields["input"]["message"])
    Conversation.objects.filter(pk=kept.pk).update(updated_at=now, title=title)
    if not waiting:
        announce_after_commit([run.pk], now)
    return run


def follow(ended: Run, now: datetime) -> None:
    """Wake a worker for the turn that waited for this one; the tick does so where nobody called this."""
    if ended.conversation_id is None:
        return
    later = Run.objects.filter(conversation=ended.conversation_id, turn__gt=ended.turn, status=Run.Status.QUEUED)
    announce_after_commit(list(later.order_by("turn").values_list("pk", flat=True)[:1]), now)


def title_of(message: str) -> str:
    """The beginning of the first message, on one line."""
    line = " ".join(message.split())
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"
