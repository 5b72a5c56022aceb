"""The agent's adopted skills that are on demand, each in the version its owner pinned, private ones opened."""

import json
from collections.abc import Iterable, Mapping

from agents.engine import disclosure
from agents.engine.disclosure import Entry
from agents.models import AdoptedSkill, Agent
from agents.sources.listing import Listing, Report, SkillNotFoundError, SkillsError
from marketplace import signing
from marketplace.models import ArchivedEvent, Identity
from marketplace.protocol import kinds, skillmd, templates
from marketplace.protocol.events import Address, Event
from marketplace.protocol.skillmd import flat
from marketplace.protocol.skills import SkillSpec, read_skill
from marketplace.protocol.vocabulary import VARIABLES


def skill_of(agent: Agent, event: Event) -> SkillSpec | None:
    """None for a private skill of another key, and for one that cannot be read."""
    plaintext = None
    if event.kind == kinds.PRIVATE_SKILL:
        if event.pubkey != agent.identity.pubkey:
            return None
        try:
            plaintext = signing.decrypt(agent.identity, event.content)
        except (ValueError, signing.NotHeld):
            return None
    spec = read_skill(event, plaintext)
    return spec if spec.readable else None


def instructions(spec: SkillSpec) -> str:
    """What a model reads of a skill that it asked for: its sections in order, variables as what they stand for.

    They are not filled in: that would send the admin's notes along with every skill that names them.
    """
    sections = templates.sections(spec.template)
    texts = [one.text if one.role == "system" else f"{one.role}:\n{one.text}" for one in sections]
    return templates.expand_with("\n\n".join(texts), lambda name: f"[{VARIABLES.get(name, name)}]").text


class AdoptedSource:
    """Two queries a listing, a third where a skill follows its author."""

    name = "adopted skills"

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def list_skills(self) -> Listing:
        rows = self._rows()
        offered = self._offered({name: row for name, row in rows.items() if row.on_demand})
        entries = tuple(one for one in offered if isinstance(one, Entry))
        return Listing(entries, tuple(one for one in offered if isinstance(one, Report)))

    def load_skill(self, name: str) -> Entry:
        rows = self._rows()
        row = rows.get(name)
        # This one alone: the others' private ones need not be opened for it.
        found = self._offered({name: row}) if row is not None and row.on_demand else []
        if found and isinstance(found[0], Entry):
            return found[0]
        raise SkillNotFoundError(name, sorted(name for name, row in rows.items() if row.on_demand))

    def _offered(self, rows: Mapping[str, AdoptedSkill]) -> list[Entry | Report]:
        events = ArchivedEvent.objects.in_bulk([row.pinned_event for row in rows.values()])
        others = foreign(self.agent, rows.values())
        found = list[Entry | Report]()
        for name, row in rows.items():
            archived = events.get(row.pinned_event)
            spec = skill_of(self.agent, Event.from_dict(json.loads(archived.raw))) if archived else None
            if spec is None:
                found.append(Report(name, row.address, 0, "Its pinned version is not here, or cannot be read."))
            elif spec.action == "template":
                found.append(Report(name, row.address, 0, "It fills in a text without a model: nothing to load."))
            else:
                found.append(entry_of(name, spec, row.pinned_event, row.address in others))
        return found

    def read_file(self, name: str, path: str) -> str:
        self.load_skill(name)
        hint = "All of it is in its instructions."
        raise SkillsError(f'skill "{name}" has no files', skill_name=name, path=path, hint=hint)

    def _rows(self) -> Mapping[str, AdoptedSkill]:
        """By the name each goes by. Named among all of the list, so that a switch of one renames no other."""
        rows = [row for row in AdoptedSkill.objects.filter(agent=self.agent) if Address.parse(row.address)]
        parts = [row.address.split(":", 2) for row in rows]
        return dict(zip(disclosure.names((d, pubkey) for _, pubkey, d in parts), rows, strict=True))


def foreign(agent: Agent, rows: Iterable[AdoptedSkill]) -> frozenset[str]:
    """The addresses of skills that come in versions nobody has looked at: they follow an author who is not the owner.

    One query where any follows.
    """
    followed = {row.address for row in rows if row.follow}
    if not followed:
        return frozenset()
    own = set(Identity.objects.filter(user=agent.owner_id).values_list("pubkey", flat=True))
    return frozenset(address for address in followed if address.split(":", 2)[1] not in own)


def entry_of(name: str, spec: SkillSpec, version: str = "", foreign: bool = False) -> Entry:
    """What an author says beside the skill counts as in a SKILL.md, wherever it stands."""
    others = {key: flat(value) for key, value in skillmd.others(spec).items() if key != "metadata"}
    said = {key: raw.strip('"') for key, raw in spec.extra_content}
    said |= {tag[0]: tag[1] for tag in spec.extra_tags if len(tag) > 1} | others
    return Entry(
        name,
        spec.description,
        instructions(spec),
        by_model=said.get("disable-model-invocation", "").lower() != "true",
        by_user=said.get("user-invocable", "").lower() != "false",
        version=version,
        foreign=foreign,
        extra=tuple(others.items()),
    )
