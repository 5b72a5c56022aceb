"""What an author has typed, and signed events on their way to relays."""

from datetime import datetime

from django.conf import settings
from django.db import models

from marketplace.models.identities import Identity
from marketplace.protocol.skillmd import read_skillmd, to_spec
from marketplace.protocol.skills import SkillSpec


class Draft(models.Model):
    """A skill as typed: nothing here is checked, nothing here is public."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="drafts")
    identity = models.ForeignKey(Identity, models.CASCADE, related_name="+", null=True)
    fields = models.JSONField(default=dict)  # form field name -> text as typed
    base_event = models.CharField(max_length=64, default="")  # id of the version it edits
    revision = models.PositiveIntegerField(default=1)  # a save names the revision it saw
    form_token = models.CharField(max_length=32, default="")  # of the open page that saved last
    published_event = models.CharField(max_length=64, default="")
    imported = models.TextField(default="")  # the SKILL.md it came from, for what no field of the form holds
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            # A first save that is sent twice becomes one draft.
            models.UniqueConstraint(
                fields=["user", "form_token"], name="draft_once_per_page", condition=~models.Q(form_token="")
            )
        ]

    def imported_spec(self) -> SkillSpec | None:
        file = read_skillmd(self.imported) if self.imported else None
        return to_spec(file) if file is not None and file.usable else None

    def keep(self, fields: dict[str, str], page: str, seen: int, now: datetime) -> bool:
        """Save what was typed, unless another page saved since this one saw revision `seen`."""
        same = models.Q(revision=seen) | models.Q(form_token=page)
        changed = Draft.objects.filter(same, pk=self.pk).update(
            fields=fields, form_token=page, revision=models.F("revision") + 1, updated_at=now
        )
        self.refresh_from_db()
        return bool(changed)


class Publication(models.Model):
    """One signed event and each relay's answer; a retry sends the same bytes again."""

    identity = models.ForeignKey(Identity, models.CASCADE, related_name="publications")
    event_id = models.CharField(max_length=64, unique=True)
    kind = models.PositiveIntegerField()
    raw = models.TextField()
    why = models.CharField(max_length=200)  # in words: "adopt spellcheck"
    relays = models.JSONField(default=list)  # urls it goes to; each gets an answer row in time
    form_token = models.CharField(max_length=64, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            # A double submit carries one token and becomes one publication.
            models.UniqueConstraint(
                fields=["identity", "form_token"], name="publication_token", condition=~models.Q(form_token="")
            )
        ]

    @property
    def accepted(self) -> bool:
        return any(answer.ok for answer in self.answers.all())

    @property
    def waiting_for(self) -> list[str]:
        """Relays that have not answered yet."""
        answered = {answer.url for answer in self.answers.all()}
        return [url for url in self.relays if url not in answered]


class RelayAnswer(models.Model):
    """What one relay said to one publication."""

    publication = models.ForeignKey(Publication, models.CASCADE, related_name="answers")
    url = models.CharField(max_length=300)
    ok = models.BooleanField()
    message = models.CharField(max_length=300, default="")
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["publication", "url"], name="one_answer_per_relay")]
        ordering = ["url"]
