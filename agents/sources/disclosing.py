"""What one request tells of skills on demand: the same for a run and for its preview."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings

from agents import llm
from agents.engine import disclosure
from agents.engine.disclosure import SHORTEST_DESCRIPTION, Entry
from agents.engine.fences import fence
from agents.models import AdoptedSkill, Agent, Run
from agents.sources.listing import Merged, Report, SkillsError
from agents.sources.merging import sources_for

TOOL = "skill"
MOST_REPORTS = 50  # kept with one run
LOOKED_THROUGH = 20  # newest runs, for the last catalogue that was whole

NOT_WHOLE = "A source of skills on demand did not answer: the model was told of those that it was told of before."


@dataclass(frozen=True, slots=True)
class Invoked:
    """A skill that a person's own words called by its name."""

    name: str
    version: str
    text: str


@dataclass(frozen=True, slots=True)
class Disclosed:
    """`catalogue` stands where it stood from the first request on, `replacement` after what was said since."""

    catalogue: str = ""
    replacement: str = ""
    digest: str | None = None  # of the newest; None: none was ever told, "": the names were taken back
    listed: tuple[str, ...] = ()
    invoked: tuple[Invoked, ...] = ()
    reports: tuple[Report, ...] = ()
    warnings: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """As it is kept with the run; what is loaded and read comes to it as it happens."""
        return {
            "listed": list(self.listed),
            "invoked": [
                {"name": one.name, "version": one.version, "tokens": llm.count(one.text)} for one in self.invoked
            ],
            "loaded": [],
            "read": [],
            "catalogue_tokens": sum(llm.count(text) for text in (self.catalogue, self.replacement) if text),
            "digest": self.digest,
            "catalogue": self.catalogue,
            "replacement": self.replacement,
            "reports": [
                {"name": one.name, "path": one.path, "line": one.line, "reason": one.reason}
                for one in self.reports[:MOST_REPORTS]
            ],
            "reports_left_out": max(0, len(self.reports) - MOST_REPORTS),
        }


NOTHING = Disclosed()


def disclose(
    agent: Agent | None,
    granted: Collection[str],
    message: str | None,
    mark: str,
    earlier: Mapping[str, Any] | None = None,
) -> Disclosed:
    """`message`: what a person wrote, never an event's or a tool's text. `earlier`: the record of the turn before."""
    visible = TOOL in granted
    named = "/" in (message or "")
    if agent is None or not (visible or named or (earlier or {}).get("catalogue")):
        return Disclosed(warnings=_unseen(agent))
    sources = sources_for(agent)
    found = sources.list_skills()
    told = _told(agent, found.entries, visible, found.complete, earlier)
    fenced = partial(fence, mark=mark)
    invoked, more = _invoked(sources, message or "", found.entries, fenced)
    return Disclosed(
        *told,
        listed=tuple(sorted(entry.name for entry in found.entries if entry.by_model)) if visible else (),
        invoked=invoked,
        reports=(*found.reports, *more),
        warnings=(() if visible else _unseen(agent)) + (() if found.complete else (NOT_WHOLE,)),
    )


def _told(
    agent: Agent, entries: Collection[Entry], visible: bool, complete: bool, earlier: Mapping[str, Any] | None
) -> tuple[str, str, str | None]:
    """The first catalogue, the newest where it is another, and its digest."""
    if not complete and visible and earlier is None:
        earlier = _last_view(agent)
    before = earlier or {}
    first, newest, last = str(before.get("catalogue", "")), str(before.get("replacement", "")), before.get("digest")
    found = disclosure.update(
        entries,
        last=last,
        visible=visible,
        complete=complete,
        usage_rules=agent.usage_rules,
        length=description_length(agent),
    )
    if found is None:
        return first, newest, last
    return (first, found.text, found.digest) if first else (found.text, "", found.digest)


def _last_view(agent: Agent) -> Mapping[str, Any]:
    """What the newest run told that could tell anything: a source that does not answer takes no skill away."""
    records = Run.objects.filter(agent=agent).exclude(disclosure={}).order_by("-created_at", "-pk")
    for record in records.values_list("disclosure", flat=True)[:LOOKED_THROUGH]:
        if record.get("digest"):
            return {"catalogue": record["replacement"] or record["catalogue"], "digest": record["digest"]}
    return {}


def _invoked(
    sources: Merged, message: str, entries: tuple[Entry, ...], fenced: Callable[[str, str], str]
) -> tuple[tuple[Invoked, ...], tuple[Report, ...]]:
    found, failed = list[Invoked](), list[Report]()
    for entry in disclosure.asked_for(message, entries):
        try:
            loaded = sources.load_skill(entry.name)
        except SkillsError as error:
            failed.append(Report(entry.name, error.path, 0, str(error)))
            continue
        if loaded.by_user:  # as it stands now, not as it was listed
            found.append(Invoked(loaded.name, loaded.version, disclosure.handed(loaded, fenced)))
    return tuple(found), tuple(failed)


def _unseen(agent: Agent | None) -> tuple[str, ...]:
    """A skill narrows its own tools on purpose; an agent without the tool is an oversight."""
    if agent is None or TOOL in agent.grants:
        return ()
    count = AdoptedSkill.objects.filter(agent=agent, on_demand=True).count()
    if not count:
        return ()
    some = "1 skill is" if count == 1 else f"{count} skills are"
    return (f"{some} on demand, but the tool “{TOOL}” is not granted: the model sees nothing of them.",)


def description_length(agent: Agent) -> int:
    own = agent.limits.get("catalogDescriptionMaxLength") if isinstance(agent.limits, dict) else None
    return own if type(own) is int and own >= SHORTEST_DESCRIPTION else settings.CATALOG_DESCRIPTION_LENGTH
