"""What is sent of an alert: a row for each thing to say and each way to say it, kept whatever becomes of it."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import models, transaction
from django.db.models import Exists, F, OuterRef, Q

from agents.engine.budgets import Allowance
from agents.models.agents import Agent
from agents.models.alerts import Alert, AlertRoute
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
    @transaction.atomic
    def note(self, budget: Budget, agent: Agent, level: str, words: str, since: datetime, now: datetime) -> bool:
        """A budget to be told of, unless it was; whether this is news."""
        place = {"budget": budget, "since": since, "limit": budget.limit}
        if level == Notice.Level.WARN and self.filter(**place).exists():
            return False  # whoever was told that it is used up needs no warning any more
        detail = f"{period_mark(budget, since)} {level}"
        alert, news = Alert.objects.begin(agent, Alert.Kind.BUDGET, str(budget.pk), words, now, detail)
        if not news or self.filter(**place, level=level).exists():
            return False
        Budget.objects.filter(pk=budget.pk).update(warned_at=now)
        self._put(alert, _wanted(agent, Alert.Kind.BUDGET), level, words, now, place)
        return True

    def stopped(self, full: Allowance, now: datetime) -> bool:
        """A run ended because its next call did not fit; a cap of single runs is told on the run alone."""
        budget = Budget.objects.filter(pk=full.budget).exclude(scope=Budget.Scope.RUN).select_related("agent").first()
        who = speaker(budget) if budget else None
        if budget is None or who is None:
            return False
        words = f"The budget for {full.name}, is used up: a run was stopped, {full.used} of {full.limit} USD are used."
        return self.note(budget, who, Notice.Level.STOP, words, period_of(budget, now), now)

    @transaction.atomic
    def begin(self, agent: Agent, kind: str, subject: str, words: str, now: datetime) -> bool:
        """A condition that holds: its alert and what is to be sent of it, once; whether it is news."""
        alert, news = Alert.objects.begin(agent, kind, subject, words, now)
        if news:
            self._put(alert, _wanted(agent, kind), Notice.Level.OPEN, words, now)
        return news

    @transaction.atomic
    def end(self, alert: Alert, words: str, now: datetime) -> bool:
        """It is over; whoever was told of it is told so, by the same ways."""
        if not alert.end(words, now):
            return False
        told = sorted(set(self.filter(alert=alert).values_list("channel", flat=True)))
        self._put(alert, told, Notice.Level.OVER, words, now)
        return True

    def test(self, agent: Agent, words: str, now: datetime) -> int:
        """Something to send by every way that is set up."""
        rows = [Notice(agent=agent, level=Notice.Level.TEST, channel=one, words=words, at=now, next_at=now)
                for one in AlertRoute.of(agent).channels]  # fmt: skip
        return len(self.bulk_create(rows))

    def _put(
        self,
        alert: Alert,
        channels: Iterable[str],
        level: str,
        words: str,
        now: datetime,
        place: Mapping[str, Any] | None = None,
    ) -> None:
        same = {"agent_id": alert.agent_id, "words": words, "at": now, "next_at": now}
        for channel in channels:
            self.get_or_create(alert=alert, channel=channel, level=level, **(place or {"budget": None}), defaults=same)

    def due(self, now: datetime) -> "NoticeQuerySet":
        """Neither sent nor stale, by agents that are on; of one alert each only after what was to be said before."""
        fresh = self.filter(sent_at=None, at__gt=now - STALE)
        earlier = fresh.filter(alert=OuterRef("alert"), channel=OuterRef("channel"), pk__lt=OuterRef("pk"))
        reachable = Q(channel=Notice.Channel.WEBHOOK) | ~Q(agent__admin_pubkey="")
        return fresh.filter(reachable, ~Exists(earlier), next_at__lte=now, agent__enabled=True)


def _wanted(agent: Agent, kind: str) -> list[str]:
    route = AlertRoute.of(agent)
    return route.channels if kind in route.kinds else []


def period_mark(budget: Budget, since: datetime) -> str:
    """The period and the limit that an alert was about: in another one it is told of anew."""
    return f"{since.isoformat()} {budget.limit.normalize():f}"


class Notice(models.Model):
    """One message: what is sent is kept before it is sent, so that a retry sends the same."""

    class Level(models.TextChoices):
        WARN = "warn", "nearly used up"
        STOP = "stop", "used up"
        OPEN = "open", "it began"
        OVER = "over", "it is over"
        TEST = "test", "a test"

    class Channel(models.TextChoices):
        DM = "dm", "private message"
        WEBHOOK = "webhook", "webhook"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="notices")  # who writes
    alert = models.ForeignKey(Alert, models.CASCADE, related_name="notices", null=True)  # None: a test
    channel = models.CharField(max_length=7, choices=Channel, default=Channel.DM)
    level = models.CharField(max_length=4, choices=Level)
    # Of a budget, for its two levels: which one, the beginning of its period, its limit.
    budget = models.ForeignKey(Budget, models.CASCADE, related_name="notices", null=True)
    since = models.DateTimeField(null=True)
    limit = MoneyField(null=True)
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
        constraints = [
            models.UniqueConstraint(fields=["budget", "since", "limit", "level", "channel"], name="told_once"),
            models.UniqueConstraint(
                fields=["alert", "level", "channel"], name="told_of_alert_once", condition=Q(budget=None)
            ),
        ]
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
