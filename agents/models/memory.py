"""What an agent was told to remember, by itself in a run or by its owner."""

from django.db import models

from agents.models.agents import Agent
from marketplace.models import User

LONGEST = 4_000  # characters of one memory
MOST = 500  # memories of one agent
MOST_WORDS = 8  # of a search


class MemoryQuerySet(models.QuerySet["Memory"]):
    def of(self, user: User) -> "MemoryQuerySet":
        return self.filter(agent__owner=user)

    def search(self, query: str) -> "MemoryQuerySet":
        """Those that hold every word."""
        found = self
        for word in query.split()[:MOST_WORDS]:
            found = found.filter(text__icontains=word)
        return found

    def page(self, before: int | None, limit: int) -> tuple[list["Memory"], int | None]:
        """The newest that are older than `before`, and where the next page begins."""
        found = self.order_by("-pk") if before is None else self.order_by("-pk").filter(pk__lt=before)
        rows = list(found[: limit + 1])
        return rows[:limit], rows[limit - 1].pk if len(rows) > limit else None


class Memory(models.Model):
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="memories")
    text = models.TextField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(auto_now=True)

    objects = MemoryQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]

    @staticmethod
    def problem(text: str) -> str:
        """Why this cannot be remembered, in words; "" when it can."""
        return "" if 0 < len(text.strip()) <= LONGEST else f"A memory has from 1 to {LONGEST:,} characters."

    @classmethod
    def full(cls, agent: Agent) -> str:
        """Why nothing more can be remembered, in words; "" while there is room."""
        full = cls.objects.filter(agent=agent).count() >= MOST
        return f"There are {MOST} memories already; the owner can delete some." if full else ""
