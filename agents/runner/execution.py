"""From a claimed run to its end."""

import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from agents import dispatch, variables
from agents.engine import fallback, loop
from agents.engine.context import LIVE, Context, assemble, names_used
from agents.engine.fences import fence
from agents.engine.outcomes import Call
from agents.models import Run, Step
from agents.runner import statements
from agents.runner.answering import answered, told_to_wait
from agents.runner.asking import Asking
from agents.runner.calling import Calling
from agents.runner.errors import WAITS_FOR_OTHERS, Fails, Stopped, Waits
from agents.runner.journal import Journal
from agents.runner.lease import Lease
from agents.runner.loading import Loaded, context_input, history, lasting_mark, load, mark, parts_of, told_before, typed
from agents.sources import disclose
from agents.tools import ToolContext
from marketplace.models import Author
from marketplace.protocol import templates
from marketplace.protocol.events import Event
from marketplace.protocol.storable import storable

log = logging.getLogger(__name__)


def execute(run_id: str) -> bool:
    """Carry out the run if it can be claimed now; whether it was."""
    run = Run.claim(run_id, secrets.token_hex(16), timezone.now())
    if run is None:
        return False
    if run.deliveries > Run.MAX_DELIVERIES:
        _end(run, Run.Status.FAILED, "parked", f"It ended its worker {Run.MAX_DELIVERIES} times and was parked.")
        return True
    journal = Journal(run)
    with Lease(run) as lease:
        try:
            end = _answered(run, journal, lease)
            _end(run, end.status, end.reason, end.words, output=end.text)
        except Stopped:
            log.info("run %s was stopped", run.pk)
        except Waits as waits:
            told_to_wait(run, waits, journal)
            _wait(run, waits)
        except Exception as error:
            log.exception("run %s failed in our own code", run.pk)
            journal.close()
            _end(run, Run.Status.FAILED, "bug", f"An error of this site, not of the skill: {type(error).__name__}.")
    return True


def _answered(run: Run, journal: Journal, lease: Lease) -> loop.End:
    """How it ended; a turn that came by direct message has its answer sent before that is on record."""
    try:
        end = _carry_out(run, journal, lease)
    except Fails as fails:
        journal.close()
        end = loop.End(Run.Status.FAILED, fails.reason, str(fails))
    return answered(run, end, journal, lease)


def _carry_out(run: Run, journal: Journal, lease: Lease) -> loop.End:
    loaded = load(run)
    run.parameters = {name: value.to_dict() for name, value in loaded.parameters.items()}
    if run.action == "template":
        return _template_action(run, loaded, Calling(run, loaded, journal, lease))
    messages = _first_request(run, loaded, journal)
    asking = Asking(run, loaded, journal, lease)
    calling = Calling(run, loaded, journal, lease)
    if not messages:
        raise Fails("nothing", "There is nothing to send: no soul, no skill and no message.")
    for happened in loop.run(messages, asking.complete, calling.call, ahead=calling.ahead):
        if isinstance(happened, loop.End):
            return happened
        _keep_unanswered(journal, happened)
    raise Fails("bug", "The loop ended without a word.")


def _keep_unanswered(journal: Journal, turn: loop.Turn) -> None:
    """Calls that were never executed get their row too: history is complete."""
    for reply in turn.replies:
        asked = reply.call
        if asked.problem and journal.finished(Step.Kind.TOOL, turn.number, asked.id) is None:
            step = journal.begin(
                Step.Kind.TOOL, asked.name or "unknown", turn.number, call_id=asked.id[:200], input={"raw": asked.raw}
            )
            journal.end(step, Step.State.REFUSED, outcome="refused", error=asked.problem, text=reply.text)


def _first_request(run: Run, loaded: Loaded, journal: Journal) -> list[dict[str, Any]]:
    """Its messages, put together once: a run that is taken up again sends the very same, whatever changed since."""
    if not run.request.get("messages"):
        _keep_request(run, loaded, _context(run, loaded, journal))
    messages: list[dict[str, Any]] = run.request["messages"]
    return messages


def _context(run: Run, loaded: Loaded, journal: Journal) -> Context:
    said = run.input
    arguments = {str(name): _argument(run, value) for name, value in said.get("arguments", {}).items()}
    disclosed = disclose(run.agent, loaded.granted, typed(run), mark(run), told_before(run))
    run.disclosure = storable(disclosed.record())
    given = context_input(
        run.agent,
        loaded,
        run.skill_address,
        mark(run),
        message=said.get("message"),
        event=_happened(run),
        arguments=arguments,
        history=history(run),
        disclosed=disclosed,
    )
    wanted = [name for name in names_used(given) if name not in LIVE | {"soul"} | arguments.keys()]
    values, warnings = _variables(run, loaded, journal, wanted)
    context = assemble(replace(given, values=values))
    unknown = fallback.unknown_refs(loaded.parameters["llm"].value or "", run.agent.aliases)
    more = [f"“{ref}” is neither a model nor an alias of this agent; it was skipped." for ref in unknown]
    more += [f"The skill asks for {name}, which is not granted." for name in loaded.in_vain]
    run.warnings = list(dict.fromkeys([*run.warnings, *context.warnings, *warnings, *more]))
    return context


