"""Runs for programs: the list with the filters of the page, one run with its steps, and starting one."""

import secrets
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Query, Router, Schema, Status
from ninja.errors import HttpError
from pydantic import AfterValidator, Field

from agents import arming, dispatch
from agents.api.auth import caller, starts
from agents.forms.filters import RunFilter, Unreadable, cursor, place_of, zone_of
from agents.models import Agent, Run, Step
from agents.views.run_start import read_address, refusal_of, version_of
from marketplace.models import User
from marketplace.protocol import nip19

MAX_LIMIT = 100
LONGEST_MESSAGE = 100_000


def _storable(text: str) -> str:
    """Text a database takes, and no key that a run would send on."""
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("holds a character that no text has")
    if nip19.holds_nsec(text):
        raise ValueError("holds a secret key (nsec); it was not kept")
    return text


Text = Annotated[str, AfterValidator(_storable)]


class RunOut(Schema):
    id: str
    status: str
    reason: str
    reason_words: str
    agent: str = Field(description="slug")
    skill: str = Field(description="address; empty for a message without a skill")
    skill_name: str
    skill_event: str = Field(description="id of the version it ran")
    trigger: str = Field(description="kind; manual when a person started it")
    action: str
    model: str = Field(description="that answered; offline/echo is no language model")
    tokens: dict[str, int] = Field(description="input, cached, output, reasoning: each token once")
    cost: str = Field(description="US dollars of the attempts with a known price, all digits")
    unknown_costs: int = Field(description="attempts without a known price; not part of the cost, not zero")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RunPage(Schema):
    items: list[RunOut]
    next: str | None = Field(description="pass as `cursor`; null at the end")


class StepOut(Schema):
    position: int
    turn: int
    kind: str
    state: str
    name: str = Field(description="variable, asked model, or tool")
    served_model: str
    risk: str
    input: Any
    output: Any
    text: str
    outcome: str
    error: str
    tokens: dict[str, int]
    cost: str | None = Field(description="US dollars; null = unknown, or no model attempt")
    estimated: bool
    price_version: str
    started_at: datetime
    finished_at: datetime | None


class RunDetail(RunOut):
    rule: str
    parameters: dict[str, Any]
    input: dict[str, Any]
    overrides: dict[str, Any]
    request: dict[str, Any] = Field(description="the exact first request")
    disclosure: dict[str, Any] = Field(description="skills on demand: listed, invoked, loaded, read, with their tokens")
    warnings: list[Any]
    output: str
    steps: list[StepOut]


class Error(Schema):
    detail: str


class RunQuery(Schema):
    status: str = ""
    skill: str = Field("", description="address, or name")
    trigger: str = Field("", description="kind")
    agent: str = Field("", description="slug")
    model: str = ""
    since: str = Field("", alias="from", description="YYYY-MM-DD, in your time zone")
    until: str = Field("", alias="to", description="YYYY-MM-DD, inclusive")
    limit: int = Field(50, ge=1, le=MAX_LIMIT)
    cursor: str = ""


class StartIn(Schema):
    agent: Text = Field(max_length=60, description="slug of your agent")
    skill: Text = Field("", max_length=400, description="address or naddr; empty for a message only")
    message: Text = Field("", max_length=LONGEST_MESSAGE)
    arguments: dict[Text, Text] = Field(default_factory=dict, max_length=100)
    llm: Text = Field("", max_length=300)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    key: Text = Field("", max_length=120, description="the same key gives the same run")


ERRORS = {400: Error, 401: Error, 403: Error, 404: Error}
router = Router(tags=["runs"])


