"""What an owner has an agent remember."""

from django import forms

from agents.forms.fields import SecretsRefused
from agents.models import Memory
from agents.models.memory import LONGEST
from marketplace.protocol.storable import storable


class MemoryForm(SecretsRefused, forms.Form):
    text = forms.CharField(
        label="Memory",
        strip=True,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=f"One or a few sentences, at most {LONGEST:,} characters.",
    )

    def clean_text(self) -> str:
        text: str = storable(self.cleaned_data["text"])
        if problem := Memory.problem(text):
            raise forms.ValidationError(problem)
        return text
