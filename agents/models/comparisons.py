"""Two variants of one skill on the same input: two runs that belong together."""

from datetime import datetime

from django.db import models
from django.db.models import Q

from agents.models.agents import Agent
from agents.models.runs import Run, new_run_id
from marketplace.models import User


class ComparisonQuerySet(models.QuerySet["Comparison"]):
    def of(self, user: User) -> "ComparisonQuerySet":
        return self.filter(agent__owner=user)

    def page(
        self, before: tuple[datetime, str] | None, limit: int
    ) -> tuple[list["Comparison"], tuple[datetime, str] | None]:
        """The newest that are older than `before`, and where the next page begins."""
        found = self.order_by("-created_at", "-id")
        if before is not None:
            at, pk = before
            found = found.filter(Q(created_at__lt=at) | Q(created_at=at, id__lt=pk))
        rows = list(found[: limit + 1])
        more = len(rows) > limit
        rows = rows[:limit]
        return rows, (rows[-1].created_at, rows[-1].pk) if more else None


class Comparison(models.Model):
    """What the two have in common is on both runs; what differs is in their overrides."""

    id = models.CharField(primary_key=True, max_length=26, default=new_run_id)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="comparisons")
    key = models.CharField(max_length=200)  # sent twice, compared once
    skill_address = models.CharField(max_length=300, default="")
    writes = models.BooleanField(default=False)  # whether its runs have tools that write
    run_a = models.OneToOneField(Run, models.CASCADE, related_name="compared_as_a")
    run_b = models.OneToOneField(Run, models.CASCADE, related_name="compared_as_b")
    created_at = models.DateTimeField()

    objects = ComparisonQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "key"], name="one_comparison_per_key")]
        ordering = ["-created_at", "-id"]
