"""The end of a turn that came by direct message: its answer goes back the same way, once however often it is tried."""

from functools import partial
from typing import Any

from django.utils import timezone

from agents.engine import loop
from agents.models import Run, Step
from agents.runner.journal import Journal
from agents.runner.lease import Lease
from agents.tools import SecretFound, ToolContext, ToolError, messages

CALL = "answer"  # the step's call id: there is one of it in a run
LONGEST = 20_000  # bytes; a gift wrap of more than that is larger than what relays take
CUT = "\n[cut here: the whole answer is on the site]"


def answered(run: Run, end: loop.End, journal: Journal, lease: Lease) -> loop.End:
    """The end as it stands after the answer, or the words of what went wrong, were sent. Raises Stopped."""
    origin = run.input.get("dm") if run.conversation_id is not None else None
    if not isinstance(origin, dict):
        return end
    step = journal.finished(Step.Kind.TOOL, 0, CALL)
    if step is None or step.state == Step.State.RUNNING:
        lease.check()
        text = _short(end.text if end.status == "succeeded" else f"I could not answer. {end.words}")
        step = step or journal.begin(
            Step.Kind.TOOL,
            messages.ANSWER,
            0,
            call_id=CALL,
            risk="writes",
            input={"arguments": {"recipient": origin["peer"], "message": text}},
        )
        _send(run, step, journal, origin)
    if step.state == Step.State.DONE or end.status != "succeeded":
        return end
    return loop.End("failed", "unsent", f"The answer could not be sent: {step.error}", end.text)


def _send(run: Run, step: Step, journal: Journal, origin: dict[str, Any]) -> None:
    """A worker that took over finds the signed event in the step, and sends that very one again."""

    def flag(words: str) -> None:
        run.warnings = [*run.warnings, words]

    ctx = ToolContext(
        agent=run.agent,
        now=timezone.now(),
        granted=frozenset(),
        run=run,
        recalled=step.intent or {},
        remember=partial(journal.remember, step),
        flag=flag,
    )
    try:
        said = messages.answer(
            ctx, origin["peer"], step.input["arguments"]["message"], origin["nip"], origin.get("relay", "")
        )
    except ToolError as error:
        if isinstance(error, SecretFound):
            flag(str(error))
        journal.end(step, Step.State.FAILED, outcome="failed", error=str(error))
        return
    journal.end(step, Step.State.DONE, outcome="done", text=said)


def _short(text: str) -> str:
    raw = text.encode()
    return text if len(raw) <= LONGEST else raw[: LONGEST - len(CUT)].decode(errors="ignore") + CUT