@router.get("", response={200: RunPage, **ERRORS}, summary="Your runs, newest first", operation_id="runs")
def list_runs(request: HttpRequest, asked: Query[RunQuery]) -> dict[str, Any]:
    user = caller(request)
    given = {**asked.dict(exclude={"since", "until", "limit", "cursor"}), "from": asked.since, "to": asked.until}
    try:
        wanted, place, zone = RunFilter.read(given), place_of(asked.cursor), zone_of(user.time_zone)
    except Unreadable as error:
        raise HttpError(400, str(error)) from None
    rows, more = wanted.apply(Run.objects.of(user).select_related("agent"), zone).page(place, asked.limit)
    return {"items": [_run(run) for run in rows], "next": cursor(more) or None}


@router.get("/{run_id}", response={200: RunDetail, **ERRORS}, summary="One run with its steps", operation_id="run")
def get_run(request: HttpRequest, run_id: str) -> dict[str, Any]:
    return detail(own_run(caller(request), run_id))


@router.post(
    "", auth=starts, response={201: RunDetail, **ERRORS, 409: Error}, summary="Start a run", operation_id="start"
)
def start_run(request: HttpRequest, body: StartIn) -> Status[dict[str, Any]]:
    """By hand, of the version your agent pinned, else of the current one. Poll it at `/runs/{id}`."""
    user = caller(request)
    agent = get_object_or_404(Agent.objects.of(user).select_related("identity"), slug=body.agent)
    address = read_address(body.skill)
    event_id = version_of(agent, address, user) if address else ""
    refusal = refusal_of(arming.pinned_spec(agent, event_id) if event_id else None, bool(event_id))
    if refusal or not (address or body.message.strip()):
        raise HttpError(400, refusal or "Name a skill, or write a message.")
    wanted = {"llm": body.llm, "max_tokens": body.max_tokens, "temperature": body.temperature, "seed": body.seed}
    said: dict[str, Any] = {"message": body.message, "arguments": dict(body.arguments)}
    overrides = {name: value for name, value in wanted.items() if value not in (None, "")}
    run = dispatch.manual(
        agent,
        str(address) if address else "",
        event_id,
        said["message"],
        said["arguments"],
        overrides,
        timezone.now(),
        f"api:{body.key}" if body.key else secrets.token_hex(16),
    )
    if (run.skill_address, run.input, run.overrides) != (str(address) if address else "", said, overrides):
        raise HttpError(409, f"This key already started run {run.pk}, with another skill, message or parameters.")
    return Status(201, detail(own_run(user, run.pk)))


def own_run(user: User, run_id: str) -> Run:
    if not run_id.isascii() or not run_id.isalnum():
        raise Http404("No such run.")
    return get_object_or_404(Run.objects.of(user).select_related("agent"), pk=run_id)


def _run(run: Run) -> dict[str, Any]:
    same = ("status", "reason", "reason_words", "skill_name", "skill_event", "action", "model", "unknown_costs")
    return {
        **{name: getattr(run, name) for name in (*same, "created_at", "started_at", "finished_at")},
        "id": run.pk,
        "agent": run.agent.slug,
        "skill": run.skill_address,
        "trigger": run.trigger_kind,
        "tokens": _tokens(run),
        "cost": digits(run.cost),
    }


def detail(run: Run) -> dict[str, Any]:
    own = ("rule", "parameters", "input", "overrides", "request", "disclosure", "warnings", "output")
    steps = [_step(step) for step in run.steps.order_by("position")]
    return {**_run(run), **{name: getattr(run, name) for name in own}, "steps": steps}


def _step(step: Step) -> dict[str, Any]:
    same = ("position", "turn", "kind", "state", "name", "served_model", "risk", "input", "output", "text", "outcome")
    more = ("error", "estimated", "price_version", "started_at", "finished_at")
    cost = None if step.cost is None else digits(step.cost)
    return {**{name: getattr(step, name) for name in (*same, *more)}, "tokens": _tokens(step), "cost": cost}


def _tokens(row: Run | Step) -> dict[str, int]:
    return {name: getattr(row, f"{name}_tokens") for name in ("input", "cached", "output", "reasoning")}


def digits(amount: Decimal) -> str:
    """All of them, never as a power of ten."""
    return f"{amount:f}"
