"""The API at /api/v1/: its instance and what it says of skills; the agents' operations join by name."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI, Query, Router, Schema
from pydantic import Field

from marketplace import rankings
from marketplace.models import Adoption, Skill
from marketplace.protocol import nip19
from marketplace.protocol.events import Address
from marketplace.protocol.kinds import SKILL
from marketplace.views import listing
from marketplace.views.sheet import Sheet, current_version
from marketplace.views.skill_detail import versions

MAX_LIMIT = 100
MAX_ADOPTERS = 1_000


class Refusal(Exception):
    """What the caller asked for cannot be done; `status` and words say why."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class AuthorOut(Schema):
    pubkey: str
    npub: str
    name: str


class SkillOut(Schema):
    address: str
    naddr: str | None = Field(description="null where `d` is longer than an naddr can hold")
    name: str
    description: str
    author: AuthorOut
    adopters: int
    trigger: str | None = Field(description="the trigger's kind")
    tools: list[str] = Field(description='["*"] = every tool the agent was granted')
    llm: str | None
    state: str
    updated_at: int = Field(description="unix seconds, the current version's own claim")


class SkillPage(Schema):
    items: list[SkillOut]
    next: str | None = Field(description="pass as `cursor`; null at the end")


class ProblemOut(Schema):
    field: str
    message: str
    level: str


class SkillDetail(SkillOut):
    content: dict[str, Any] | str = Field(description="the object in the event's content; its text where it is none")
    tags: list[list[str]]
    event_id: str
    adopted_by: list[str] = Field(description=f"counted keys as hex, up to {MAX_ADOPTERS:,}")
    problems: list[ProblemOut]


class VersionOut(Schema):
    event_id: str
    created_at: int
    current: bool
    description: str
    version: str


class VersionPage(Schema):
    items: list[VersionOut]
    next: str | None


class Error(Schema):
    detail: str


class SkillQuery(Schema):
    q: str = Field("", max_length=500)
    sort: str = Field(listing.DEFAULT_SORT, description="one of " + ", ".join(rankings.RANKINGS))
    trigger: str = Field("", max_length=60, description="a trigger's kind, or `any` or `none`")
    tool: str = Field("", max_length=200)
    topic: str = Field("", max_length=200)
    author: str = Field("", max_length=1_000, description="npub, nprofile or hex")
    limit: int = Field(50, ge=1, le=MAX_LIMIT)
    cursor: str = Field("", max_length=1_000)


router = Router(tags=["skills"])
ERRORS = {400: Error, 404: Error}


@router.get("", response={200: SkillPage, 400: Error}, summary="Ranked skills")
def list_skills(request: HttpRequest, asked: Query[SkillQuery]) -> dict[str, Any]:
    """The same list as the front page, in the same order."""
    if asked.sort not in rankings.RANKINGS:
        raise Refusal(400, f"sort is one of: {', '.join(rankings.RANKINGS)}")
    if nip19.looks_like_nsec(f"{asked.q} {asked.author}"):
        raise Refusal(400, "That was a private key (nsec). Treat it as leaked. A search takes npub, naddr and note.")
    wanted = listing.read(asked.dict(exclude={"limit"}))
    try:
        skills, following = listing.page(wanted, asked.limit)
    except ValueError as error:
        raise Refusal(400, str(error)) from None
    called = listing.names(skill.pubkey for skill in skills)
    return {"items": [_skill(skill, called[skill.pubkey]) for skill in skills], "next": following or None}


@router.get("/{naddr}", response={200: SkillDetail, **ERRORS}, summary="One skill")
def get_skill(request: HttpRequest, naddr: str) -> dict[str, Any]:
    """By its naddr or its coordinate `31123:<hex>:<d>`."""
    skill = _find(naddr)
    row = current_version(skill)
    if row is None:
        raise Refusal(404, "We do not hold the event behind this skill any more.")
    sheet = Sheet.of(row)
    adopters = Adoption.objects.filter(address=skill.address, counted=True).order_by("adopter")
    return {
        **_skill(skill, listing.names([skill.pubkey])[skill.pubkey]),
        "content": _content(sheet.event.content),
        "tags": [list(tag) for tag in sheet.event.tags],
        "event_id": sheet.event.id,
        "adopted_by": list(adopters.values_list("adopter", flat=True)[:MAX_ADOPTERS]),
        "problems": [{"field": p.field, "message": p.message, "level": p.level} for p in sheet.spec.problems],
    }


class VersionQuery(Schema):
    limit: int = Field(50, ge=1, le=MAX_LIMIT)
    cursor: str = Field("", max_length=100, description="`<created_at>-<event id>` of the last one seen")


@router.get("/{naddr}/versions", response={200: VersionPage, **ERRORS}, summary="The versions we hold")
def get_versions(request: HttpRequest, naddr: str, asked: Query[VersionQuery]) -> dict[str, Any]:
    """Newest first; relays keep only the current one."""
    skill = _find(naddr)
    found = versions(skill)
    if asked.cursor:
        at, _, last = asked.cursor.partition("-")
        if not at.isascii() or not at.isdigit() or len(at) > 16 or not last.isalnum():
            raise Refusal(400, "The cursor is not one that this list gave out.")
        found = found.filter(created_at__lte=int(at)).exclude(created_at=int(at), id__lte=last)
    rows = list(found[: asked.limit + 1])
    items = [(row, Sheet.of(row).spec) for row in rows[: asked.limit]]
    following = f"{items[-1][0].created_at}-{items[-1][0].pk}" if len(rows) > asked.limit else None
    return {
        "items": [
            {
                "event_id": row.pk,
                "created_at": row.created_at,
                "current": row.pk == skill.event_id,
                "description": spec.description,
                "version": spec.version,
            }
            for row, spec in items
        ],
        "next": following,
    }


def _find(name: str) -> Skill:
    """A public skill that is there. Private ones are never in the API."""
    address = Address.parse(name)
    if address is None:
        try:
            entity = nip19.decode(name)
        except ValueError as error:
            raise Refusal(400, str(error)) from None
        if not isinstance(entity, nip19.Naddr):
            raise Refusal(400, "Name the skill by its naddr.")
        address = entity.address
    wanted = Skill.objects.filter(kind=SKILL, pubkey=address.pubkey, d=listing.without_nul(address.d), state="live")
    skill = wanted.first() if address.kind == SKILL else None
    if skill is None:
        raise Refusal(404, "No relay we read has shown us this skill, or its author deleted it.")
    return skill


def _skill(skill: Skill, name: str) -> dict[str, Any]:
    npub = nip19.encode_npub(skill.pubkey)
    return {
        "address": skill.address,
        "naddr": listing.naddr(skill) or None,
        "name": skill.d,
        "description": skill.description,
        "author": {"pubkey": skill.pubkey, "npub": npub, "name": name},
        "adopters": skill.adopters,
        "trigger": skill.trigger_kind or None,
        "tools": skill.tools,
        "llm": skill.llm or None,
        "state": skill.state,
        "updated_at": skill.created_at,
    }


def _content(text: str) -> dict[str, Any] | str:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


api = NinjaAPI(title="Journeyman", version="1", urls_namespace="api", description="Skills, runs and costs.")
api.add_router("/skills", router)
# By name: the marketplace never imports the agents.
api.add_router("", "agents.api.router")


@api.exception_handler(Refusal)
def refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    return api.create_response(request, {"detail": str(refusal)}, status=refusal.status)
