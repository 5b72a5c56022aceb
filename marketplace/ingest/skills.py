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
# What follows from the event alone, in the order of `_values`.
_READ = (
    *("event_id", "created_at", "description", "context_rule", "generation", "llm"),
    *("trigger_kind", "trigger_words", "action", "tools", "topics"),
    *("problem_count", "runnable", "listed", "state", "expires_at"),
)
_COLUMNS = ("kind", "pubkey", "d", "first_published", "adopters", "trusted", "search_text", *_READ)
_ALL_TOOLS = json.dumps(["*"])


@dataclass(frozen=True, slots=True)
class Projected:
    """What a skill event becomes, worked out before the transaction."""

    event: Event
    key: Key
    has_row: bool
    values: tuple[object, ...]  # of the columns _READ
    words: str  # to search, without the author's name
    facets: tuple[tuple[str, str], ...]
    problem: str = ""


def prepare(event: Event) -> Projected:
    """Never raises: what cannot be read becomes a row listed nowhere, with its problem in the archive."""
    spec = read_skill(event)
    sealed = event.kind == PRIVATE_SKILL and not spec.readable
    topics = [clean(topic, 100) for topic in spec.topics[:MAX_FACETS]]
    asked = spec.tools
    tools = None if asked is True else [clean(name, 100) for name in (asked or ())[:MAX_FACETS]]
    words = clean(" ".join([spec.d, *topics, spec.description]), MAX_SEARCH).lower()
    values = _values(event, spec, sealed, topics, tools)
    problem = _problem(event, spec, sealed)
    return Projected(event, keyed(event), storable(spec.d), values, words, _facets(topics, tools or ()), problem)


def _values(
    event: Event, spec: SkillSpec, sealed: bool, topics: Sequence[str], tools: Sequence[str] | None
) -> tuple[object, ...]:
    llm = spec.llm
    return (
        event.id,
        event.created_at,
        clean(spec.description, 65_536),
        spec.rule,
        spec.generation,
        "" if llm == "default" else clean(llm, 300),
        *_trigger(spec),
        _ALL_TOOLS if tools is None else json.dumps(tools),
        json.dumps(topics) if topics else "[]",
        0 if sealed else len(spec.problems),
        sealed or spec.runnable,
        event.kind == SKILL and spec.readable,
        "live" if spec.readable or sealed else "unreadable",
        expires_at(event),
    )


def project(skills: Sequence[Projected], first: Mapping[Key, int]) -> None:
    """Make each the current version at its address. `first`: when the oldest version there was published."""
    rows = [skill for skill in skills if skill.has_row]
    if not rows:
        return
    names = authors.names({skill.key.pubkey for skill in rows})
    table = sql.table(Skill)
    updates = ", ".join(f"{name} = excluded.{name}" for name in ("search_text", *_READ))
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
    statement = sql.text(
        f"SELECT s.id, s.pubkey, s.d, s.topics, substr(s.description, 1, {MAX_SEARCH}) "  # noqa: S608
        "FROM {values} CROSS JOIN {skills} s WHERE s.pubkey = v.column1",
        skills=Skill,
    )
    for part in sql.parts([(pubkey,) for pubkey in names], most=sql.PREPARED_ROWS):
        changed = []
        for pk, pubkey, d, topics, description in sql.join(statement, part):
            words = clean(" ".join([d, *json.loads(topics), description]), MAX_SEARCH).lower()
            changed.append((_search_text(words, names[pubkey]), pk))
        sql.many(sql.text("UPDATE {skills} SET search_text = %s WHERE id = %s", skills=Skill), changed)


def _row(skill: Projected, author: str, first: int) -> list[object]:
    return [*skill.key, first, 0, 0, _search_text(skill.words, author), *skill.values]


def _search_text(words: str, author: str) -> str:
    return f"{words} {author.lower()}".strip()


def _write_facets(wanted: Mapping[int, Sequence[tuple[str, str]]]) -> None:
    sql.many(sql.text("DELETE FROM {facets} WHERE skill_id = %s", facets=Facet), [(pk,) for pk in wanted])
    rows = [(pk, *facet) for pk, facets in wanted.items() for facet in facets]
    sql.insert(Facet, ("skill_id", "name", "value"), rows)


def _facets(topics: Sequence[str], tools: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = [("topic", topic.lower()[:100]) for topic in topics] + [("tool", tool) for tool in tools if tool != "*"]
    return tuple(dict.fromkeys(pairs))


def _trigger(spec: SkillSpec) -> tuple[str, str, str]:
    """Its kind, what fires it in words, and what it then does."""
    trigger = spec.trigger
    if trigger is None:
        return "", "", ""
    return clean(trigger.kind, 40), clean(trigger.words, 300), clean(trigger.action, 10)


def _problem(event: Event, spec: SkillSpec, sealed: bool) -> str:
    if not storable(event.value("d")):
        return "The name is longer than 200 characters or holds NUL: the skill cannot be listed."
    if sealed or spec.readable:
        return ""
    return clean(next((problem.message for problem in spec.problems), "The content cannot be read."), 200)
