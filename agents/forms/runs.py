"""The form of a run by hand."""

import secrets
from collections.abc import Iterable
from typing import Any

from django import forms

from agents.forms.fields import LONGEST_TEXT, SecretsRefused, choose
from agents.models import Agent


def parameter_fields() -> dict[str, forms.Field]:
    """What a run may set for itself alone; empty means that it does not."""
    return {
        "llm": forms.CharField(label="Model", required=False, max_length=300, help_text="For this run only."),
        "max_tokens": forms.IntegerField(label="Most tokens", required=False, min_value=1, max_value=1_000_000),
        "temperature": forms.FloatField(label="Temperature", required=False, min_value=0, max_value=2),
        "seed": forms.IntegerField(label="Seed", required=False, min_value=-(2**63), max_value=2**63 - 1),
    }


class OwnNames(forms.BaseForm):
    """One field for each name that the skill, the soul or an adopted skill leaves to a run."""

    def add_own(self, names: Iterable[str]) -> None:
        self.initial.setdefault("token", secrets.token_hex(16))
        self.own = {f"variable-{name}": name for name in names}
        for field, name in self.own.items():
            self.fields[field] = forms.CharField(
                label=name, required=False, max_length=20_000, widget=forms.Textarea(attrs={"rows": 2})
            )

    @property
    def own_fields(self) -> list[Any]:
        return [self[field] for field in self.own]

    @property
    def arguments(self) -> dict[str, str]:
        return {name: self.cleaned_data[field] for field, name in self.own.items()}

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Label and words of each error, for where the fields themselves are not shown."""
        labels = {name: str(field.label or name) for name, field in self.fields.items()}
        return [(labels.get(name, ""), str(words)) for name, found in self.errors.items() for words in found]


class RunStartForm(SecretsRefused, OwnNames, forms.Form):
    """A run by hand."""

    token = forms.CharField(max_length=64, widget=forms.HiddenInput)
    agent = forms.ChoiceField()
    message = forms.CharField(required=False, max_length=LONGEST_TEXT, widget=forms.Textarea(attrs={"rows": 5}))

    def __init__(
        self, *args: Any, agents: Iterable[Agent], own: Iterable[str], needs_message: bool, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        choose(self.fields["agent"], [(one.slug, one.name) for one in agents])
        self.add_own(own)
        self.fields["message"].required = needs_message
        self.fields |= parameter_fields()

    @property
    def override_fields(self) -> list[Any]:
        return [self[name] for name in parameter_fields()]

    @property
    def override_errors(self) -> bool:
        return any(name in self.errors for name in parameter_fields())

    @property
    def overrides(self) -> dict[str, Any]:
        return {name: value for name in parameter_fields() if (value := self.cleaned_data[name]) not in (None, "")}
