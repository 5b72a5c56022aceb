"""Talking to an agent: on its page, by direct message or from the command line; each turn of it is a run."""

from datetime import datetime

from django.db import models
from django.db.models import Q

from agents.models.agents import Agent
from marketplace.models import User


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def of(self, user: User) -> "ConversationQuerySet":
        return self.filter(agent__owner=user)

    def page(
        self, before: tuple[datetime, str] | None, limit: int
    ) -> tuple[list["Conversation"], tuple[datetime, str] | None]:
        """Those last talked in before `before`, the latest first, and where the next page begins."""
        found = self.order_by("-updated_at", "-id")
        if before is not None:
            at, pk = before
            last = int(pk) if pk.isascii() and pk.isdigit() and len(pk) < 19 else 0
            found = found.filter(Q(updated_at__lt=at) | Q(updated_at=at, id__lt=last))
        rows = list(found[: limit + 1])
        more = len(rows) > limit
        rows = rows[:limit]
        return rows, (rows[-1].updated_at, str(rows[-1].pk)) if more else None


class Conversation(models.Model):
    """What was said is in its runs; deleting it keeps them, since they are what was spent."""

    class Channel(models.TextChoices):
        PAGE = "page", "on the page"
        DM = "dm", "by direct message"
        CLI = "cli", "from the command line"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="conversations")
    channel = models.CharField(max_length=4, choices=Channel, default=Channel.PAGE)
    peer = models.CharField(max_length=64, default="", blank=True)  # hex key of who writes by direct message
    title = models.CharField(max_length=120, default="", blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()  # of its newest turn

    objects = ConversationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "peer"], name="one_talk_per_peer", condition=Q(channel="dm")),
        ]
        indexes = [models.Index(fields=["agent", "-updated_at", "-id"], name="talk_of_agent")]

    def __str__(self) -> str:
        return self.title


class IgnoredMessage(models.Model):
    """A direct message that was not obeyed: kept by id for some days, so that it is counted once."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="ignored_messages")
    event_id = models.CharField(max_length=64)
    at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "event_id"], name="ignored_once")]
