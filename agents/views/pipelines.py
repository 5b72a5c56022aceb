"""Which of an agent's skills start which, drawn as pipelines, and what each of their last passages cost altogether."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.engine.limits import MAX_DEPTH
from agents.models import Agent, Run, Trigger
from agents.views.current import own_agent
from marketplace.protocol import chains
from marketplace.protocol.triggers import read_trigger
from marketplace.protocol.triggers.chain import ENDINGS, Chain

PASSAGES = 10  # the newest of each pipeline
MOST_RUNS = 500  # of all passages together


@dataclass(frozen=True)
class Stage:
    """One skill of a pipeline."""

    address: str
    depth: int
    when: str  # "" for the first: it starts by something else
    trigger: Trigger | None

    @property
    def name(self) -> str:
        return self.address.split(":", 2)[-1]


@dataclass
class Passage:
    """One way through a pipeline: its first run and all that followed from it."""

    first: Run
    runs: list[Run] = field(default_factory=list)

    @property
    def cost(self) -> Decimal:
        return sum((run.cost for run in self.runs), Decimal(0))

    @property
    def unknown(self) -> int:
        return sum(run.unknown_costs for run in self.runs)

    @property
    def open(self) -> bool:
        return any(not run.is_final for run in self.runs)

    @property
    def failed(self) -> list[Run]:
        return [run for run in self.runs if run.status == Run.Status.FAILED]


@dataclass
class Pipeline:
    stages: list[Stage]
    passages: list[Passage]


@login_required
@require_safe
def pipelines(request: HttpRequest, slug: str) -> HttpResponse:
    own = own_agent(request, slug)
    context = {"agent": own, "tab": "agent_triggers", "pipelines": _pipelines(own)}
    return render(request, "agents/pipelines.html", context)


def _pipelines(own: Agent) -> list[Pipeline]:
    triggers = {row.address: row for row in Trigger.objects.filter(agent=own)}
    links: dict[str, Chain] = {}
    for address, trigger in triggers.items():
        spec = read_trigger([tuple(tag) for tag in trigger.tags]) if trigger.kind == "chain" else None
        if spec is not None and isinstance(spec.data, Chain):
            links[address] = spec.data
    found = []
    for rows in chains.pipelines({address: str(link.source) for address, link in links.items()}):
        stages = [
            Stage(address, depth, ENDINGS[links[address].on] if depth else "", triggers.get(address))
            for depth, address in rows
        ]
        found.append(Pipeline(stages, _passages(own, stages[0].address)))
    return found


def _passages(own: Agent, first: str) -> list[Passage]:
    """The newest, each with every run that followed; one query for each step of the longest chain."""
    firsts = Run.objects.filter(agent=own, skill_address=first).exclude(status=Run.Status.SUPPRESSED)
    found = {run.pk: Passage(run, [run]) for run in firsts.defer(*Run.HEAVY).order_by("-created_at", "-pk")[:PASSAGES]}
    passage_of = {pk: pk for pk in found}
    level: Sequence[str] = list(found)
    for _ in range(MAX_DEPTH):
        if not level or len(passage_of) > MOST_RUNS:
            break
        children = Run.objects.filter(parent__in=level).defer(*Run.HEAVY).order_by("created_at", "pk")[:MOST_RUNS]
        following = defaultdict(list)
        for run in children:
            passage_of[run.pk] = passage_of[str(run.parent_id)]
            following[passage_of[run.pk]].append(run)
        for pk, runs in following.items():
            found[pk].runs += runs
        level = [run.pk for runs in following.values() for run in runs]
    return list(found.values())
