"""The catalogue: projections of skill and adoption events, which can be dropped and rebuilt."""

from django.db import models
from django.db.models import Q


class SkillQuerySet(models.QuerySet["Skill"]):
    def public(self) -> "SkillQuerySet":
        """What anyone may see listed: public skills that are there and can be read."""
        return self.filter(listed=True)

    def search(self, text: str) -> "SkillQuerySet":
        """Skills whose name, description, topics or author hold every word."""
        found = self
        for word in text.lower().split()[:8]:
            found = found.filter(search_text__contains=word)
        return found


class Skill(models.Model):
    """The current version at one address (kind, pubkey, d)."""

    kind = models.PositiveIntegerField()
    pubkey = models.CharField(max_length=64)
    d = models.CharField(max_length=200)
    event_id = models.CharField(max_length=64)
    created_at = models.BigIntegerField()  # of the current version
    first_published = models.BigIntegerField()  # of the oldest version we hold
    description = models.TextField(default="")
    context_rule = models.CharField(max_length=10, default="compose")
    generation = models.CharField(max_length=1, default="B")
    llm = models.CharField(max_length=300, default="")
    trigger_kind = models.CharField(max_length=40, default="")
    trigger_words = models.CharField(max_length=300, default="")
    action = models.CharField(max_length=10, default="")
    tools = models.JSONField(default=list)  # names; ["*"] = all granted
    topics = models.JSONField(default=list)
    search_text = models.TextField(default="")  # lower case
    problem_count = models.PositiveIntegerField(default=0)
    runnable = models.BooleanField(default=True)
    # False for private, deleted, expired, or unreadable skills.
    listed = models.BooleanField(default=True)
    state = models.CharField(max_length=12, default="live")  # live, deleted, expired, unreadable
    expires_at = models.BigIntegerField(null=True)  # NIP-40
    # Counters, always recounted from current lists (marketplace.recount).
    adopters = models.PositiveIntegerField(default=0)
    trusted = models.PositiveIntegerField(default=0)

    objects = SkillQuerySet.as_manager()

    class Meta:
        # Begins with the key, so that it finds an author's skills as well.
        constraints = [models.UniqueConstraint(fields=["pubkey", "kind", "d"], name="skill_address")]
        # Numbers only: every count and every new version moves an entry in each, and the few that share a
        # number and a second are put in order when read.
        indexes = [
            models.Index(fields=["-adopters", "-first_published"], name="skill_rank", condition=Q(listed=True)),
            models.Index(fields=["-first_published"], name="skill_newest", condition=Q(listed=True)),
            models.Index(fields=["-created_at"], name="skill_updated", condition=Q(listed=True)),
            models.Index(fields=["trigger_kind", "-adopters"], name="skill_trigger", condition=Q(listed=True)),
        ]

    @property
    def address(self) -> str:
        return f"{self.kind}:{self.pubkey}:{self.d}"

    def __str__(self) -> str:
        return self.d or "(no name)"


class Facet(models.Model):
    """One topic or tool of a skill, so that filters use an index."""

    skill = models.ForeignKey(Skill, models.CASCADE, related_name="facets")
    name = models.CharField(max_length=8)  # topic, tool
    value = models.CharField(max_length=100)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "value", "skill"], name="facet_once")]


class Adoption(models.Model):
    """One entry of a key's current adoption list (10123)."""

    adopter = models.CharField(max_length=64)
    address = models.CharField(max_length=300)
    position = models.PositiveIntegerField()
    event_id = models.CharField(max_length=64)
    listed_at = models.BigIntegerField()  # created_at of the list
    counted = models.BooleanField(default=True)  # False for an author's own adoption

    class Meta:
        # `counted` follows from the other two, and in between lets counting read this index alone.
        constraints = [models.UniqueConstraint(fields=["address", "counted", "adopter"], name="adoption_once")]
        indexes = [models.Index(fields=["adopter"], name="adoption_adopter")]
