"""Skill folders that an owner uploaded for an agent; the files themselves lie beside the database."""

from django.db import models

from agents.models.agents import Agent


class SkillUpload(models.Model):
    """One folder as it was uploaded last. What is offered is what lies on disk; this says where it came from."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="skill_uploads")
    name = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)  # of the zip, SHA-256
    size = models.PositiveIntegerField()  # bytes, unpacked
    files = models.PositiveIntegerField()
    uploaded_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "name"], name="one_upload_per_skill")]
        ordering = ["name"]
