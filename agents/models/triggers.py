"""An agent's armed copy of a skill's trigger tags."""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import F

from agents.models.agents import Agent

BREAKS_AFTER = 5  # failures in a row


class TriggerQuerySet(models.QuerySet["Trigger"]):
    def live(self) -> "TriggerQuerySet":
        """Those that fire: switched on, usable, not resting, of an agent that is on."""
        return self.filter(enabled=True, usable=True, rests="", agent__enabled=True)

    def rest(self, why: str, until: datetime | None) -> int:
        return self.update(rests=why, rests_until=until, revision=F("revision") + 1)

    def failed(self) -> int:
        """One more failure in a row; how many triggers the circuit breaker took out by it."""
        self.update(failures=F("failures") + 1)
        return self.filter(failures__gte=BREAKS_AFTER, rests="").rest(Trigger.Rest.FAILURES, None)


class Trigger(models.Model):
    """Armed from the pinned version of an adopted skill."""

    class Autonomy(models.TextChoices):
        SUGGEST = "suggest", "suggest: writes wait for your approval"
        AUTO = "auto", "auto: acts by itself"

    class Rest(models.TextChoices):
        PAUSED = "paused", "paused"
        FAILURES = "failures", f"stopped after {BREAKS_AFTER} failures in a row"

    class CatchUp(models.TextChoices):
        SKIP = "skip", "none of them"
        ONE = "one", "once for all of them"
        ALL = "all", "each, the last ten at most"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="triggers")
    address = models.CharField(max_length=300)
    event_id = models.CharField(max_length=64)  # the pinned version it was armed from
    kind = models.CharField(max_length=40)
    tags = models.JSONField(default=list)  # the trigger tags, placeholders filled
    action = models.CharField(max_length=10, default="llm")
    words = models.CharField(max_length=400, default="")
    autonomy = models.CharField(max_length=8, choices=Autonomy, default=Autonomy.SUGGEST)
    enabled = models.BooleanField(default=True)  # the owner's switch
    rests = models.CharField(max_length=8, choices=Rest, default="", blank=True)  # "" = it does not
    rests_until = models.DateTimeField(null=True)  # None: until its owner resumes it
    failures = models.PositiveIntegerField(default=0)  # in a row
    catch_up = models.CharField(max_length=4, choices=CatchUp, default=CatchUp.ONE)  # slots missed while away
    # Hours within which its owner expects it to fire; None: it may be silent for as long as it likes.
    expected_hours = models.PositiveIntegerField(null=True)
    usable = models.BooleanField(default=True)
    problem = models.CharField(max_length=300, default="")
    armed_at = models.BigIntegerField()  # unix seconds; nothing before it fires
    last_seen = models.BigIntegerField(default=0)  # created_at of the newest event considered
    next_run_at = models.DateTimeField(null=True, db_index=True)
    last_fired_at = models.DateTimeField(null=True)
    revision = models.PositiveIntegerField(default=1)  # grows with every change, listeners watch it

    objects = TriggerQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "address"], name="one_trigger_per_skill")]

    def in_words(self) -> dict[str, Any]:
        """What its owner decides about it; for the history."""
        until = self.rests_until.isoformat(timespec="minutes") if self.rests_until else ""
        rests = f"{self.rests} until {until}" if until else self.rests
        decided = {"on": self.enabled, "autonomy": self.autonomy, "missed slots": self.catch_up, "rests": rests}
        return decided | {"expected within hours": self.expected_hours}

    @property
    def live(self) -> bool:
        return self.enabled and self.usable and not self.rests and self.agent.enabled

    @property
    def name(self) -> str:
        """Of its skill."""
        return self.address.split(":", 2)[-1]
