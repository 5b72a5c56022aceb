"""What an agent may do beyond its tools: to itself, in public, and with which models."""

from typing import Any

from django import forms

from agents.forms.fields import Lines, SecretsRefused
from agents.models import Agent

MOST_MODELS = 50
LONGEST_MODEL = 200


class GrantsForm(SecretsRefused, forms.ModelForm):  # type: ignore[type-arg]
    model_choices = Lines(
        label="Models it may choose",
        required=False,
        max_length=5_000,
        help_text="One a line, provider/name; its aliases and the site's model are always among them. For model_set.",
        widget=forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
    )

    class Meta:
        model = Agent
        fields = ["public_skills", "self_change", "model_choices"]
        labels = {
            "public_skills": "It may publish skills that everyone sees",
            "self_change": "It may change its own skills, triggers and model without asking",
        }
        help_texts = {
            "public_skills": "Else the skills it makes are encrypted, and only itself reads them.",
            "self_change": "Else each such call waits for you, also in a run that acts by itself.",
        }

    def clean_model_choices(self) -> list[str]:
        found: list[str] = list(dict.fromkeys(self.cleaned_data["model_choices"]))
        for model in found:
            if "://" in model or "," in model or len(model) > LONGEST_MODEL:
                raise forms.ValidationError(f"“{model[:80]}” should read: provider/name. An address is set elsewhere.")
        if len(found) > MOST_MODELS:
            raise forms.ValidationError(f"At most {MOST_MODELS}.")
        return found

    def clean(self) -> dict[str, Any]:
        return super().clean() or self.cleaned_data
