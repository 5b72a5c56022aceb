"""Kinds 31123 and 31124 -> Skill and Facet."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from marketplace.ingest import authors, sql
from marketplace.ingest.checking import expires_at
from marketplace.ingest.keys import Key, clean, keyed, storable
from marketplace.models import Facet, Skill
from marketplace.protocol.events import Event
from marketplace.protocol.kinds import PRIVATE_SKILL, SKILL
from marketplace.protocol.skills import SkillSpec, read_skill

MAX_SEARCH = 4_000  # characters; names, topics and the start of a description find a skill
MAX_FACETS = 50
_OWN = (
    *("event_id", "created_at", "description", "context_rule", "generation", "llm"),
    *("trigger_kind", "trigger_words", "action", "tools", "topics", "search_text"),
    *("problem_count", "runnable", "listed", "state", "expires_at"),
)
_COLUMNS = ("kind", "pubkey", "d", "first_published", "adopters", "trusted", *_OWN)


@dataclass(frozen=True, slots=True)
class Projected:
    """What a skill event becomes, worked out before the transaction."""

    event: Event
    key: Key
    values: Mapping[str, object]
    words: str  # to search, without the author's name
    facets: tuple[tuple[str, str], ...]
    problem: str = ""

    @property
    def has_row(self) -> bool:
        return storable(self.event.value("d"))


def prepare(event: Event) -> Projected:
    """Never raises: what cannot be read becomes a row listed nowhere, with its problem in the archive."""
    key = keyed(event)
    spec = read_skill(event)
    sealed = event.kind == PRIVATE_SKILL and not spec.readable
    topics = [clean(topic, 100) for topic in spec.topics[:MAX_FACETS]]
    tools = ["*"] if spec.tools is True else [clean(name, 100) for name in (spec.tools or ())[:MAX_FACETS]]
    values = {
        "event_id": event.id,
        "created_at": event.created_at,
        "description": clean(spec.description, 65_536),
        "context_rule": spec.rule,
        "generation": spec.generation,
        "llm": "" if spec.llm == "default" else clean(spec.llm, 300),
        **_trigger(spec),
        "tools": json.dumps(tools),
        "topics": json.dumps(topics),
        "problem_count": 0 if sealed else len(spec.problems),
        "runnable": sealed or spec.runnable,
        "listed": event.kind == SKILL and spec.readable,
        "state": "live" if spec.readable or sealed else "unreadable",
        "expires_at": expires_at(event),
    }
    words = clean(" ".join([spec.d, *topics, spec.description]), MAX_SEARCH).lower()
    return Projected(event, key, values, words, _facets(topics, tools), _problem(event, spec, sealed))


def project(skills: Sequence[Projected], first: Mapping[Key, int]) -> None:
    """Make each the current version at its address. `first`: when the oldest version there was published."""
    rows = [skill for skill in skills if skill.has_row]
    if not rows:
        return
    names = authors.names({skill.key.pubkey for skill in rows})
    table = sql.table(Skill)
    updates = ", ".join(f"{name} = excluded.{name}" for name in _OWN)
    oldest = (
        f"first_published = CASE WHEN excluded.first_published < {table}.first_published "
        f"THEN excluded.first_published ELSE {table}.first_published END"
    )
    # No "where newer" here: the head was read under the same lock, and may be an older version after a deletion.
    found = sql.insert(
        Skill,
        _COLUMNS,
        [_row(skill, names.get(skill.key.pubkey, ""), first[skill.key]) for skill in rows],
        f"ON CONFLICT (kind, pubkey, d) DO UPDATE SET {updates}, {oldest}",
        "id, kind, pubkey, d",
    )
    ids = {Key(*row[1:]): row[0] for row in found}
    _write_facets({ids[skill.key]: skill.facets for skill in rows})


def backdate(older: Mapping[Key, int]) -> None:
    """An older version came later: the skill was published earlier than known."""
    statement = sql.text(
        "UPDATE {skills} SET first_published = %s WHERE kind = %s AND pubkey = %s AND d = %s AND first_published > %s",
        skills=Skill,
    )
    sql.many(statement, [(at, *key, at) for key, at in older.items()])


def remove(keys: Iterable[Key]) -> None:
    """No version counts any more at these addresses."""
    rows = list(keys)
    for statement in (
        "DELETE FROM {facets} WHERE skill_id IN (SELECT id FROM {skills} WHERE kind = %s AND pubkey = %s AND d = %s)",
        "DELETE FROM {skills} WHERE kind = %s AND pubkey = %s AND d = %s",
    ):
        sql.many(sql.text(statement, facets=Facet, skills=Skill), rows)


def rename(pubkeys: Collection[str]) -> None:
    """An author's name changed, and skills are found by it."""
    names = dict.fromkeys(pubkeys, "") | authors.names(pubkeys)
    skills = Skill.objects.filter(pubkey__in=list(names)).values_list("pk", "pubkey", "d", "topics", "description")
    changed = []
    for pk, pubkey, d, topics, description in skills.iterator(chunk_size=500):
        words = clean(" ".join([d, *topics, description]), MAX_SEARCH).lower()
        changed.append((_search_text(words, names[pubkey]), pk))
    sql.many(sql.text("UPDATE {skills} SET search_text = %s WHERE id = %s", skills=Skill), changed)


def _row(skill: Projected, author: str, first: int) -> list[object]:
    values = {**skill.values, "search_text": _search_text(skill.words, author)}
    return [*skill.key, first, 0, 0, *(values[name] for name in _OWN)]


def _search_text(words: str, author: str) -> str:
    return f"{words} {author.lower()}".strip()


def _write_facets(wanted: Mapping[int, Sequence[tuple[str, str]]]) -> None:
    sql.many(sql.text("DELETE FROM {facets} WHERE skill_id = %s", facets=Facet), [(pk,) for pk in wanted])
    rows = [(pk, *facet) for pk, facets in wanted.items() for facet in facets]
    sql.insert(Facet, ("skill_id", "name", "value"), rows)


def _facets(topics: Sequence[str], tools: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = [("topic", topic.lower()[:100]) for topic in topics] + [("tool", tool) for tool in tools if tool != "*"]
    return tuple(dict.fromkeys(pairs))


def _trigger(spec: SkillSpec) -> dict[str, str]:
    trigger = spec.trigger
    if trigger is None:
        return {"trigger_kind": "", "trigger_words": "", "action": ""}
    words = clean(trigger.words, 300)
    return {"trigger_kind": clean(trigger.kind, 40), "trigger_words": words, "action": clean(trigger.action, 10)}


def _problem(event: Event, spec: SkillSpec, sealed: bool) -> str:
    if not storable(event.value("d")):
        return "The name is longer than 200 characters or holds NUL: the skill cannot be listed."
    if sealed or spec.readable:
        return ""
    return clean(next((problem.message for problem in spec.problems), "The content cannot be read."), 200)
