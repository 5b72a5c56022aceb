"""What relays said, kept for good; everything listed can be rebuilt from these rows."""

from django.db import models

from marketplace.models.site import Relay


class ArchivedEvent(models.Model):
    """One signed event, as received."""

    id = models.CharField(primary_key=True, max_length=64)
    kind = models.PositiveIntegerField()
    pubkey = models.CharField(max_length=64)
    d = models.CharField(max_length=200, default="")  # first `d`; "" where the kind has none
    created_at = models.BigIntegerField()  # unix seconds, the author's claim
    # The event as JSON text with control characters escaped, so that NUL survives on PostgreSQL.
    raw = models.TextField()
    received_at = models.BigIntegerField()  # unix seconds, ours
    problem = models.CharField(max_length=200, default="")
    expires_at = models.BigIntegerField(null=True)  # NIP-40, unix seconds
    # Deleted by its author (NIP-09) or expired: kept, but it counts for nothing.
    gone = models.BooleanField(default=False)

    class Meta:
        indexes = [
            models.Index(fields=["kind", "pubkey", "d", "-created_at"], name="archive_versions"),
            models.Index(fields=["kind", "-created_at"], name="archive_kind"),
            models.Index(
                fields=["expires_at"], name="archive_expiry", condition=models.Q(expires_at__isnull=False, gone=False)
            ),
        ]


class Sighting(models.Model):
    """A relay that gave us an event."""

    # Without an index of its own: the constraint below starts with it.
    event = models.ForeignKey(
        ArchivedEvent, models.CASCADE, related_name="sightings", db_constraint=False, db_index=False
    )
    relay = models.ForeignKey(Relay, models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["event", "relay"], name="sighting_once")]


class HeldEvent(models.Model):
    """An event dated more than 900 s ahead, put aside until it is due."""

    id = models.CharField(primary_key=True, max_length=64)
    due_at = models.BigIntegerField(db_index=True)
    raw = models.TextField()
    relay_url = models.CharField(max_length=300, default="")


class Tombstone(models.Model):
    """What a deletion (kind 5) or a vanish request (kind 62) covers, also when it comes first."""

    class What(models.TextChoices):
        EVENT = "e"
        ADDRESS = "a"
        EVERYTHING = "*"

    pubkey = models.CharField(max_length=64)
    what = models.CharField(max_length=1, choices=What)
    target = models.CharField(max_length=300)  # event id, address, or "" for everything
    until = models.BigIntegerField()  # versions up to and including this second are gone
    by_event = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pubkey", "what", "target", "by_event"], name="tombstone_once"),
        ]
