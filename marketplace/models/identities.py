"""Keys that a user may sign with, and how."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q


class Identity(models.Model):
    """A key held here (sealed), in the user's browser, or at a remote signer."""

    class Custody(models.TextChoices):
        HELD = "held", "held here, sealed"
        BROWSER = "browser", "in your browser (NIP-07)"
        REMOTE = "remote", "remote signer (NIP-46)"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="identities")
    pubkey = models.CharField(max_length=64)
    label = models.CharField(max_length=80, default="")
    custody = models.CharField(max_length=8, choices=Custody, default=Custody.HELD)
    sealed = models.TextField(default="", editable=False)  # see marketplace.signing
    created_at = models.DateTimeField(auto_now_add=True)
    # One writer at a time of the replaceable list 10123.
    lease_token = models.CharField(max_length=32, default="")
    lease_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "pubkey"], name="identity_once_per_user")]

    def take_lease(self, token: str, now: datetime, seconds: int = 30) -> bool:
        """Whether this caller is now the only writer of the key's lists."""
        free = Q(lease_token="") | Q(lease_until=None) | Q(lease_until__lt=now)
        mine = Identity.objects.filter(free, pk=self.pk)
        return bool(mine.update(lease_token=token, lease_until=now + timedelta(seconds=seconds)))

    def give_lease(self, token: str) -> None:
        Identity.objects.filter(pk=self.pk, lease_token=token).update(lease_token="", lease_until=None)
