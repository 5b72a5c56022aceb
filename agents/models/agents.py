"""An agent: a key, a character, and what its owner lets it do."""

from django.conf import settings
from django.db import models

from marketplace.models import Identity, User


class AgentQuerySet(models.QuerySet["Agent"]):
    def of(self, user: User) -> "AgentQuerySet":
        return self.filter(owner=user)


class Agent(models.Model):
    """Owned by one user, signs with one identity."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="agents")
    identity = models.OneToOneField(Identity, models.PROTECT, related_name="agent")
    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=60, allow_unicode=True)
    soul = models.TextField(default="", blank=True)  # a template with sections and variables
    admin_pubkey = models.CharField(max_length=64, default="", blank=True)
    # Defaults of a run; empty means the site's.
    llm = models.CharField(max_length=300, default="", blank=True)
    aliases = models.JSONField(default=dict, blank=True)  # name -> model chain
    max_tokens = models.PositiveIntegerField(null=True, blank=True)
    temperature = models.FloatField(null=True, blank=True)
    seed = models.BigIntegerField(null=True, blank=True)
    grants = models.JSONField(default=list, blank=True)  # tool names
    dm_recipients = models.JSONField(default=list, blank=True)  # hex keys besides the admin
    model_choices = models.JSONField(default=list, blank=True)  # what it may set its own model to, besides aliases
    public_skills = models.BooleanField(default=False)  # whether skills it makes may be public
    self_change = models.BooleanField(default=False)  # whether it changes its skills, triggers and model unasked
    talkers = models.JSONField(default=list, blank=True)  # hex keys that it obeys by direct message, besides the admin
    dm_since = models.BigIntegerField(default=0)  # unix seconds; no direct message before it is answered
    dms_ignored = models.PositiveIntegerField(default=0)  # direct messages of everybody else, and forged ones
    relays = models.JSONField(default=list, blank=True)  # empty means the site's
    limits = models.JSONField(default=dict, blank=True)  # overrides of the site's limits by name
    usage_rules = models.TextField(null=True, blank=True)
    enabled = models.BooleanField(default=True)  # False: the kill switch is on
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "slug"], name="agent_slug_per_owner")]
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name

    @property
    def heard_since(self) -> int:
        """Unix seconds; direct messages from before are not answered."""
        return max(self.dm_since, int(self.created_at.timestamp()))


class ProviderKey(models.Model):
    """A sealed key for one model provider, sent only to its own base URL."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="provider_keys")
    provider = models.CharField(max_length=60)  # the part before "/" in a model's name
    base_url = models.CharField(max_length=300, default="", blank=True)  # empty: the provider's own
    sealed = models.TextField(default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "provider"], name="one_key_per_provider")]

    def in_words(self) -> dict[str, str]:
        """What may be told of it: never the key, sealed or not."""
        return {"address": self.base_url or "the provider's own", "key": "held" if self.sealed else "none"}
