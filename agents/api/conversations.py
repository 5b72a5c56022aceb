"""Conversations for programs: beginning one, saying the next thing, and reading what was answered so far."""

import secrets
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Query, Router, Schema, Status
from ninja.errors import HttpError
from pydantic import Field

from agents import arming
from agents.api.auth import caller, starts
from agents.api.runs import ERRORS, LONGEST_MESSAGE, Error, Text, digits
from agents.dispatch import talking
from agents.models import Agent, Conversation, Run
from agents.models.turns import Turn, turns_of
from agents.views.run_start import read_address, refusal_of, version_of
from agents.views.talk import with_costs
from marketplace.models import User

MOST_TURNS = 100


class SayIn(Schema):
    message: Text = Field("", max_length=LONGEST_MESSAGE, description="what to say; it must hold something")
    skill: Text = Field("", max_length=400, description="address or naddr, for this turn; empty: those always on")
    llm: Text = Field("", max_length=300, description="a model chain for this turn")
    key: Text = Field("", max_length=120, description="the same key gives the same turn")


class TurnOut(Schema):
    turn: int = Field(description="its place in the conversation, from 1")
    run: str = Field(description="id of the run that it is")
    status: str
    reason: str
    reason_words: str
    message: str
    answer: str = Field(description="as far as it has come")
    model: str
    cost: str
    unknown_costs: int
    created_at: datetime
    finished_at: datetime | None


class ConversationOut(Schema):
    id: int
    agent: str = Field(description="slug")
    channel: str = Field(description="page, dm or cli")
    peer: str = Field(description="hex key of who writes by direct message; empty otherwise")
    title: str
    created_at: datetime
    updated_at: datetime
    cost: str
    unknown_costs: int
    turns: list[TurnOut]
    before: int | None = Field(description="pass as `before` for earlier turns; null at the beginning")


class TurnsQuery(Schema):
    before: int | None = Field(None, ge=1, le=2**31 - 1, description="turns before this one")
    limit: int = Field(50, ge=1, le=MOST_TURNS)


REFUSED = {**ERRORS, 409: Error}
router = Router(tags=["conversations"])


@router.post(
    "/agents/{slug}/conversations",
    auth=starts,
    response={201: ConversationOut, **REFUSED},
    summary="Begin a conversation",
    operation_id="begin_conversation",
)
def begin(request: HttpRequest, slug: str, body: SayIn) -> Status[dict[str, Any]]:
    """With its first message. Poll it at `/conversations/{id}`."""
    user = caller(request)
    agents = Agent.objects.of(user).select_related("identity")
    own = get_object_or_404(agents, slug=slug.replace("\x00", ""))
    more = _more(own, body, user)
    run = talking.begin(own, Conversation.Channel.PAGE, body.message, timezone.now(), _key(body), **more)
    if run.conversation_id is None:
        raise HttpError(409, "The conversation that this key began is deleted.")
    return Status(201, _conversation(_own(user, run.conversation_id), TurnsQuery(before=None, limit=50)))


@router.post(
    "/conversations/{conversation_id}/messages",
    auth=starts,
    response={201: TurnOut, **REFUSED},
    summary="Say the next thing",
    operation_id="say",
)
def say(request: HttpRequest, conversation_id: int, body: SayIn) -> Status[dict[str, Any]]:
    """While an earlier turn is open this one waits for its end; 409 where too many wait."""
    user = caller(request)
    own = _own(user, conversation_id)
    if own.channel == Conversation.Channel.DM:
        raise HttpError(409, "This conversation goes on by direct message.")
    try:
        run = talking.say(own, body.message, timezone.now(), _key(body), **_more(own.agent, body, user))
    except talking.Busy as busy:
        raise HttpError(409, str(busy)) from None
    return Status(201, _turn(Turn(run, list(run.steps.order_by("position")))))


@router.get(
    "/conversations/{conversation_id}",
    response={200: ConversationOut, **ERRORS},
    summary="One conversation with its newest turns",
    operation_id="conversation",
)
def get_conversation(request: HttpRequest, conversation_id: int, asked: Query[TurnsQuery]) -> dict[str, Any]:
    return _conversation(_own(caller(request), conversation_id), asked)


def _own(user: User, pk: int) -> Conversation:
    talks = with_costs(Conversation.objects.of(user).select_related("agent"))
    return get_object_or_404(talks, pk=max(0, min(pk, 2**63 - 1)))


def _more(own: Agent, body: SayIn, user: User) -> dict[str, Any]:
    """What holds for this turn only."""
    address = read_address(body.skill)
    event_id = version_of(own, address, user) if address else ""
    refusal = refusal_of(arming.pinned_spec(own, event_id) if event_id else None, bool(event_id))
    if refusal or not body.message.strip():
        raise HttpError(400, refusal or "Write a message.")
    return {"skill": (str(address or ""), event_id), "overrides": {"llm": body.llm} if body.llm else {}}


def _key(body: SayIn) -> str:
    return f"api:{body.key}" if body.key else secrets.token_hex(16)


def _conversation(own: Conversation, asked: TurnsQuery) -> dict[str, Any]:
    turns = turns_of(own, asked.limit, before=asked.before)
    first = turns[0].run.turn if turns else 1
    counted = cast(Any, own)
    return {
        **{name: getattr(own, name) for name in ("id", "channel", "peer", "title", "created_at", "updated_at")},
        "agent": own.agent.slug,
        "cost": digits(counted.cost or Decimal(0)),
        "unknown_costs": counted.unknown or 0,
        "turns": [_turn(turn) for turn in turns],
        "before": first if first > 1 else None,
    }


def _turn(turn: Turn) -> dict[str, Any]:
    run: Run = turn.run
    same = ("turn", "status", "reason", "reason_words", "model", "unknown_costs", "created_at", "finished_at")
    own = {name: getattr(run, name) for name in same}
    return {**own, "run": run.pk, "message": turn.message, "answer": turn.answer, "cost": digits(run.cost)}
