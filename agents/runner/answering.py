"""The end of a turn that came by direct message: its answer goes back the same way, once however often it is tried."""

from functools import partial
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from agents.engine import loop
from agents.models import Run, Step
from agents.runner.errors import Waits
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
    lease.check()
    text = end.text if end.status == "succeeded" else f"I could not answer. {end.words}"
    step = _sent(run, journal, origin, CALL, _short(text))
    if step.state == Step.State.DONE or end.status != "succeeded":
        return end
    return loop.End("failed", "unsent", f"The answer could not be sent: {step.error}", end.text)


def told_to_wait(run: Run, waits: Waits, journal: Journal) -> None:
    """Who wrote by direct message learns that the owner has to decide first, and where; once for these calls."""
    origin = run.input.get("dm") if run.conversation_id is not None else None
    asked = [step for step in journal.steps if step.state == Step.State.WAITING and not step.outcome]
    if not isinstance(origin, dict) or waits.reason != "approval" or not asked:
        return
    path = reverse("talk", args=[run.agent.slug, run.conversation_id])
    names = ", ".join(step.name for step in asked)
    text = f"Before I go on, {names} waits for my owner's approval: {settings.SITE_URL}{path}"
    _sent(run, journal, origin, f"waits:{asked[-1].call_id}"[:200], _short(text))


def _sent(run: Run, journal: Journal, origin: dict[str, Any], call: str, text: str) -> Step:
    """The step of one message, sent unless an earlier worker has done so."""
    step = journal.finished(Step.Kind.TOOL, 0, call)
    if step is None or step.state == Step.State.RUNNING:
        step = step or journal.begin(
            Step.Kind.TOOL,
            messages.ANSWER,
            0,
            call_id=call,
            risk="writes",
            input={"arguments": {"recipient": origin["peer"], "message": text}},
        )
        _send(run, step, journal, origin)
    return step


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
