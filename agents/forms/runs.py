"""The form of a run by hand."""

import secrets
from collections.abc import Iterable
from typing import Any

from django import forms

from agents.forms.fields import LONGEST_TEXT, SecretsRefused, choose
from agents.models import Agent


class RunStartForm(SecretsRefused, forms.Form):
    """A run by hand: one field for each name that the skill, the soul or an adopted skill leaves to it."""

    token = forms.CharField(max_length=64, widget=forms.HiddenInput)
    agent = forms.ChoiceField()
    message = forms.CharField(required=False, max_length=LONGEST_TEXT, widget=forms.Textarea(attrs={"rows": 5}))
    llm = forms.CharField(label="Model", required=False, max_length=300, help_text="For this run only.")
    max_tokens = forms.IntegerField(label="Most tokens", required=False, min_value=1, max_value=1_000_000)
    temperature = forms.FloatField(required=False, min_value=0, max_value=2)
    seed = forms.IntegerField(required=False, min_value=-(2**63), max_value=2**63 - 1)
    OVERRIDES = ("llm", "max_tokens", "temperature", "seed")

    def __init__(
        self, *args: Any, agents: Iterable[Agent], own: Iterable[str], needs_message: bool, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.initial.setdefault("token", secrets.token_hex(16))
        choose(self.fields["agent"], [(one.slug, one.name) for one in agents])
        self.own = {f"variable-{name}": name for name in own}
        for field, name in self.own.items():
            self.fields[field] = forms.CharField(
                label=name, required=False, max_length=20_000, widget=forms.Textarea(attrs={"rows": 2})
            )
        self.fields["message"].required = needs_message

    @property
    def own_fields(self) -> list[Any]:
        return [self[field] for field in self.own]

    @property
    def override_fields(self) -> list[Any]:
        return [self[field] for field in self.OVERRIDES]

    @property
    def override_errors(self) -> bool:
        return any(name in self.errors for name in self.OVERRIDES)

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Label and words of each error, for where the fields themselves are not shown."""
        rows = [
            (self.fields[name].label or name if name in self.fields else "", self.errors[name]) for name in self.errors
        ]
        return [(str(label), str(words)) for label, found in rows for words in found]

    @property
    def arguments(self) -> dict[str, str]:
        return {name: self.cleaned_data[field] for field, name in self.own.items()}

    @property
    def overrides(self) -> dict[str, Any]:
        return {name: value for name in self.OVERRIDES if (value := self.cleaned_data[name]) not in (None, "")}
