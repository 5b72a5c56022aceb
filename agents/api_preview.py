"""The API's context preview: the payload a model would be sent, before any call."""

import json
from typing import Annotated, Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Router, Schema
from ninja.errors import HttpError
from pydantic import Field, StringConstraints

from agents import arming
from agents.models import Agent, Conversation, Run
from agents.preview import edited, next_turn, preview
from agents.views.run_start import read_address, version_of
from marketplace.models import User
from marketplace.protocol import kinds
from marketplace.protocol.events import Draft
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skills import SkillSpec, read_skill

router = Router(tags=["context"])
Text = Annotated[str, StringConstraints(max_length=200_000)]


class OverridesIn(Schema):
    """What a run may set for itself alone."""

    template: Text | None = None
    llm: str | None = Field(None, max_length=300)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)

    @property
    def parameters(self) -> RunParams:
        return RunParams(self.llm or None, self.max_tokens, self.temperature, self.seed)


class PreviewIn(Schema):
    content: dict[str, Any] | str = Field(default_factory=dict, description="The skill event's content")
    tags: list[list[str]] = Field(default_factory=list, max_length=2_000, description="The skill event's tags")
    agent: str | int | None = Field(None, description="Slug of an own agent; none: no soul, nothing adopted")
    message: str = Field("", max_length=200_000)
    event: dict[str, Any] | None = Field(None, description="Makes it a triggered run")
    arguments: dict[str, str] = Field(default_factory=dict, description="Values of own variables")
    skill: str = Field("", max_length=400, description="An address or naddr in place of content and tags")
    overrides: OverridesIn = Field(
        default_factory=lambda: OverridesIn.model_validate({}), description="What is set for one run alone"
    )
    conversation: int | None = Field(None, ge=1, lt=2**63, description="Id: as its next turn, with what was said")
    fetch: bool = Field(False, description="Ask the granted tools that fill variables, as a run would")


class Said(Schema):
    role: str
    content: str


class Parameter(Schema):
    value: Any = None
    origin: str


class Price(Schema):
    model: str
    window: int | None = Field(description="tokens; null where nobody says")
    room: int | None = Field(description="tokens its answer may have; null: the request does not fit")
    input: str | None = Field(description="US dollars of the request alone; null = unknown")
    at_most: str | None = Field(description="US dollars with the longest answer; null = unknown, or it does not fit")
    price_version: str


class PreviewOut(Schema):
    rule: str
    reason: str
    messages: list[Said]
    tools: list[dict[str, Any]]
    parameters: dict[str, Parameter]
    models: list[str]
    tokens: int
    parts: list[dict[str, Any]]
    price: dict[str, Any]
    prices: list[Price] = Field(description="one for each model of the chain, in its order")
    arguments: list[str] = Field(description="names that the run can be given values for")
    action: dict[str, Any] | None = None
    warnings: list[str]


@router.post("/context/preview", response=PreviewOut, summary="What a model would be sent", operation_id="preview")
def context_preview(request: HttpRequest, body: PreviewIn) -> dict[str, Any]:
    """Messages, tools and parameters with their origins. Nothing is called, nothing is stored."""
    user = _user(request)
    wanted = "" if body.agent is None else str(body.agent)
    agent = get_object_or_404(Agent.objects.of(user), slug=wanted) if wanted else None
    spec, address = _skill(body, agent, user)
    return preview(
        edited(spec, body.overrides.template) if spec else None,
        agent,
        body.message,
        body.event,
        body.arguments,
        body.overrides.parameters,
        address,
        timezone.now() if body.fetch else None,
        _turn(agent, body.conversation),
    )


def _turn(agent: Agent | None, conversation: int | None) -> Run | None:
    if conversation is None:
        return None
    if agent is None:
        raise HttpError(400, "A conversation is had with an agent: name it.")
    return next_turn(get_object_or_404(Conversation.objects.select_related("agent"), agent=agent, pk=conversation))


def _skill(body: PreviewIn, agent: Agent | None, user: User) -> tuple[SkillSpec | None, str]:
    """What is previewed, and its address: a skill on record, a typed one, or none at all for a message alone."""
    if body.skill:
        if agent is None:
            raise HttpError(400, "A skill by its address is previewed for an agent: name one.")
        address = read_address(body.skill)
        found = arming.pinned_spec(agent, version_of(agent, address, user)) if address else None
        if found is None or not found.readable:
            raise HttpError(400, "This version of the skill cannot be read here.")
        return found, str(address)
    if not body.content and not body.tags:
        return None, ""
    content = body.content if isinstance(body.content, str) else json.dumps(body.content, ensure_ascii=False)
    tags = tuple(tuple(tag) for tag in body.tags if tag)
    private = any(tag[:2] == ("scope", "private") for tag in tags)
    kind = kinds.PRIVATE_SKILL if private else kinds.SKILL
    return read_skill(Draft("0" * 64, 0, kind, tags, content)), ""


def _user(request: HttpRequest) -> User:
    """Who asks: by token (whose check leaves the user as `auth`) or by session."""
    auth = getattr(request, "auth", None)
    if isinstance(auth, User):
        return auth
    user = getattr(auth, "user", None)
    return user if isinstance(user, User) else request.user  # type: ignore[return-value]
