"""A conversation as it is read: each turn's message, what was done for it, and its answer as far as it has come."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.models.conversations import Conversation
from agents.models.runs import Run
from agents.models.steps import Step

UNREAD = ("request", "parameters", "disclosure", "overrides")  # of a run; a conversation shows none of them


@dataclass
class Turn:
    """One run of a conversation with its steps."""

    run: Run
    steps: list[Step] = field(default_factory=list)

    @property
    def message(self) -> str:
        return str(self.run.input.get("message") or "")

    @property
    def answer(self) -> str:
        """The whole one, or what a model has written of it so far."""
        last = self._writing
        return self.run.output or (last.text if last else "")

    @property
    def done(self) -> list[Step]:
        """What happened on the way: calls, what was said before them, and attempts that failed."""
        last = self._writing
        return [step for step in self.steps if step is not last and (step.kind == "tool" or step.text or step.error)]

    @property
    def waiting(self) -> list[Step]:
        """Calls that the owner has to decide on."""
        if self.run.status != Run.Status.WAITING:
            return []
        return [step for step in self.steps if step.state == Step.State.WAITING and not step.outcome]

    @property
    def _writing(self) -> Step | None:
        """The attempt whose text is the answer."""
        models = [step for step in self.steps if step.kind == Step.Kind.MODEL]
        last = models[-1] if models else None
        if last is None or last.state in {Step.State.FAILED, Step.State.REFUSED}:
            return None
        return last if self.run.output or last.state != Step.State.DONE else None


def turns_of(talk: Conversation, most: int, *, first: int = 0, before: int | None = None) -> list[Turn]:
    """The newest turns from number `first` on and below `before`, in order; two queries."""
    runs = Run.objects.filter(conversation=talk, turn__gte=first).defer(*UNREAD).order_by("-turn")
    if before is not None:
        runs = runs.filter(turn__lt=before)
    found = list(reversed(runs[:most]))
    steps: dict[str, list[Step]] = defaultdict(list)
    for step in steps_of(found):
        steps[step.run_id].append(step)
    return [Turn(run, steps[run.pk]) for run in found]


def steps_of(runs: Sequence[Run]) -> list[Step]:
    rows = Step.objects.filter(run__in=[run.pk for run in runs]).defer("output", "usage", "intent")
    return list(rows.order_by("run", "position"))
