"""What an agent was told to remember."""

from django.db import models

from agents.models.agents import Agent


class Memory(models.Model):
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="memories")
    text = models.TextField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-id"]
