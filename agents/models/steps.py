"""One thing a run did: a model attempt, a tool call, a publication."""

from django.db import models

from agents.models.costs import StepQuerySet
from agents.models.money import MoneyField
from agents.models.runs import Run

APPROVED, DECLINED = "approved", "declined"  # what the owner's decision writes into a waiting step's outcome


class Step(models.Model):
    """Written as it happens: the intent before a side effect, the result after it."""

    class Kind(models.TextChoices):
        VARIABLE = "variable"
        MODEL = "model"
        TOOL = "tool"

    class State(models.TextChoices):
        RUNNING = "running"  # intent written, no result yet
        DONE = "done"
        FAILED = "failed"
        REFUSED = "refused"  # never tried: not granted, wrong arguments, duplicate
        WAITING = "waiting"  # for the owner's approval
        UNKNOWN = "unknown"  # intent without result of something not repeatable

    run = models.ForeignKey(Run, models.CASCADE, related_name="steps")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=Kind)
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING)
    turn = models.PositiveSmallIntegerField(default=0)
    name = models.CharField(max_length=200)  # variable, asked model, or tool
    served_model = models.CharField(max_length=200, default="")
    call_id = models.CharField(max_length=200, default="")  # the model's tool call id
    risk = models.CharField(max_length=8, default="")  # reads, writes, spends
    input = models.JSONField(default=dict)
    output = models.JSONField(default=dict)
    text = models.TextField(default="")  # what the model wrote so far, or the tool's reply
    outcome = models.CharField(max_length=40, default="")  # error class or answer outcome
    error = models.TextField(default="")  # in words, without secrets
    waited_ms = models.PositiveIntegerField(default=0)
    intent = models.JSONField(default=dict)  # what a retry must repeat, e.g. the signed event
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    usage = models.JSONField(null=True)  # raw, as the provider sent it
    input_tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    reasoning_tokens = models.BigIntegerField(default=0)
    cost = MoneyField(null=True)  # None = unknown (or not a model attempt)
    estimated = models.BooleanField(default=False)
    price_version = models.CharField(max_length=60, default="")
    # What the first model of the chain would have cost for the same usage; None = unknown, or no answer.
    first_cost = MoneyField(null=True)
    repriced = MoneyField(null=True)  # by a later price, on request; the cost stays as it was charged
    repriced_version = models.CharField(max_length=60, default="")

    objects = StepQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "position"], name="step_position")]
        ordering = ["position"]

    def decide(self, approved: bool, words: str = "") -> bool:
        """The owner's word on a waiting call, said once, and why; whether this was it."""
        waiting = Step.objects.filter(pk=self.pk, state=Step.State.WAITING, outcome="")
        return bool(waiting.update(outcome=APPROVED if approved else DECLINED, error=words))
