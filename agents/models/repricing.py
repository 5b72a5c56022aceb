"""A repricing on record: what was asked, by which prices, and both sums; what was charged stays as it was."""

from django.conf import settings
from django.db import models

from agents.models.agents import Agent
from agents.models.money import MoneyField
from agents.models.runs import Run


class Repricing(models.Model):
    """The new price of each call stands on its step, beside the one that was charged."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="repricings")
    at = models.DateTimeField()
    # What was asked for; empty means all.
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="repricings")
    agent = models.ForeignKey(Agent, models.SET_NULL, null=True, related_name="repricings")
    model = models.CharField(max_length=200, default="")
    first = models.DateField(null=True)
    last = models.DateField(null=True)
    # What came of it.
    calls = models.PositiveIntegerField(default=0)  # that have a new price
    changed = models.PositiveIntegerField(default=0)  # of them, those that differ from what was charged
    skipped = models.PositiveIntegerField(default=0)  # without usage or without a price: they stay as charged
    unknown = models.PositiveIntegerField(default=0)  # of `calls`, those whose cost had been unknown
    charged = MoneyField(default=0)
    repriced = MoneyField(default=0)
    price_versions = models.JSONField(default=list)

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [models.Index(fields=["user", "-at", "-id"], name="repricing_of_user")]
