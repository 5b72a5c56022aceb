"""Comparisons for programs: two variants of one skill on the same input, and how they came out."""

import secrets
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Router, Schema, Status
from ninja.errors import HttpError
from pydantic import Field

from agents import arming
from agents.api.auth import caller, starts
from agents.api.runs import ERRORS, LONGEST_MESSAGE, RunDetail, Text, detail
from agents.dispatch import comparing
from agents.engine import differences
from agents.models import Agent, Comparison
from agents.views.run_start import read_address, refusal_of, version_of
from marketplace.models import User


class VariantIn(Schema):
    """What one of the two sets for itself; what is left out comes from the skill or the agent."""

    template: Text | None = Field(None, max_length=LONGEST_MESSAGE)
    llm: Text = Field("", max_length=300)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)


class CompareIn(Schema):
    agent: Text = Field(max_length=60, description="slug of your agent")
    skill: Text = Field("", max_length=400, description="address or naddr; empty for a message only")
    message: Text = Field("", max_length=LONGEST_MESSAGE)
    arguments: dict[Text, Text] = Field(default_factory=dict, max_length=100)
    a: VariantIn
    b: VariantIn
    writes: bool = Field(False, description="let both use tools that write or spend; else they only read")
    key: Text = Field("", max_length=120, description="the same key gives the same comparison")


class PieceOut(Schema):
    kind: str = Field(description="same, ins (only in b) or del (only in a)")
    text: str


class CompareOut(Schema):
    id: str
    agent: str
    skill: str
    writes: bool
    created_at: datetime
    a: RunDetail
    b: RunDetail
    difference: list[PieceOut] | None = Field(description="of the answers; null while a run is open, or too long")


router = Router(tags=["compare"])


@router.post(
    "", auth=starts, response={201: CompareOut, **ERRORS}, summary="Compare two variants", operation_id="compare"
)
def start_comparison(request: HttpRequest, body: CompareIn) -> Status[dict[str, Any]]:
    """Starts two runs of the version your agent pinned, else of the current one, on the same input."""
    user = caller(request)
    agent = get_object_or_404(Agent.objects.of(user).select_related("identity"), slug=body.agent)
    address = read_address(body.skill)
    event_id = version_of(agent, address, user) if address else ""
    spec = arming.pinned_spec(agent, event_id) if event_id else None
    refusal = refusal_of(spec, bool(event_id))
    if refusal or not (address or body.message.strip()):
        raise HttpError(400, refusal or "Name a skill, or write a message.")
    found = comparing.compare(
        agent,
        (str(address) if address else "", event_id),
        spec,
        body.message,
        dict(body.arguments),
        [body.a.dict(), body.b.dict()],
        body.writes,
        timezone.now(),
        f"api:{body.key}" if body.key else secrets.token_hex(16),
    )
    return Status(201, _compared(user, found.pk))


@router.get(
    "/{comparison_id}", response={200: CompareOut, **ERRORS}, summary="One comparison", operation_id="comparison"
)
def get_comparison(request: HttpRequest, comparison_id: str) -> dict[str, Any]:
    return _compared(caller(request), comparison_id)


def _compared(user: User, pk: str) -> dict[str, Any]:
    if not pk.isascii() or not pk.isalnum():
        raise Http404("No such comparison.")
    both = Comparison.objects.of(user).select_related("agent", "run_a__agent", "run_b__agent")
    found = get_object_or_404(both, pk=pk)
    a, b = found.run_a, found.run_b
    pieces = differences.words(a.output, b.output) if a.is_final and b.is_final else None
    return {
        "id": found.pk,
        "agent": found.agent.slug,
        "skill": found.skill_address,
        "writes": found.writes,
        "created_at": found.created_at,
        "a": detail(a),
        "b": detail(b),
        "difference": None if pieces is None else [{"kind": one.kind, "text": one.text} for one in pieces],
    }
