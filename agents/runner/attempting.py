"""One attempt at one model: paid for before it is made, watched while it is out, on record when it is over."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from agents import llm
from agents.engine import budgets, costs, fallback, outcomes
from agents.engine.budgets import Allowance
from agents.engine.costs import Price, Usage
from agents.engine.fallback import Decision, ModelError
from agents.engine.outcomes import Outcome
from agents.models import Run, Step
from agents.models.allowances import allowances
from agents.runner.errors import Stopped
from agents.runner.journal import NO_USAGE, Journal, reserved
from agents.runner.lease import Lease
from marketplace.protocol.storable import storable

POLL = 0.3  # seconds between looks at a call that is out: streamed text is written as often
LOOK = 1.0  # seconds between looks at the run: Stop is noticed as soon
LONGEST_STREAM = 5  # times the time-out, which is between two signs of life
GRACE = 5.0  # seconds for a client to notice its own time-out


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    """In which calls are out; an abandoned one keeps its thread until its time-out, so there are some to spare."""
    return ThreadPoolExecutor(32, thread_name_prefix="model")


class Attempting:
    """The attempts of one run."""

    def __init__(self, run: Run, journal: Journal, lease: Lease, first: str = "") -> None:
        """`first` is the first model of the chain: each answer is told what it would have cost there."""
        self.run, self.journal, self.lease, self.first = run, journal, lease, first
        self.terms = llm.Terms.of(run.agent)
        self.full: Allowance | None = None  # the budget that the last refused call did not fit into
        self.endpoints: dict[str, llm.Endpoint] = {}

    def endpoint(self, model: str) -> llm.Endpoint:
        """Where the model is asked; the key is opened once for a run."""
        if model not in self.endpoints:
            self.endpoints[model] = llm.endpoint_for(self.run.agent, model)
        return self.endpoints[model]

    def begin(self, model: str, turn: int, tokens: int, max_tokens: int, waited: float) -> Step:
        """The attempt's row with its worst case reserved, or a refused one where a budget does not allow it."""
        price = self.terms.price(self.endpoint(model))
        assumed = self.terms.assumed(model) if price is None else None
        worst = assumed.worst(tokens, max_tokens) if assumed else costs.worst_case(tokens, max_tokens, price)
        values: dict[str, Any] = {
            "waited_ms": int(waited * 1_000),
            "input": {"tokens": tokens, "max_tokens": max_tokens, "first": self.first},
            "price_version": price.version if price else "",
        }
        if assumed:
            values["input"]["assumed"] = assumed.version
        if worst == 0:
            return self.journal.begin(Step.Kind.MODEL, model, turn, **values)
        with transaction.atomic():  # looking and reserving are one: two calls never pass on the same money
            applying = allowances(self.run.agent, timezone.now(), run=self.run, lock=True)
            refusal = budgets.refusal(worst, applying)
            if refusal:
                self.full = budgets.refusing(worst, applying)
                return self.refuse(model, turn, "budget", refusal)
            step = self.journal.begin(Step.Kind.MODEL, model, turn, **values)
            self.journal.reserve(step, worst)
        return step

    def refuse(self, model: str, turn: int, outcome: str, words: str) -> Step:
        """A model that is not even asked, and why."""
        step = self.journal.begin(Step.Kind.MODEL, model, turn)
        self.journal.end(step, Step.State.REFUSED, outcome=outcome, error=words)
        return step

    def ask(self, step: Step, request: llm.Request) -> Outcome:
        """The answer. Raises llm.ModelFailed, or Stopped: then the call is abandoned, not waited for."""
        endpoint = self.endpoint(step.name)
        if llm.is_offline(endpoint.model):
            return self._answered(step, llm.complete(endpoint, request), request.max_tokens)
        heard = [""]
        future = _threads().submit(llm.complete, endpoint, request, lambda text: heard.__setitem__(0, text))
        try:
            return self._answered(step, self._watched(step, future, heard), request.max_tokens)
        except Stopped:
            self.abandon(step, "The run was stopped while the model was answering.")
            raise

    def _watched(self, step: Step, future: "Future[llm.Answer]", heard: list[str]) -> llm.Answer:
        started = looked = time.monotonic()
        limit = settings.LLM_TIMEOUT * LONGEST_STREAM + GRACE
        while True:
            try:
                return future.result(POLL)
            except NotYet:
                now = time.monotonic()
            if heard[0] != step.text:
                self.journal.write(step, {"text": heard[0]})
            if now - looked >= LOOK:
                looked = now
                self.lease.check()
            if now - started > limit:
                words = f"No whole answer within {limit:.0f} seconds."
                raise llm.ModelFailed(ModelError(None, words, timed_out=True, maybe_spent=True))

    def _answered(self, step: Step, answer: llm.Answer, max_tokens: int) -> Outcome:
        response = storable(answer.response)
        outcome = outcomes.read(response, max_tokens)
        usage = costs.read_usage(answer.usage)
        price = self.terms.price(self.endpoint(step.name), answer.served)
        cost = costs.cost(usage, price)
        assumed = self.terms.assumed(step.name) if price is None else None
        self.journal.charge(
            step,
            usage,
            cost,
            estimated=not usage.consistent,
            assumed=assumed.used(usage) if assumed else None,
            state=Step.State.DONE,
            finished_at=timezone.now(),
            served_model=answer.served[:200],
            outcome=outcome.kind,
            text=outcome.text,
            output={"response": response, "price": _charged(price, usage)},
            usage=answer.usage if isinstance(answer.usage, dict) else None,
            price_version=price.version if price else "",
            first_cost=cost if step.name == self.first else self._first_cost(usage),
        )
        return outcome

    def _first_cost(self, usage: Usage) -> Decimal | None:
        """What the first choice would have cost for the same; where it was not even asked its key is not needed."""
        return costs.cost(usage, self.terms.price(self.endpoints.get(self.first) or llm.Endpoint(self.first)))

    def failed(self, step: Step, error: ModelError, decision: Decision) -> None:
        """Records it. A refused request costs nothing; one that may have been carried out costs what was reserved."""
        spent = reserved(step) if error.maybe_spent else Decimal(0)
        self.journal.charge(
            step,
            NO_USAGE if error.maybe_spent else Usage(),
            spent,
            estimated=error.maybe_spent,
            state=Step.State.FAILED,
            finished_at=timezone.now(),
            outcome=fallback.classify(error),
            error=error.message,
            output={"decision": decision.action, "flag_owner": decision.flag_owner},
        )

    def abandon(self, step: Step, words: str) -> None:
        self.journal.charge_reserved(step, outcome="unknown", error=words)


def _charged(price: Price | None, usage: Usage) -> dict[str, str] | None:
    """The price as it was used, per million tokens: some cost more beyond a length."""
    return price.at(usage.input + usage.cached).per_million() if price else None
