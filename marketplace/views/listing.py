"""What a list of skills is asked for: read from a URL, turned into a query, written back to a URL."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from urllib.parse import urlencode

from django.urls import reverse

from marketplace import rankings
from marketplace.models import Author, Skill
from marketplace.models.skills import SkillQuerySet
from marketplace.protocol import nip19
from marketplace.protocol.events import Address
from marketplace.protocol.triggers import KINDS

DEFAULT_SORT = "adoption"
MAX_TEXT = 200
PAGE = 50
GENERATIONS = {"A": "with context modes (A)", "B": "composed (B)"}
# What a row says of a trigger; other kinds stand under their own name.
TRIGGER_WORDS = {"nostr-subscription": "event", "cron": "schedule", "webhook": "webhook", "chain": "chain"}
TRIGGERS = {"any": "any", "none": "none", **{kind: module.LABEL for kind, module in KINDS.items()}}


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters, the order and the place in it. Empty means not asked for."""

    q: str = ""
    trigger: str = ""
    tool: str = ""
    topic: str = ""
    author: str = ""  # as typed: npub, nprofile or hex
    generation: str = ""
    sort: str = DEFAULT_SORT
    cursor: str = ""
    at: int = 0  # rows before this page

    @property
    def author_key(self) -> str:
        """The author as hex, "" where nobody is named. Raises ValueError in words."""
        return nip19.read_key(self.author) if self.author else ""

    @property
    def filtered(self) -> bool:
        return any((self.q, self.trigger, self.tool, self.topic, self.author, self.generation))

    def query(self, **changes: str | int) -> str:
        """The same as a query string: only what differs from the front page, always in the same order."""
        own = asdict(replace(self, **changes))  # type: ignore[arg-type]
        fields = {name: value for name, value in own.items() if value and (name, value) != ("sort", DEFAULT_SORT)}
        return f"?{urlencode(fields)}" if fields else ""

    def skills(self) -> SkillQuerySet:
        """The listed skills that fit. Raises ValueError in words for an author that is none."""
        found = Skill.objects.public()
        if self.q:
            found = found.search(self.q)
        if self.trigger == "any":
            found = found.exclude(trigger_kind="")
        elif self.trigger:
            found = found.filter(trigger_kind="" if self.trigger == "none" else self.trigger)
        for name, value in (("tool", self.tool), ("topic", self.topic)):
            if value:
                found = found.filter(facets__name=name, facets__value=value)
        if self.author:
            found = found.filter(pubkey=self.author_key)
        if self.generation:
            found = found.filter(generation=self.generation)
        return found


def read(params: Mapping[str, str]) -> Asked:
    """What a URL asks for; nonsense is left out, so that an old or mistyped link still shows a list."""
    text = {name: clean(params.get(name) or "") for name in ("q", "tool", "topic", "author")}
    trigger, sort, generation = (params.get(name) or "" for name in ("trigger", "sort", "generation"))
    at = params.get("at") or ""
    return Asked(
        **text,
        trigger=clean(trigger),
        generation=generation if generation in GENERATIONS else "",
        sort=sort if sort in rankings.RANKINGS else DEFAULT_SORT,
        cursor=(params.get("cursor") or "")[:1_000],
        at=int(at) if at.isascii() and at.isdigit() and len(at) < 8 else 0,
    )


def clean(text: str) -> str:
    """Text that any database takes: no NUL, no lone surrogates, no more than a search needs."""
    return without_nul(text)[:MAX_TEXT].strip()


def without_nul(text: str) -> str:
    return text.replace("\x00", "").encode("utf-8", "ignore").decode()


def page(asked: Asked, limit: int = PAGE) -> tuple[list[Skill], str]:
    """One page and the next one's cursor ("" at the end). Raises ValueError for a bad author or cursor."""
    rows, following = rankings.page(asked.skills(), asked.sort, asked.cursor, limit)
    return list(rows), following or ""


# --- Names and addresses -------------------------------------------------------


def naddr(skill: Skill) -> str:
    """The skill's NIP-19 name, "" where `d` is longer than the format can hold."""
    try:
        return nip19.encode_naddr(Address(skill.kind, skill.pubkey, skill.d))
    except ValueError:
        return ""


def skill_url(skill: Skill) -> str:
    return reverse("skill", args=[naddr(skill) or nip19.encode_note(skill.event_id)])


def names(pubkeys: Iterable[str]) -> dict[str, str]:
    """What keys call themselves, "" where they say nothing. One query."""
    wanted = set(pubkeys)
    known = dict(Author.objects.filter(pubkey__in=wanted).values_list("pubkey", "name")) if wanted else {}
    return {pubkey: known.get(pubkey, "") for pubkey in wanted}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a list, ready to be shown."""

    number: int
    skill: Skill
    url: str
    author_npub: str
    author_name: str

    @property
    def trigger_word(self) -> str:
        kind = self.skill.trigger_kind
        return TRIGGER_WORDS.get(kind, kind)


def rows(skills: list[Skill], before: int = 0) -> list[Row]:
    """Lines for these skills, their authors by name. One query."""
    called = names(skill.pubkey for skill in skills)
    return [
        Row(at, skill, skill_url(skill), nip19.encode_npub(skill.pubkey), called[skill.pubkey])
        for at, skill in enumerate(skills, before + 1)
    ]