def _argument(run: Run, value: Any) -> str:
    """As text. What a stranger's request brought stands inside a fence, a number or a yes excepted."""
    text = value if isinstance(value, str) else json.dumps(value)
    return fence("webhook", text, mark(run)) if run.trigger_kind == "webhook" and isinstance(value, str) else text


def _happened(run: Run) -> str | None:
    """What started the run, as JSON: an event, what a webhook or another run brought, or the slot of a schedule."""
    found = run.input.get("event") or run.input.get("payload")
    if found is None and run.trigger_kind == "cron":
        found = {"schedule": run.occasion_key}
    return None if found is None else json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _variables(
    run: Run, loaded: Loaded, journal: Journal, wanted: list[str]
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """What tools say for the named variables: asked once per run, and kept as a step."""
    if not wanted:
        return {}, ()
    earlier = journal.finished(Step.Kind.VARIABLE, 0)
    if earlier is not None and earlier.state == Step.State.DONE:
        return earlier.output["values"], tuple(earlier.output["warnings"])
    step = journal.begin(Step.Kind.VARIABLE, ", ".join(wanted), risk="reads", input={"names": wanted})
    # Under `tools: false` variables still obey the agent's grants, not the skill's.
    # Their fences have the agent's own mark, so that runs share what stands before the live input.
    fenced = partial(fence, mark=lasting_mark(run.agent))
    ctx = ToolContext(run.agent, timezone.now(), frozenset(run.agent.grants), run=run, fence=fenced)
    found = variables.resolve(wanted, ctx)
    output = {"values": dict(found.values), "warnings": list(found.warnings)}
    journal.end(step, Step.State.DONE, outcome="done", output=output, text="\n".join(found.warnings))
    return found.values, found.warnings


def _keep_request(run: Run, loaded: Loaded, context: Context) -> None:
    """The exact first request, before anything is sent."""
    run.rule = context.rule
    run.request = storable(
        {
            "messages": [message.to_dict() for message in context.messages],
            "tools": loaded.schemas,
            "parts": parts_of(context, loaded),
            "reason": context.reason,
        }
    )
    changed = ("parameters", "rule", "request", "disclosure", "warnings")
    statements.update(Run, {name: getattr(run, name) for name in changed}, pk=run.pk)


def _template_action(run: Run, loaded: Loaded, calling: Calling) -> loop.End:
    """Expand and send, without a model, through the same tools as a model's call."""
    if loaded.spec is None or run.input.get("event") is None:
        raise Fails("unusable", "A template action needs a skill and the event that fired it.")
    try:
        action = templates.read_action(loaded.spec.template)
    except ValueError as error:
        raise Fails("unusable", f"The recipient of this template is not a key: {error}") from None
    event = Event.from_dict(run.input["event"])
    author = Author.objects.filter(pk=event.pubkey).first()
    values = templates.placeholders(event, run.input.get("relay", ""), author.name if author else "")
    text = templates.expand_placeholders(action.body, values)
    Run.objects.filter(pk=run.pk).update(parameters=run.parameters)
    if action.kind == "log":
        return loop.End("succeeded", "", "", text)
    name, arguments = _sending(action, text)
    try:
        calling.call(Call("template", name, arguments), 1)
    except loop.ToolProblem as problem:
        return loop.End("failed", "tool", str(problem), text)
    return loop.End("succeeded", "", "", text)


def _sending(action: templates.Action, text: str) -> tuple[str, dict[str, Any]]:
    if action.kind == "post":
        return "nostr_post", {"content": text}
    if action.kind == "dm":
        return "nostr_dm_send", {"message": text, "recipient": action.recipient}
    return "nostr_dm_send", {"message": text}


def _mine(run: Run) -> Any:
    return Run.objects.filter(pk=run.pk, lease_token=run.lease_token, status=Run.Status.RUNNING)


def _wait(run: Run, waits: Waits) -> None:
    """Frees the worker: the row waits, for a time or for its owner."""
    timed = waits.until is not None and waits.reason not in WAITS_FOR_OTHERS
    _mine(run).update(
        status=Run.Status.WAITING,
        reason=waits.reason,
        reason_words=str(waits),
        waiting_until=waits.until,
        waits=run.waits + timed,
        deliveries=0,
        lease_token="",
        lease_until=None,
        warnings=run.warnings,
    )


def _end(run: Run, status: str, reason: str, words: str, output: str = "") -> None:
    """What waits for this end starts in the same transaction: neither is lost without the other."""
    now = timezone.now()
    with transaction.atomic():
        done = run.steps.filter(kind=Step.Kind.MODEL, state=Step.State.DONE).order_by("-position")
        served = done.values_list("served_model", "name").first() or ("",)
        ended = {
            "status": status,
            "reason": reason,
            "reason_words": words,
            "output": storable(output),
            "model": next(filter(None, served), ""),
            "finished_at": now,
            "lease_token": "",
            "lease_until": None,
            "warnings": run.warnings,
        }
        mine = {"pk": run.pk, "lease_token": run.lease_token, "status": Run.Status.RUNNING}
        if statements.update(Run, ended, **mine):
            run.status, run.output = status, output
            dispatch.chained(run, now)
