"""One run: what started it, what it was allowed, how it ended, what it cost."""

import secrets
import time
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce

from agents.models.agents import Agent
from agents.models.conversations import Conversation
from agents.models.halts import Halt
from agents.models.money import MoneyField
from agents.models.triggers import Trigger
from marketplace.models import User

CALLED = "call:"  # how the occasion key of a run begins that a tool of another run started
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_run_id() -> str:
    """A ULID: 48 bits of milliseconds, 80 random bits, in Crockford's base 32; sorts by time."""
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


class RunQuerySet(models.QuerySet["Run"]):
    def of(self, user: User) -> "RunQuerySet":
        return self.filter(agent__owner=user)

    def open(self) -> "RunQuerySet":
        return self.exclude(status__in=Run.FINAL)

    def page(self, before: tuple[datetime, str] | None, limit: int) -> tuple[list["Run"], tuple[datetime, str] | None]:
        """The newest runs older than `before`, and where the next page begins; without the long texts."""
        found = self.defer(*Run.HEAVY).order_by("-created_at", "-id")
        if before is not None:
            at, run_id = before
            found = found.filter(Q(created_at__lt=at) | Q(created_at=at, id__lt=run_id))
        rows = list(found[: limit + 1])
        more = len(rows) > limit
        rows = rows[:limit]
        return rows, (rows[-1].created_at, rows[-1].pk) if more else None

    def cancel(self, now: datetime, why: str) -> int:
        """Stops these open runs: the status goes first, workers see it before their next step."""
        ended = {"status": Run.Status.CANCELLED, "reason": "stopped", "reason_words": why, "finished_at": now}
        return self.update(**ended, lease_token="")

    def claimable(self, now: datetime) -> "RunQuerySet":
        """Queued, due again after waiting, or left behind by a worker that died; turns of a talk one by one.

        None while the whole site is stopped.
        """
        before = Run.objects.filter(conversation=OuterRef("conversation"), turn__lt=OuterRef("turn")).open()
        return self.filter(
            ~Exists(before),
            ~Exists(Halt.objects.open()),
            Q(status=Run.Status.QUEUED)
            | Q(status=Run.Status.WAITING, waiting_until__lte=now)
            | Q(status=Run.Status.RUNNING, lease_until__lt=now),
        )


