"""Calling tools: rights, the owner's approval, and every effect at most once."""

import logging
from dataclasses import replace
from typing import NoReturn

from django.utils import timezone

from agents.engine.fences import fence
from agents.engine.loop import ToolProblem
from agents.engine.outcomes import Call
from agents.models import Run, Step
from agents.models.steps import APPROVED, DECLINED
from agents.runner.attempting import LOOK
from agents.runner.errors import Waits
from agents.runner.journal import Journal, storable
from agents.runner.lease import Lease
from agents.runner.loading import Loaded, mark
from agents.tools import TOOLS, Tool, ToolContext, ToolFailed, ToolRefused, call

log = logging.getLogger(__name__)

LONGEST_KEPT = 100_000  # characters of a reply kept with the step


class Calling:
    """The tools of one run."""

    def __init__(self, run: Run, loaded: Loaded, journal: Journal, lease: Lease) -> None:
        self.run, self.loaded, self.journal, self.lease = run, loaded, journal, lease

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
        if step is None:
            step = self._begin(asked, turn, tool)
        elif step.state == Step.State.WAITING:
            self._decided(step)
        elif tool is not None and not tool.repeatable:
            words = "The outcome of this call is unknown: the worker ended in the middle. It was not repeated."
            self.journal.end(step, Step.State.UNKNOWN, outcome="unknown", error=words, text=f"Error: {words}")
            raise ToolProblem(words)
        return self._carry_out(step, asked)

    def _begin(self, asked: Call, turn: int, tool: Tool | None) -> Step:
        waits = tool is not None and tool.risk != "reads" and self.run.autonomy == "suggest"
        waits = waits and asked.name in self.loaded.granted
        step = self.journal.begin(
            Step.Kind.TOOL,
            asked.name or "unknown",
            turn,
            call_id=asked.id[:200],
            risk=tool.risk if tool else "",
            input={"arguments": asked.arguments},
            state=Step.State.WAITING if waits else Step.State.RUNNING,
        )
        if waits:
            self._ask_owner(step)
        return step

    def _ask_owner(self, step: Step) -> NoReturn:
        raise Waits("approval", f"{step.name} waits for your approval.", None)

    def _decided(self, step: Step) -> None:
        """What the owner said of a waiting step; raises again while nothing was said."""
        if step.outcome == DECLINED:
            words = "The owner declined this call."
            self.journal.end(step, Step.State.REFUSED, error=words, text=f"Error: {words}")
            raise ToolProblem(words)
        if step.outcome != APPROVED:
            self._ask_owner(step)
        self.journal.write(step, {"state": Step.State.RUNNING, "started_at": timezone.now()})

    def _carry_out(self, step: Step, asked: Call) -> str:
        ctx = ToolContext(
            agent=self.run.agent,
            now=timezone.now(),
            granted=frozenset(self.loaded.granted),
            run=self.run,
            recalled=step.intent or {},
            remember=lambda intent: self.journal.remember(step, intent),
            flag=self._flag,
            fence=lambda source, text: fence(source, text, mark(self.run)),
        )
        try:
            text: str = storable(call(ctx, asked.name, asked.arguments))
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
