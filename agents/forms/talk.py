"""What somebody types to an agent."""

import secrets
from collections.abc import Iterable
from typing import Any

from django import forms

from agents.forms.fields import LONGEST_TEXT, SecretsRefused, choose


class TalkForm(SecretsRefused, forms.Form):
    """One message, and what holds for this turn only."""

    token = forms.CharField(max_length=64, widget=forms.HiddenInput)
    message = forms.CharField(
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 4, "data-names": "names"}),
        help_text="Ctrl+Enter sends it. A skill’s /name anywhere in it loads that skill.",
    )
    skill = forms.ChoiceField(required=False, help_text="Runs it on the message. Empty: those always on.")
    llm = forms.CharField(label="Model", required=False, max_length=300, help_text="provider/name, or an alias.")
    ask_first = forms.BooleanField(
        label="Ask me before it writes or spends anything", required=False, help_text="Such calls then wait here."
    )
    CHOICES = ("skill", "llm", "ask_first")

    def __init__(self, *args: Any, skills: Iterable[tuple[str, str]] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial.setdefault("token", secrets.token_hex(16))
        if skills is None:
            del self.fields["skill"]
        else:
            choose(self.fields["skill"], [("", "none"), *skills])

    @property
    def choice_fields(self) -> list[Any]:
        return [self[name] for name in self.CHOICES if name in self.fields]

    @property
    def address(self) -> str:
        """Its address; "" for none."""
        return str(self.cleaned_data.get("skill") or "")

    @property
    def choices_open(self) -> bool:
        """Whether one of them was changed, or is wrong."""
        return any(field.errors or field.value() for field in self.choice_fields)

    @property
    def overrides(self) -> dict[str, Any]:
        return {"llm": self.cleaned_data["llm"]} if self.cleaned_data["llm"] else {}

    @property
    def autonomy(self) -> str:
        return "suggest" if self.cleaned_data["ask_first"] else "auto"


class TitleForm(SecretsRefused, forms.Form):
    title = forms.CharField(max_length=120, help_text="What you call this conversation. Nobody else sees it.")
