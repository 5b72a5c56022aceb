"""Keys and what they say of themselves."""

from django.db import models


class Author(models.Model):
    """A key with its newest profile (kind 0) and relay list (kind 10002)."""

    pubkey = models.CharField(primary_key=True, max_length=64)
    name = models.CharField(max_length=100, default="")
    about = models.TextField(default="")
    nip05 = models.CharField(max_length=200, default="")
    profile_id = models.CharField(max_length=64, default="")
    profile_at = models.BigIntegerField(default=0)
    write_relays = models.JSONField(default=list)
    relays_id = models.CharField(max_length=64, default="")
    relays_at = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return self.name or self.pubkey[:8]