class Run(models.Model):
    """Pinned to the exact version of its skill; unique per trigger and occasion."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        WAITING = "waiting"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        CANCELLED = "cancelled"
        SUPPRESSED = "suppressed"

    FINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.SUPPRESSED})
    HEAVY = (
        "input",
        "overrides",
        "parameters",
        "request",
        "disclosure",
        "warnings",
        "output",
    )  # what lists do not show
    MAX_DELIVERIES = 3  # a run that kills its worker this often is parked
    LEASE = timedelta(seconds=60)

    id = models.CharField(primary_key=True, max_length=26, default=new_run_id)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="runs")
    trigger = models.ForeignKey(Trigger, models.SET_NULL, related_name="runs", null=True)
    trigger_kind = models.CharField(max_length=40, default="manual")  # kept when the trigger goes
    skill_address = models.CharField(max_length=300, default="")  # "" = no skill invoked
    skill_name = models.CharField(max_length=200, default="")
    skill_event = models.CharField(max_length=64, default="")
    occasion_key = models.CharField(max_length=200)
    action = models.CharField(max_length=10, default="llm")  # llm, template
    autonomy = models.CharField(max_length=8, default="auto")
    input = models.JSONField(default=dict)  # {"message","event","relay","arguments","payload"}
    overrides = models.JSONField(default=dict)  # this run's own parameters
    depth = models.PositiveSmallIntegerField(default=0)
    parent = models.ForeignKey("self", models.SET_NULL, null=True, related_name="children")
    conversation = models.ForeignKey(Conversation, models.SET_NULL, null=True, related_name="turns")
    turn = models.PositiveIntegerField(default=0)  # its place in the conversation, from 1; 0: in none

    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    reason = models.CharField(max_length=40, default="")  # short word, e.g. cooldown
    reason_words = models.TextField(default="")  # what a person reads
    created_at = models.DateTimeField()
    announced_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    waiting_until = models.DateTimeField(null=True)
    waits = models.PositiveSmallIntegerField(default=0)
    deliveries = models.PositiveSmallIntegerField(default=0)
    lease_token = models.CharField(max_length=32, default="")
    lease_until = models.DateTimeField(null=True)

    rule = models.CharField(max_length=10, default="")  # context rule applied
    parameters = models.JSONField(default=dict)  # name -> {"value","origin"}
    request = models.JSONField(default=dict)  # the exact first request
    disclosure = models.JSONField(default=dict)  # skills on demand: listed, invoked, loaded, read, and their tokens
    warnings = models.JSONField(default=list)
    output = models.TextField(default="")
    model = models.CharField(max_length=200, default="")  # that served the last answer
    input_tokens = models.BigIntegerField(default=0)  # without cached
    cached_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)  # without reasoning
    reasoning_tokens = models.BigIntegerField(default=0)
    cost = MoneyField(default=0)  # of the attempts with a known price
    unknown_costs = models.PositiveIntegerField(default=0)  # attempts without one

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            # This is the idempotency: one run per trigger and occasion.
            models.UniqueConstraint(
                fields=["trigger", "occasion_key"], name="one_run_per_occasion", condition=Q(trigger__isnull=False)
            ),
            models.UniqueConstraint(
                fields=["agent", "occasion_key"], name="one_manual_run_per_key", condition=Q(trigger_kind="manual")
            ),
            models.UniqueConstraint(
                fields=["conversation", "turn"], name="one_run_per_turn", condition=Q(conversation__isnull=False)
            ),
        ]
        indexes = [
            models.Index(fields=["agent", "-created_at", "-id"], name="run_history"),
            models.Index(
                fields=["status", "created_at"],
                name="run_open",
                condition=Q(status__in=["queued", "running", "waiting"]),
            ),
            models.Index(fields=["created_at"], name="run_by_time"),
            models.Index(fields=["trigger", "-created_at"], name="run_of_trigger"),
            models.Index(fields=["skill_address", "-created_at"], name="run_of_skill"),
        ]

    @property
    def is_final(self) -> bool:
        return self.status in self.FINAL

    @property
    def comparison(self) -> str:
        """Id of the comparison it was started for; its key is made here and nowhere else."""
        kind, _, rest = self.occasion_key.partition(":")
        return rest.partition(":")[0] if kind == "compare" and self.trigger_kind == "manual" else ""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.cached_tokens + self.output_tokens + self.reasoning_tokens

    @property
    def duration(self) -> timedelta | None:
        """From its start to its end; None while there is not both."""
        return self.finished_at - self.started_at if self.started_at and self.finished_at else None

    @classmethod
    def claim(cls, run_id: str, token: str, now: datetime) -> "Run | None":
        """The run, if this caller is now the only one carrying it out."""
        won = cls.objects.claimable(now).filter(pk=run_id)
        changed = won.update(
            status=cls.Status.RUNNING,
            lease_token=token,
            lease_until=now + cls.LEASE,
            deliveries=F("deliveries") + 1,
            started_at=Coalesce("started_at", models.Value(now, models.DateTimeField())),
        )
        return cls.objects.select_related("agent", "agent__identity", "trigger").get(pk=run_id) if changed else None

    def renew(self, now: datetime) -> bool:
        mine = Run.objects.filter(pk=self.pk, lease_token=self.lease_token, status=self.Status.RUNNING)
        return bool(mine.update(lease_until=now + self.LEASE))

    def cancel(self, now: datetime, why: str) -> bool:
        """Stop it: the status goes first, a worker sees it before its next step."""
        stopped = bool(Run.objects.filter(pk=self.pk).open().cancel(now, why))
        for child in self.children.open().filter(occasion_key__startswith=CALLED):
            child.cancel(now, "The run that started it was stopped.")
        return stopped


class HeldBack(models.Model):
    """In a flood, a count per minute and reason stands for the rows."""

    trigger = models.ForeignKey(Trigger, models.CASCADE, related_name="held_back")
    minute = models.DateTimeField()
    reason = models.CharField(max_length=40)
    count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trigger", "minute", "reason"], name="held_back_once")]
