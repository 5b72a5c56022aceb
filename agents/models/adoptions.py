"""What an agent does with a skill it adopted: the local half of its list 10123."""

from django.db import models

from agents.models.agents import Agent


class AdoptedSkill(models.Model):
    """One entry of the agent's current list, with the version its owner saw."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="adopted")
    address = models.CharField(max_length=300)
    position = models.PositiveIntegerField(default=0)
    # The event id its owner saw; a newer version waits until accepted, unless `follow`.
    pinned_event = models.CharField(max_length=64)
    follow = models.BooleanField(default=False)
    on_demand = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "address"], name="adopted_once")]
        ordering = ["position", "id"]
