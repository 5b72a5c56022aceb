"""What is wrong with an agent's work: a row from its beginning to its end, and where its owner wants to hear of it."""

from datetime import datetime
from typing import Any

from django.db import models, transaction
from django.db.models import Q

from agents.models.agents import Agent
from marketplace.models import User


class AlertQuerySet(models.QuerySet["Alert"]):
    def of(self, user: User) -> "AlertQuerySet":
        return self.filter(agent__owner=user)

    def open(self) -> "AlertQuerySet":
        return self.filter(ended_at=None)

    def page(self, before: int | None, limit: int) -> tuple[list["Alert"], int | None]:
        """The newest older than `before`, and where the next page begins."""
        found = self.order_by("-pk") if before is None else self.order_by("-pk").filter(pk__lt=before)
        rows = list(found[: limit + 1])
        return rows[:limit], rows[limit - 1].pk if len(rows) > limit else None

    def begin(
        self, agent: Agent, kind: str, subject: str, words: str, now: datetime, detail: str = ""
    ) -> tuple["Alert", bool]:
        """The open row of this condition, and whether it is news: new, or different in its detail."""
        said = {"words": words, "detail": detail}
        found, made = self.get_or_create(
            agent=agent, kind=kind, subject=subject, ended_at=None, defaults={**said, "at": now}
        )
        if made or found.detail == detail:
            return found, made
        # Of two that look at once, one sees the change.
        return found, bool(self.filter(pk=found.pk, detail=found.detail).update(**said))


class Alert(models.Model):
    """A condition that began, and perhaps ended; only one is open of its kind and subject."""

    class Kind(models.TextChoices):
        FAILING = "failing", "a trigger was stopped after failures in a row"
        SILENT = "silent", "nothing fired in the expected time"
        BUDGET = "budget", "a budget is nearly or wholly used up"
        AWAY = "away", "a part of the site is away: worker, listener or relays"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="alerts")
    kind = models.CharField(max_length=8, choices=Kind)
    subject = models.CharField(max_length=300)  # address of the trigger's skill, id of the budget, or the part
    words = models.TextField()
    detail = models.CharField(max_length=120, default="")  # while it is open, another one is told of again
    at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ending = models.TextField(default="")  # how it ended, in words

    objects = AlertQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "kind", "subject"], name="one_open_alert", condition=Q(ended_at=None)
            )
        ]
        indexes = [models.Index(fields=["agent", "-id"], name="alerts_of_agent")]

    def end(self, words: str, now: datetime) -> bool:
        """Whether this caller ended it."""
        return bool(Alert.objects.open().filter(pk=self.pk).update(ended_at=now, ending=words))


def every_kind() -> list[str]:
    return list(Alert.Kind.values)


class AlertRoute(models.Model):
    """Where alerts of an agent go besides its page; an agent without one writes to its admin of everything."""

    agent = models.OneToOneField(Agent, models.CASCADE, related_name="alert_route")
    direct = models.BooleanField(default=True)  # a private message to the admin
    webhook = models.CharField(max_length=500, default="", blank=True)  # "" = none
    sealed = models.TextField(default="", editable=False)  # what it is signed with
    kinds = models.JSONField(default=every_kind)  # that are sent

    @classmethod
    def of(cls, agent: Agent) -> "AlertRoute":
        """Its own, or the default, which is not stored."""
        return cls.objects.filter(agent=agent).first() or cls(agent=agent)

    @property
    def channels(self) -> list[str]:
        return ["dm"] * self.direct + ["webhook"] * bool(self.webhook)

    def keep(self, values: dict[str, Any]) -> None:
        """Saves these fields, whether or not there was a row."""
        with transaction.atomic():
            AlertRoute.objects.update_or_create(agent=self.agent, defaults=values)
