"""A trigger's secret address, and every request that came to it."""

import hashlib
import secrets
from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q

from agents.engine.webhooks import SCHEMES
from agents.models.runs import Run
from agents.models.triggers import Trigger

OVERLAP = timedelta(hours=24)  # how long the one before still counts after a rotation


def fingerprint(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class HookQuerySet(models.QuerySet["Hook"]):
    def called(self, token: str, now: datetime) -> "Hook | None":
        """The hook whose address holds this token; the one before the last rotation counts for a while."""
        found = fingerprint(token)
        by_any = Q(token_hash=found) | Q(test_hash=found) | Q(old_token_hash=found, old_until__gt=now)
        return self.filter(by_any).select_related("trigger__agent").first()


class Hook(models.Model):
    """The address is kept as a hash: it is shown when it is made, and never again."""

    trigger = models.OneToOneField(Trigger, models.CASCADE, related_name="hook")
    token_hash = models.CharField(max_length=64, unique=True)
    test_hash = models.CharField(max_length=64, unique=True)
    old_token_hash = models.CharField(max_length=64, default="", db_index=True)
    scheme = models.CharField(max_length=10, choices=list(SCHEMES.items()), default="none")
    sealed = models.TextField(default="", editable=False)
    old_sealed = models.TextField(default="", editable=False)
    old_until = models.DateTimeField(null=True)  # of the address and the secret before
    by_content = models.BooleanField(default=False)  # without an id, the same body is the same delivery
    waits = models.BooleanField(default=False)  # may answer with the output
    created_at = models.DateTimeField(auto_now_add=True)

    objects = HookQuerySet.as_manager()

    def in_words(self) -> dict[str, str | bool]:
        """What its owner decides about it; for the history, so neither address nor secret."""
        said = {"callers": self.scheme, "secret": "set" if self.sealed else ""}
        return {**said, "same body once": self.by_content, "may answer": self.waits}

    def is_test(self, token: str) -> bool:
        return fingerprint(token) == self.test_hash

    def readdress(self, now: datetime) -> tuple[str, str]:
        """New addresses: (live, test) tokens, to be shown once. The old live one counts for a day longer."""
        live, test = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        if self.token_hash:
            self.old_token_hash, self.old_until = self.token_hash, now + OVERLAP
        self.token_hash, self.test_hash = fingerprint(live), fingerprint(test)
        self.save()
        return live, test


class Delivery(models.Model):
    """One request to a hook: accepted ones are kept with their run, of refused ones the newest."""

    MOST_REFUSED = 100  # per trigger
    LONGEST_REFUSED = 8_000  # bytes of a refused body

    trigger = models.ForeignKey(Trigger, models.CASCADE, related_name="deliveries")
    at = models.DateTimeField()
    key = models.CharField(max_length=200)  # the sender's id, or one of ours
    accepted = models.BooleanField()
    test = models.BooleanField(default=False)
    status = models.PositiveSmallIntegerField(default=0)  # HTTP status of our answer
    reason = models.CharField(max_length=300, default="")  # of a refusal, in words
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=b"")
    body_hash = models.CharField(max_length=64)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="deliveries_of")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["trigger", "key"], name="one_delivery_per_key", condition=Q(accepted=True, test=False)
            )
        ]
        indexes = [models.Index(fields=["trigger", "-id"], name="delivery_history")]

    @property
    def text(self) -> str:
        return bytes(self.body).decode("utf-8", "replace").replace("\x00", "\ufffd")


class UnknownCall(models.Model):
    """Requests to addresses that nobody has, counted per hour and nothing more."""

    hour = models.DateTimeField(unique=True)
    count = models.PositiveIntegerField(default=0)

    @classmethod
    def note(cls, now: datetime) -> None:
        hour = now.replace(minute=0, second=0, microsecond=0)
        if not cls.objects.filter(hour=hour).update(count=F("count") + 1):
            cls.objects.get_or_create(hour=hour, defaults={"count": 1})
