"""An agent's armed copy of a skill's trigger tags."""

from django.db import models

from agents.models.agents import Agent


class Trigger(models.Model):
    """Armed from the pinned version of an adopted skill."""

    class Autonomy(models.TextChoices):
        SUGGEST = "suggest", "suggest: writes wait for your approval"
        AUTO = "auto", "auto: acts by itself"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="triggers")
    address = models.CharField(max_length=300)
    event_id = models.CharField(max_length=64)  # the pinned version it was armed from
    kind = models.CharField(max_length=40)
    tags = models.JSONField(default=list)  # the trigger tags, placeholders filled
    action = models.CharField(max_length=10, default="llm")
    words = models.CharField(max_length=400, default="")
    autonomy = models.CharField(max_length=8, choices=Autonomy, default=Autonomy.SUGGEST)
    enabled = models.BooleanField(default=True)  # the owner's switch
    usable = models.BooleanField(default=True)
    problem = models.CharField(max_length=300, default="")
    armed_at = models.BigIntegerField()  # unix seconds; nothing before it fires
    last_seen = models.BigIntegerField(default=0)  # created_at of the newest event considered
    next_run_at = models.DateTimeField(null=True, db_index=True)
    last_fired_at = models.DateTimeField(null=True)
    revision = models.PositiveIntegerField(default=1)  # grows with every change, listeners watch it

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "address"], name="one_trigger_per_skill")]

    @property
    def live(self) -> bool:
        return self.enabled and self.usable and self.agent.enabled
