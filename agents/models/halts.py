"""The site's own switch: while a halt is open nothing starts, on any worker."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q, Value


class HaltQuerySet(models.QuerySet["Halt"]):
    def open(self) -> "HaltQuerySet":
        return self.filter(ended_at=None)


class Halt(models.Model):
    """Kept when it is over: who stopped everything, when, and for how long."""

    at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True)

    objects = HaltQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(Value(1), name="one_open_halt", condition=Q(ended_at=None))]

    @classmethod
    def since(cls) -> datetime | None:
        """When everything was stopped; None while it runs."""
        return cls.objects.open().values_list("at", flat=True).first()
