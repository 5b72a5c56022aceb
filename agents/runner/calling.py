"""Calling tools: rights, the owner's approval, and every effect at most once."""

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NoReturn

from django.conf import settings
from django.utils import timezone

from agents.engine.fences import fence
from agents.engine.loop import ToolProblem
from agents.engine.outcomes import Call
from agents.models import Run, Step
from agents.models.steps import APPROVED, DECLINED
from agents.runner.attempting import LOOK
from agents.runner.errors import Waits
from agents.runner.journal import Journal
from agents.runner.lease import Lease
from agents.runner.loading import Loaded, mark
from agents.runner.verbs import RunVerbs
from agents.tools import TOOLS, Tool, ToolContext, ToolFailed, ToolRefused, ToolWaits, call, foresee
from marketplace.protocol.storable import storable

log = logging.getLogger(__name__)

LONGEST_KEPT = 100_000  # characters of a reply kept with the step
# A run that waits for one it started is woken by its end; this is for ends that wake nobody, such as a stop.
LOOK_AGAIN = timedelta(minutes=1)


class Calling:
    """The tools of one run."""

    def __init__(self, run: Run, loaded: Loaded, journal: Journal, lease: Lease) -> None:
        self.run, self.loaded, self.journal, self.lease = run, loaded, journal, lease

    def ahead(self, calls: tuple[Call, ...], turn: int) -> None:
        """Every call of a turn that its owner must decide on is put before them at once, before the first is made."""
        for asked in calls:
            tool = TOOLS.get(asked.name)
            if not self._asks(tool) or self.journal.finished(Step.Kind.TOOL, turn, asked.id[:200]) is not None:
                continue
            self.lease.check()
            try:
                self._open(replace(asked, arguments=storable(asked.arguments)), turn, tool)
            except ToolProblem:
                continue  # on record; the call finds it there

    def call(self, asked: Call, turn: int) -> str:
        """The tool's text. Raises ToolProblem for the model to read; Waits where the owner must decide first."""
        # What is signed and sent must be what can be kept.
        asked = replace(asked, arguments=storable(asked.arguments))
        step = self.journal.finished(Step.Kind.TOOL, turn, asked.id[:200])
        tool = TOOLS.get(asked.name)
        if step is not None and step.state not in {Step.State.RUNNING, Step.State.WAITING}:
            return self._recorded(step)
        # Nothing is read after a stop for longer than a second, and nothing at all is done.
        self.lease.check(within=LOOK if tool is not None and tool.risk == "reads" else 0)
        approved = False
        if step is None:
            step = self._open(asked, turn, tool)
        elif step.state == Step.State.RUNNING and tool is not None and not tool.repeatable:
            words = "The outcome of this call is unknown: the worker ended in the middle. It was not repeated."
            self.journal.end(step, Step.State.UNKNOWN, outcome="unknown", error=words, text=f"Error: {words}")
            raise ToolProblem(words)
        if step.state == Step.State.WAITING:
            self._decided(step)
        approved = step.outcome == APPROVED
        return self._carry_out(step, asked, approved)

    def _asks(self, tool: Tool | None) -> bool:
        """Whether its owner decides on each call of this tool."""
        if tool is None or tool.risk == "reads" or tool.name not in self.loaded.granted:
            return False
        return self.run.autonomy == "suggest" or (tool.asks and not self.run.agent.self_change)

    def _open(self, asked: Call, turn: int, tool: Tool | None) -> Step:
        """The call's row, waiting where its owner decides; what would be refused anyway is not put before them."""
        asks = self._asks(tool)
        step = self.journal.begin(
            Step.Kind.TOOL,
            asked.name or "unknown",
            turn,
            call_id=asked.id[:200],
            risk=tool.risk if tool else "",
            input={"arguments": asked.arguments},
        )
        if asks:
            try:
                would = foresee(self._context(step, approved=True), asked.name, asked.arguments)
            except ToolRefused as refused:
                self._end_badly(step, Step.State.REFUSED, "refused", str(refused))
            self.journal.write(step, {"state": Step.State.WAITING, "output": {"would": would}})
        return step

    def _decided(self, step: Step) -> None:
        """What the owner said of a waiting step; Waits while nothing was said."""
        if step.outcome == DECLINED:
            words = f"The owner declined this call{f': {step.error}' if step.error else '.'}"
            self._end_badly(step, Step.State.REFUSED, DECLINED, words)
        if step.outcome != APPROVED:
            until = step.started_at + timedelta(days=settings.APPROVAL_DAYS)
            if timezone.now() >= until:
                words = f"Nobody approved this call within {settings.APPROVAL_DAYS} days, so it was declined."
                self._end_badly(step, Step.State.REFUSED, DECLINED, words)
            self._ask_owner(step, until)
        self.journal.write(step, {"state": Step.State.RUNNING, "started_at": timezone.now()})

    def _ask_owner(self, step: Step, until: datetime) -> NoReturn:
        undecided = [one for one in self.journal.steps if one.state == Step.State.WAITING and not one.outcome]
        words = f"{step.name} waits" if len(undecided) == 1 else f"{len(undecided)} calls wait"
        raise Waits("approval", f"{words} for your approval.", until)

    def _context(self, step: Step, approved: bool) -> ToolContext:
        return ToolContext(
            agent=self.run.agent,
            now=timezone.now(),
            granted=frozenset(self.loaded.granted),
            run=self.run,
            recalled=step.intent or {},
            remember=lambda intent: self.journal.remember(step, intent),
            flag=self._flag,
            fence=lambda source, text: fence(source, text, mark(self.run)),
            key=f"{self.run.pk}:{step.position}",
            approved=approved,
            verbs=RunVerbs(),
        )

    def _carry_out(self, step: Step, asked: Call, approved: bool) -> str:
        try:
            text: str = storable(call(self._context(step, approved), asked.name, asked.arguments))
        except ToolWaits as waits:
            raise Waits("child", str(waits), timezone.now() + LOOK_AGAIN) from None
        except ToolRefused as refused:
            self._end_badly(step, Step.State.REFUSED, "refused", str(refused))
        except ToolFailed as failed:
            state = Step.State.UNKNOWN if failed.unknown else Step.State.FAILED
            self._end_badly(step, state, "unknown" if failed.unknown else "failed", str(failed))
        except Exception as error:
            # An error of ours in one tool is no reason to leave the model without its reply.
            log.exception("the tool %s failed in our own code, in run %s", step.name, self.run.pk)
            tried = step.risk != "reads" and bool(step.intent)
            state = Step.State.UNKNOWN if tried else Step.State.FAILED
            self._end_badly(step, state, "bug", f"The tool failed with an error of this site: {type(error).__name__}.")
        self.journal.end(step, Step.State.DONE, text=text[:LONGEST_KEPT], outcome="done")
        return text

    def _end_badly(self, step: Step, state: str, outcome: str, words: str) -> NoReturn:
        self.journal.end(step, state, outcome=outcome, error=words, text=f"Error: {words}")
        raise ToolProblem(words)

    def _flag(self, words: str) -> None:
        self.run.warnings = [*self.run.warnings, words]
        Run.objects.filter(pk=self.run.pk).update(warnings=self.run.warnings)

    def _recorded(self, step: Step) -> str:
        """The reply an earlier worker got."""
        if step.state == Step.State.DONE:
            return step.text
        raise ToolProblem(step.error or "This call did not work.")
