"""Asks an agent from the command line, writes its answer as it comes, and ends with how that went."""

import json
import secrets
import signal
import sys
import time
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from agents import arming
from agents.dispatch import talking
from agents.models import AdoptedSkill, Agent, Conversation, Run
from agents.models.turns import Turn, steps_of
from agents.sources import sources_for
from marketplace.protocol import nip19

LOOK_EVERY = 0.2  # seconds; streamed text is written about as often
WORKER_WITHIN = 20.0  # seconds until a queued run counts as taken by nobody


class Command(BaseCommand):
    help = "Say something to an agent and wait for its answer, which is written to standard output as it comes."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agent", help="its slug, or its id where several owners have the same slug")
        parser.add_argument("message", help="what to say; - reads it from standard input")
        parser.add_argument("--skill", default="", help="address or name of an adopted skill to run on the message")
        parser.add_argument("--model", default="", help="provider/name or an alias, for this message only")
        parser.add_argument("--go-on", action="store_true", help="in the latest conversation from the command line")
        parser.add_argument("--json", action="store_true", help="one JSON object at the end instead of the text")
        parser.add_argument(
            "--worker-within", type=float, default=WORKER_WITHIN, help="seconds until it says that no worker answers"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        own = _agent(options["agent"])
        message = sys.stdin.read() if options["message"] == "-" else options["message"]
        _check(message)
        skill, message = _skill(own, options["skill"], message)
        overrides = {"llm": options["model"]} if options["model"] else {}
        run = _said(own, message, skill, overrides, options["go_on"])
        signal.signal(signal.SIGTERM, _interrupted)
        try:
            turn = self._follow(run, options["worker_within"], options["json"])
        except KeyboardInterrupt:
            run.cancel(timezone.now(), "It was stopped on the command line.")
            raise CommandError(f"Stopped. Run {run.pk}.", returncode=130) from None
        if options["json"]:
            self.stdout.write(json.dumps(_told(turn), ensure_ascii=False))
        if turn.run.status != Run.Status.SUCCEEDED:
            raise CommandError(f"{turn.run.status}: {turn.run.reason_words or 'without a reason'} (run {run.pk})")

    def _follow(self, run: Run, worker_within: float, quiet: bool) -> Turn:
        """Writes what is new of the answer until the run has ended; says once what it waits for."""
        since, shown, said = time.monotonic(), "", ""
        while True:
            run.refresh_from_db(fields=["status", "reason", "reason_words", "output", "warnings", "cost", "model"])
            turn = Turn(run, steps_of([run]))
            if not quiet:
                shown = self._write(turn.answer, shown)
            if run.is_final:
                run.refresh_from_db()
                if shown:
                    self.stdout.write("")
                return turn
            words = _waits_for(turn, time.monotonic() - since > worker_within)
            if words and words != said:
                self.stderr.write(words)
                said = words
            time.sleep(LOOK_EVERY)

    def _write(self, answer: str, shown: str) -> str:
        """What another attempt wrote does not go on with the first: it begins anew on its own line."""
        if not answer or answer == shown:
            return shown
        if not answer.startswith(shown):
            self.stdout.write("")
            shown = ""
        self.stdout.write(answer[len(shown) :], ending="")
        self.stdout.flush()
        return answer


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _agent(text: str) -> Agent:
    found = list(Agent.objects.filter(slug=text.replace("\x00", "")).select_related("identity")[:2])
    if not found and text.isascii() and text.isdigit() and len(text) < 19:
        found = list(Agent.objects.filter(pk=int(text)).select_related("identity"))
    if not found:
        known = ", ".join(Agent.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise CommandError(f"There is no agent “{text[:80]}”. There is: {known or 'none'}.")
    if len(found) > 1:
        raise CommandError(f"Several owners have an agent “{text[:80]}”: name it by its id.")
    return found[0]


def _check(message: str) -> None:
    if not message.strip() or len(message) > 100_000 or "\x00" in message:
        raise CommandError("Say something, of at most 100,000 characters.")
    if nip19.holds_nsec(message):
        raise CommandError("The message holds a secret key (nsec); it was not kept. Treat that key as leaked.")
    try:
        message.encode()
    except UnicodeEncodeError:
        raise CommandError("The message is not text in this terminal's encoding.") from None


def _skill(own: Agent, wanted: str, message: str) -> tuple[tuple[str, str], str]:
    """The adopted skill's address and pinned version; one that is only known by /name is called so in the message."""
    if not wanted:
        return ("", ""), message
    rows = AdoptedSkill.objects.filter(agent=own).exclude(pinned_event="")
    for row in rows:
        if wanted in {row.address, row.address.split(":", 2)[-1]}:
            spec = arming.pinned_spec(own, row.pinned_event)
            if spec is None or not spec.readable or not spec.runnable or spec.action == "template":
                raise CommandError(f"The skill “{wanted[:80]}” cannot be run by hand.")
            return (row.address, row.pinned_event), message
    names = [entry.name for entry in sources_for(own).list_skills().entries if entry.by_user]
    if wanted in names:
        return ("", ""), f"/{wanted} {message}"
    raise CommandError(f"{own.name} has no skill “{wanted[:80]}”.")


def _said(own: Agent, message: str, skill: tuple[str, str], overrides: dict[str, Any], go_on: bool) -> Run:
    now, key, channel = timezone.now(), secrets.token_hex(16), Conversation.Channel.CLI
    latest = Conversation.objects.filter(agent=own, channel=channel).order_by("-updated_at", "-id").first()
    try:
        if go_on and latest is not None:
            return talking.say(latest, message, now, key, skill=skill, overrides=overrides)
        return talking.begin(own, channel, message, now, key, skill=skill, overrides=overrides)
    except talking.Busy as busy:
        raise CommandError(str(busy)) from None


def _waits_for(turn: Turn, long: bool) -> str:
    run = turn.run
    if turn.waiting:
        calls = ", ".join(step.name for step in turn.waiting)
        return f"Waits for the owner's approval of {calls}, on the page of run {run.pk}."
    if run.status == Run.Status.WAITING:
        return run.reason_words
    if run.status == Run.Status.QUEUED and long:
        return f"No worker has taken run {run.pk} yet. Is one running (`make up`)? Ctrl-C stops the run."
    return ""


def _told(turn: Turn) -> dict[str, Any]:
    run = turn.run
    return {
        "run": run.pk,
        "conversation": run.conversation_id,
        "turn": run.turn,
        "status": run.status,
        "reason": run.reason,
        "reason_words": run.reason_words,
        "answer": turn.answer,
        "model": run.model,
        "cost": f"{run.cost:f}",
        "unknown_costs": run.unknown_costs,
        "warnings": run.warnings,
        "calls": [{"name": step.name, "state": step.state} for step in turn.steps if step.kind == "tool"],
    }
