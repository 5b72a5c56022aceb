"""Asking models: along the chain, each attempt a step, each paid for before it is made."""

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.utils import timezone

from agents import llm
from agents.engine import budgets, costs, fallback, outcomes
from agents.engine.costs import Price, Usage
from agents.engine.outcomes import Outcome
from agents.models import Run, Step
from agents.runner.allowances import allowances
from agents.runner.errors import Fails, Stopped, Waits
from agents.runner.journal import NO_USAGE, Journal
from agents.runner.lease import Lease
from agents.runner.loading import Loaded

LARGER = 2  # times the limit, for the one retry of a truncated answer
STOP_POLL = 1.0  # seconds between looks at the run while a call is out


class Asking:
    """The chain of one run. The model that answered last is asked first on the next turn."""

    def __init__(self, run: Run, loaded: Loaded, journal: Journal, lease: Lease) -> None:
        self.run, self.loaded, self.journal, self.lease = run, loaded, journal, lease
        site = run.agent.llm or settings.DEFAULT_LLM
        chain = loaded.parameters["llm"].value or "default"
        self.models = fallback.candidates(chain, run.agent.aliases, site)
        self.first = 0
        self.schema_tokens = sum(llm.count(json.dumps(schema)) for schema in loaded.schemas)

    def complete(self, messages: list[dict[str, Any]], turn: int, larger: bool) -> Outcome:
        """The next answer. Raises Fails, Waits or Stopped."""
        max_tokens = (self.loaded.parameters["max_tokens"].value or 4_096) * (LARGER if larger else 1)
        replayed = self._replay(turn, max_tokens)
        if replayed is not None:
            return replayed
        empty = False
        last_error = ("unavailable", "No model of the chain could be tried.")
        for at in range(self.first, len(self.models)):
            outcome, error, stop = self._try(at, messages, turn, max_tokens)
            if outcome is not None and outcome.kind != "empty":
                self.first = at
                return outcome
            if outcome is not None:
                if empty or at == len(self.models) - 1:
                    return outcome
                empty = True  # the next model once
            elif error is not None:
                last_error = error
                if stop:
                    break
        raise Fails(*last_error)

    def _replay(self, turn: int, max_tokens: int) -> Outcome | None:
        """The answer an earlier worker already got on this turn; what it left open is settled as it was reserved."""
        for step in [s for s in self.journal.steps if s.kind == Step.Kind.MODEL and s.turn == turn]:
            if step.state == Step.State.RUNNING:
                self._abandon(step, "The worker ended before the answer came.")
            elif step.state == Step.State.DONE and step.outcome != "empty":
                return outcomes.read(step.output.get("response"), max_tokens)
        return None

    def _try(
        self, at: int, messages: list[dict[str, Any]], turn: int, max_tokens: int
    ) -> tuple[Outcome | None, tuple[str, str] | None, bool]:
        """One model, twice where a short wait is asked for: outcome, or error and whether that ends the chain."""
        waited = 0.0
        while True:
            self.lease.check()
            endpoint = llm.endpoint_for(self.run.agent, self.models[at])
            refusal = self._refusal(endpoint, messages, max_tokens)
            if refusal:
                step = self.journal.begin(Step.Kind.MODEL, endpoint.model, turn)
                self.journal.end(step, Step.State.REFUSED, outcome=refusal[0], error=refusal[1])
                return None, refusal, False
            step, price = self._begin(endpoint, messages, turn, max_tokens, waited)
            try:
                answer = self._call(endpoint, messages, max_tokens, step)
            except llm.ModelFailed as failed:
                seconds = self._failed(step, failed, at, waited > 0)
                if seconds is None:
                    words = f"{endpoint.model}: {failed}"
                    return None, (step.outcome, words), step.outcome == "filtered"
                waited = seconds
                time.sleep(seconds)
                continue
            return self._answered(step, answer, endpoint, price, max_tokens), None, False

    def _refusal(
        self, endpoint: llm.Endpoint, messages: list[dict[str, Any]], max_tokens: int
    ) -> tuple[str, str] | None:
        """Why this model is not even asked: its window is too small, or the money is not there."""
        tokens = self._tokens(messages)
        window = llm.window_of(endpoint.model)
        if window is not None and tokens > window:
            return "context", f"About {tokens:,} tokens do not fit into its window of {window:,}; it was not asked."
        worst = costs.worst_case(tokens, max_tokens, llm.price_of(endpoint))
        if worst == 0:
            return None
        words = budgets.refusal(worst, allowances(self.run.agent, timezone.now()))
        return ("budget", words) if words else None

    def _tokens(self, messages: list[dict[str, Any]]) -> int:
        texts = (str(m.get("content") or "") + json.dumps(m.get("tool_calls", "")) for m in messages)
        return self.schema_tokens + sum(llm.count(text) + 4 for text in texts)

    def _begin(
        self, endpoint: llm.Endpoint, messages: list[dict[str, Any]], turn: int, max_tokens: int, waited: float
    ) -> tuple[Step, Price | None]:
        price = llm.price_of(endpoint)
        step = self.journal.begin(
            Step.Kind.MODEL,
            endpoint.model,
            turn,
            waited_ms=int(waited * 1000),
            input={"messages": len(messages), "max_tokens": max_tokens},
            price_version=price.version if price else "",
        )
        self.journal.reserve(step, costs.worst_case(self._tokens(messages), max_tokens, price))
        return step, price

    def _call(self, endpoint: llm.Endpoint, messages: list[dict[str, Any]], max_tokens: int, step: Step) -> llm.Answer:
        """The answer, looking every second whether the run was stopped: then the call is abandoned, not waited for."""
        request = llm.Request(
            messages,
            self.loaded.schemas,
            max_tokens,
            self.loaded.parameters["temperature"].value,
            self.loaded.parameters["seed"].value,
        )
        if llm.is_offline(endpoint.model):
            return llm.complete(endpoint, request)
        pool = ThreadPoolExecutor(1, thread_name_prefix="model")
        future: Future[llm.Answer] = pool.submit(llm.complete, endpoint, request)
        try:
            while True:
                try:
                    return future.result(STOP_POLL)
                except NotYet:
                    self.lease.check()
        except Stopped:
            self._abandon(step, "The run was stopped while the model was answering.")
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _answered(
        self, step: Step, answer: llm.Answer, endpoint: llm.Endpoint, price: Price | None, max_tokens: int
    ) -> Outcome:
        outcome = outcomes.read(answer.response, max_tokens)
        usage = costs.read_usage(answer.usage)
        price = llm.price_of(endpoint, answer.served)
        cost = costs.cost(usage, price)
        self.journal.charge(
            step,
            usage,
            cost,
            estimated=not usage.consistent,
            state=Step.State.DONE,
            finished_at=timezone.now(),
            served_model=answer.served[:200],
            outcome=outcome.kind,
            text=outcome.text,
            output={"response": answer.response},
            usage=answer.usage if isinstance(answer.usage, dict) else None,
            price_version=price.version if price else "",
        )
        return outcome

    def _failed(self, step: Step, failed: llm.ModelFailed, at: int, waited: bool) -> float | None:
        """Records the error; seconds to wait for the same model, None to go on without it. May raise Waits."""
        error = failed.error
        kind = fallback.classify(error)
        last = at == len(self.models) - 1
        decision = fallback.decide(error, last=last, waited_here=waited, waits=self.run.waits)
        # A refused request costs nothing; one without an answer may have been carried out.
        silent = error.timed_out or (error.status is None and not error.not_configured)
        spent = self._reserved(step) if silent else Decimal(0)
        values: dict[str, Any] = {"state": Step.State.FAILED, "finished_at": timezone.now(), "outcome": kind}
        values |= {"error": error.message, "output": {"decision": decision.action, "flag_owner": decision.flag_owner}}
        usage = NO_USAGE if spent else Usage()
        self.journal.charge(step, usage, spent, estimated=bool(spent), **values)
        if decision.action == "wait":
            return decision.seconds
        if decision.action == "later":
            until = timezone.now() + timedelta(seconds=decision.seconds)
            raise Waits(kind, f"Every model was tried; the next attempt is in {decision.seconds:.0f} s.", until)
        return None

    def _reserved(self, step: Step) -> Decimal:
        reservation = getattr(step, "reservation", None)  # there is none for what is free
        return reservation.amount if reservation else Decimal(0)

    def _abandon(self, step: Step, words: str) -> None:
        """An outcome nobody knows costs what was reserved, and says that it is an estimate."""
        values = {"state": Step.State.UNKNOWN, "finished_at": timezone.now(), "outcome": "unknown", "error": words}
        self.journal.charge(step, NO_USAGE, self._reserved(step), estimated=True, **values)
