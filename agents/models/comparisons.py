"""Two variants of one skill on the same input: two runs that belong together."""

from django.db import models

from agents.models.agents import Agent
from agents.models.runs import Run, new_run_id
from marketplace.models import User


class ComparisonQuerySet(models.QuerySet["Comparison"]):
    def of(self, user: User) -> "ComparisonQuerySet":
        return self.filter(agent__owner=user)


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
