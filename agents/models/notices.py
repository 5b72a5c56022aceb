"""What an admin is told of a budget: one row for each budget, period, limit and level, kept whatever becomes of it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import F

from agents.engine.budgets import Allowance
from agents.models.agents import Agent
from agents.models.allowances import since as period_of
from agents.models.budgets import Budget
from agents.models.money import MoneyField

PAUSE = timedelta(seconds=30)  # after the first attempt that failed; doubled each time
LONGEST_PAUSE = timedelta(hours=1)
STALE = timedelta(days=2)  # nobody wants to hear of it later


def speaker(budget: Budget) -> Agent | None:
    """Who writes: its agent; for the site the first agent of its staff that has somebody to write to."""
    if budget.agent is not None:
        return budget.agent
    staff = Agent.objects.filter(owner__is_staff=True, owner__is_active=True, enabled=True).exclude(admin_pubkey="")
    return staff.order_by("pk").first()


class NoticeQuerySet(models.QuerySet["Notice"]):
    def note(self, budget: Budget, agent: Agent, level: str, words: str, since: datetime, now: datetime) -> bool:
        """To be told, unless it was; whether this is news."""
        if level == Notice.Level.WARN and self.filter(budget=budget, since=since, limit=budget.limit).exists():
            return False  # whoever was told that it is used up needs no warning any more
        place = {"budget": budget, "since": since, "limit": budget.limit, "level": level}
        made = self.get_or_create(**place, defaults={"agent": agent, "words": words, "at": now, "next_at": now})[1]
        if made:
            Budget.objects.filter(pk=budget.pk).update(warned_at=now)
        return made

    def stopped(self, full: Allowance, now: datetime) -> bool:
        """A run ended because its next call did not fit; a cap of single runs is told on the run alone."""
        budget = Budget.objects.filter(pk=full.budget).exclude(scope=Budget.Scope.RUN).select_related("agent").first()
        who = speaker(budget) if budget else None
        if budget is None or who is None:
            return False
        words = f"The budget for {full.name}, is used up: a run was stopped, {full.used} of {full.limit} USD are used."
        return self.note(budget, who, Notice.Level.STOP, words, period_of(budget, now), now)

    def due(self, now: datetime) -> "NoticeQuerySet":
        """Neither sent nor stale, by agents that are on and have somebody to write to."""
        waiting = self.filter(sent_at=None, next_at__lte=now, at__gt=now - STALE, agent__enabled=True)
        return waiting.exclude(agent__admin_pubkey="")


class Notice(models.Model):
    """A message to an admin: its signed event is kept before it is sent, so that a retry sends the same one."""

    class Level(models.TextChoices):
        WARN = "warn", "nearly used up"
        STOP = "stop", "used up"

    budget = models.ForeignKey(Budget, models.CASCADE, related_name="notices")
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="notices")  # who writes
    since = models.DateTimeField()  # beginning of the budget's period
    limit = MoneyField()
    level = models.CharField(max_length=4, choices=Level)
    words = models.TextField()
    at = models.DateTimeField()
    event_id = models.CharField(max_length=64, default="")
    intent = models.JSONField(default=dict)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=300, default="")

    objects = NoticeQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["budget", "since", "limit", "level"], name="told_once")]
        indexes = [models.Index(fields=["next_at"], name="notice_open", condition=models.Q(sent_at=None))]

    def take(self, now: datetime) -> bool:
        """Whether this caller is to send it now; the next attempt is not before its pause is over."""
        pause = min(PAUSE * 2 ** min(self.attempts, 10), LONGEST_PAUSE)
        mine = Notice.objects.filter(pk=self.pk, sent_at=None, attempts=self.attempts)
        return bool(mine.update(attempts=F("attempts") + 1, next_at=now + pause))

    def remember(self, intent: Mapping[str, Any]) -> bool:
        """Keeps what is about to be sent; False where another attempt already kept another event."""
        event_id = str(intent["event"]["id"])
        kept = Notice.objects.filter(pk=self.pk, event_id__in=["", event_id])
        return bool(kept.update(event_id=event_id, intent=dict(intent)))
