"""Asking models: along the chain until one answers, and when none does, later or not at all."""

import json
import random
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from agents import llm
from agents.engine import fallback, outcomes
from agents.engine.fallback import ModelError
from agents.engine.outcomes import Outcome
from agents.models import Notice, Run, Step
from agents.runner.attempting import LOOK, Attempting
from agents.runner.errors import Fails, Waits
from agents.runner.journal import Journal
from agents.runner.lease import Lease
from agents.runner.loading import PER_MESSAGE, Loaded

LARGER = 2  # times the limit, for the one retry of a truncated answer


class Asking:
    """The chain of one run. The model that answered last is asked first on the next turn."""

    def __init__(self, run: Run, loaded: Loaded, journal: Journal, lease: Lease) -> None:
        self.run, self.loaded, self.journal, self.lease = run, loaded, journal, lease
        site = run.agent.llm or settings.DEFAULT_LLM
        chain = loaded.parameters["llm"].value or "default"
        self.models = fallback.candidates(chain, run.agent.aliases, site)
        self.attempts = Attempting(run, journal, lease, self.models[0] if self.models else "")
        self.first = 0
        self.too_small = 0  # tokens: the largest window that a provider has refused this conversation for
        self.schema_tokens = loaded.schema_tokens

    def complete(self, messages: list[dict[str, Any]], turn: int, larger: bool) -> Outcome:
        """The next answer. Raises Fails, Waits or Stopped."""
        replayed = self._replay(turn)
        if replayed is not None:
            return replayed
        wanted = (self.loaded.parameters["max_tokens"].value or 4_096) * (LARGER if larger else 1)
        tokens = self._tokens(messages)
        errors: list[ModelError] = []
        empty = None
        step = None
        for at in range(self.first, len(self.models)):
            model = self.models[at]
            size = self._room(model, tokens, wanted)
            if size is None:
                step = self._too_long(model, turn, tokens)
                continue
            step, outcome = self._try(model, turn, tokens, self._request(messages, size), errors)
            if outcome is not None and (outcome.kind != "empty" or empty is not None):
                self.first = at
                return outcome
            empty = outcome or empty  # the next model once
            if step.outcome == "filtered":
                break
        if empty is not None:
            return empty
        raise self._end(step, errors)

    def _replay(self, turn: int) -> Outcome | None:
        """The answer an earlier worker already got on this turn; what it left open is settled as it was reserved."""
        for step in [s for s in self.journal.steps if s.kind == Step.Kind.MODEL and s.turn == turn]:
            if step.state == Step.State.RUNNING:
                self.attempts.abandon(step, "The worker ended before the answer came.")
            elif step.state == Step.State.DONE and step.outcome != "empty":
                if step.name in self.models:
                    self.first = self.models.index(step.name)
                return outcomes.read(step.output.get("response"), step.input.get("max_tokens"))
        return None

    def _try(
        self, model: str, turn: int, tokens: int, request: llm.Request, errors: list[ModelError]
    ) -> tuple[Step, Outcome | None]:
        """One model, twice where a short wait is asked for: its last step, and the outcome if it answered."""
        waited: float | None = None
        while True:
            self.lease.check(within=LOOK)
            step = self.attempts.begin(model, turn, tokens, request.max_tokens, waited or 0)
            if step.state == Step.State.REFUSED:
                return step, None
            try:
                return step, self.attempts.ask(step, request)
            except llm.ModelFailed as failed:
                error = failed.error
            decision = fallback.decide(error, waited_here=waited is not None, jitter=_jitter())
            self.attempts.failed(step, error, decision)
            if decision.action == "wait":
                waited = decision.seconds
                time.sleep(waited)
                continue
            errors.append(error)
            if decision.flag_owner:
                self._flag(f"{model} did not work ({step.outcome}): {error.message}")
            if step.outcome == "context":
                self.too_small = max(self.too_small, self.attempts.terms.sizes(model).window or 0)
            return step, None

    def _room(self, model: str, tokens: int, wanted: int) -> int | None:
        """Tokens its answer may have; None where the conversation does not fit."""
        sizes = self.attempts.terms.sizes(model)
        if sizes.window is not None and sizes.window <= self.too_small:
            return None
        return fallback.room(tokens, wanted, sizes.window, sizes.most_output)

    def _too_long(self, model: str, turn: int, tokens: int) -> Step:
        window = self.attempts.terms.sizes(model).window or 0
        words = f"Its window of {window:,} tokens is too small for about {tokens:,}; it was not asked."
        return self.attempts.refuse(model, turn, "context", words)

    def _tokens(self, messages: list[dict[str, Any]]) -> int:
        asked = (json.dumps(m["tool_calls"]) if m.get("tool_calls") else "" for m in messages)
        texts = (str(m.get("content") or "") + calls for m, calls in zip(messages, asked, strict=True))
        return self.schema_tokens + sum(llm.count(text) + PER_MESSAGE for text in texts)

    def _request(self, messages: list[dict[str, Any]], max_tokens: int) -> llm.Request:
        values = self.loaded.parameters
        return llm.Request(messages, self.loaded.schemas, max_tokens, values["temperature"].value, values["seed"].value)

    def _end(self, step: Step | None, errors: list[ModelError]) -> Fails | Waits:
        """No model is left: the run goes on when one of them may be ready again, or it has failed."""
        if step is None:
            return Fails("unavailable", "There is no model to ask: neither the skill nor the agent names one.")
        filtered = step.outcome == "filtered"
        decision = fallback.at_end(() if filtered else errors, waits=self.run.waits, jitter=_jitter())
        if decision.action == "stop":
            if self.attempts.full is not None:
                Notice.objects.stopped(self.attempts.full, timezone.now())
            return Fails(step.outcome, f"{step.name}: {step.error}")
        passing = next(kind for kind in map(fallback.classify, reversed(errors)) if kind in fallback.PASSING)
        until = timezone.now() + timedelta(seconds=decision.seconds)
        return Waits(passing, f"Every model was tried; the next attempt is in {decision.seconds:.0f} s.", until)

    def _flag(self, words: str) -> None:
        if words not in self.run.warnings:
            self.run.warnings = [*self.run.warnings, words]


def _jitter() -> float:
    return random.random()  # noqa: S311 spreads load, hides nothing
