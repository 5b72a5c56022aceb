"""The site's own state: relays it reads, who is alive, which catalogue is current."""

from datetime import datetime

from django.db import models
from django.db.models import F


class Relay(models.Model):
    """A relay and how it is doing, in words."""

    class State(models.TextChoices):
        NEW = "new", "not tried yet"
        CONNECTING = "connecting", "connecting"
        CATCHING_UP = "catching-up", "catching up"
        LIVE = "live", "live"
        AWAY = "away", "away"
        FAULTY = "faulty", "faulty"

    url = models.CharField(max_length=300, unique=True)
    state = models.CharField(max_length=12, choices=State, default=State.NEW)
    detail = models.CharField(max_length=300, default="")
    reads = models.BooleanField(default=True)
    # Everything up to this second was asked for and answered to its end.
    synced_until = models.BigIntegerField(default=0)
    received = models.BigIntegerField(default=0)
    refused = models.BigIntegerField(default=0)
    refusals = models.JSONField(default=dict)  # reason -> count
    changed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.url


class Heartbeat(models.Model):
    """The last sign of life of a process; health is read from here, never by a broker ping."""

    role = models.CharField(max_length=20)  # listener, worker, tick, relay
    instance = models.CharField(max_length=80)
    at = models.DateTimeField()
    detail = models.CharField(max_length=300, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["role", "instance"], name="one_heartbeat_per_process")]

    @classmethod
    def beat(cls, role: str, instance: str, now: datetime, detail: str = "") -> None:
        cls.objects.update_or_create(role=role, instance=instance, defaults={"at": now, "detail": detail})


class CatalogueVersion(models.Model):
    """A number that grows whenever a listed skill or a count changes; caches are keyed by it."""

    number = models.BigIntegerField(default=0)

    @classmethod
    def current(cls) -> int:
        return cls.objects.filter(pk=1).values_list("number", flat=True).first() or 0

    @classmethod
    def bump(cls) -> None:
        if not cls.objects.filter(pk=1).update(number=F("number") + 1):
            cls.objects.get_or_create(pk=1, defaults={"number": 1})
