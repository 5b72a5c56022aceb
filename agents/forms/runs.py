"""The form of a run by hand."""

import secrets
from collections.abc import Iterable
from typing import Any

from django import forms

from agents.forms.fields import LONGEST_TEXT, SecretsRefused, choose
from agents.models import Agent
from marketplace.protocol import templates
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.vocabulary import VARIABLES


class RunStartForm(SecretsRefused, forms.Form):
    """A run by hand: one field for each of the template's own variables."""

    token = forms.CharField(max_length=64, widget=forms.HiddenInput)
    agent = forms.ChoiceField()
    message = forms.CharField(required=False, max_length=LONGEST_TEXT, widget=forms.Textarea(attrs={"rows": 5}))
    llm = forms.CharField(label="Model", required=False, max_length=300, help_text="For this run only.")
    max_tokens = forms.IntegerField(label="Most tokens", required=False, min_value=1, max_value=1_000_000)
    temperature = forms.FloatField(required=False, min_value=0, max_value=2)
    seed = forms.IntegerField(required=False, min_value=-(2**63), max_value=2**63 - 1)
    OVERRIDES = ("llm", "max_tokens", "temperature", "seed")

    def __init__(self, *args: Any, agents: Iterable[Agent], spec: SkillSpec | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial.setdefault("token", secrets.token_hex(16))
        choose(self.fields["agent"], [(one.slug, one.name) for one in agents])
        own = [name for name in templates.variables(spec.template) if name not in VARIABLES] if spec else []
        self.own = {f"variable-{name}": name for name in own}
        for field, name in self.own.items():
            self.fields[field] = forms.CharField(
                label=name, required=False, max_length=20_000, widget=forms.Textarea(attrs={"rows": 2})
            )
        if spec is None:
            self.fields["message"].required = True

    @property
    def own_fields(self) -> list[Any]:
        return [self[field] for field in self.own]

    @property
    def override_fields(self) -> list[Any]:
        return [self[field] for field in self.OVERRIDES]

    @property
    def arguments(self) -> dict[str, str]:
        return {name: self.cleaned_data[field] for field, name in self.own.items()}

    @property
    def overrides(self) -> dict[str, Any]:
        return {name: value for name in self.OVERRIDES if (value := self.cleaned_data[name]) not in (None, "")}
