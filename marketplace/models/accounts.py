"""Who may sign in, and with what besides a password."""

import hashlib
import secrets
from datetime import datetime, timedelta

from django.contrib.auth.models import AbstractUser
from django.db import models


def hashed(secret: str) -> str:
    """Only this is stored of a token: 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


class User(AbstractUser):
    """An owner of agents; staff operate the site."""

    time_zone = models.CharField(max_length=64, default="UTC")


class SignInLink(models.Model):
    """A link that signs its user in once."""

    user = models.ForeignKey(User, models.CASCADE, related_name="sign_in_links")
    token_hash = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    @classmethod
    def issue(cls, user: User, now: datetime, lifetime: timedelta = timedelta(hours=24)) -> str:
        token = secrets.token_urlsafe(32)
        cls.objects.create(user=user, token_hash=hashed(token), expires_at=now + lifetime)
        return token

    @classmethod
    def redeem(cls, token: str, now: datetime) -> User | None:
        """The user of an unused, unexpired link; of two clicks at once only one gets it."""
        link = cls.objects.filter(token_hash=hashed(token)).select_related("user").first()
        if link is None:
            return None
        won = cls.objects.filter(pk=link.pk, used_at=None, expires_at__gt=now).update(used_at=now)
        return link.user if won and link.user.is_active else None


class ApiToken(models.Model):
    """A scoped key for the API; shown once, stored hashed."""

    SCOPES = {"read": "Read agents, runs and costs", "run": "Start and stop runs", "write": "Change agents and skills"}

    user = models.ForeignKey(User, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    token_hash = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    @classmethod
    def issue(cls, user: User, name: str, scopes: list[str]) -> str:
        token = f"jm_{secrets.token_urlsafe(32)}"
        cls.objects.create(user=user, name=name, prefix=token[:9], token_hash=hashed(token), scopes=scopes)
        return token

    @classmethod
    def find(cls, token: str) -> "ApiToken | None":
        return cls.objects.filter(token_hash=hashed(token), revoked_at=None).select_related("user").first()
