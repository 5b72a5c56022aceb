"""The API's context preview: the payload a model would be sent, before any call."""

import json
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Schema
from pydantic import Field

from agents.models import Agent
from agents.preview import preview
from marketplace.models import User
from marketplace.protocol import kinds
from marketplace.protocol.events import Draft
from marketplace.protocol.skills import read_skill

router = Router(tags=["context"])


class PreviewIn(Schema):
    content: dict[str, Any] | str = Field(default_factory=dict, description="The skill event's content")
    tags: list[list[str]] = Field(default_factory=list, max_length=2_000, description="The skill event's tags")
    agent: str | int | None = Field(None, description="Slug of an own agent; none: no soul, nothing adopted")
    message: str = Field("", max_length=200_000)
    event: dict[str, Any] | None = Field(None, description="Makes it a triggered run")
    arguments: dict[str, str] = Field(default_factory=dict, description="Values of the template's own variables")


class Said(Schema):
    role: str
    content: str


class Parameter(Schema):
    value: Any = None
    origin: str


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
    action: dict[str, Any] | None = None
    warnings: list[str]


@router.post("/context/preview", response=PreviewOut, summary="What a model would be sent", operation_id="preview")
def context_preview(request: HttpRequest, body: PreviewIn) -> dict[str, Any]:
    """Messages, tools and parameters with their origins. Nothing is called, nothing is stored."""
    user = _user(request)
    wanted = "" if body.agent is None else str(body.agent)
    agent = get_object_or_404(Agent.objects.of(user), slug=wanted) if wanted else None
    content = body.content if isinstance(body.content, str) else json.dumps(body.content, ensure_ascii=False)
    tags = tuple(tuple(tag) for tag in body.tags if tag)
    private = any(tag[:2] == ("scope", "private") for tag in tags)
    kind = kinds.PRIVATE_SKILL if private else kinds.SKILL
    spec = read_skill(Draft("0" * 64, 0, kind, tags, content))
    return preview(spec, agent, body.message, body.event, body.arguments)


def _user(request: HttpRequest) -> User:
    """Who asks: by token (whose check leaves the user as `auth`) or by session."""
    auth = getattr(request, "auth", None)
    if isinstance(auth, User):
        return auth
    user = getattr(auth, "user", None)
    return user if isinstance(user, User) else request.user  # type: ignore[return-value]
