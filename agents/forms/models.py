"""The form of a model: what its owner knows better than the table that is shipped."""

from typing import Any

from django import forms

from agents.forms.fields import SecretsRefused
from agents.llm import is_offline
from agents.models import OwnModel

PRICES = ("input", "output", "cached", "reasoning")


def per_million(label: str, help_text: str = "") -> forms.DecimalField:
    return forms.DecimalField(
        label=label, help_text=help_text, required=False, min_value=0, max_value=1_000_000, decimal_places=6
    )


def tokens(label: str, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(label=label, help_text=help_text, required=False, min_value=1, max_value=100_000_000)


class OwnModelForm(SecretsRefused, forms.Form):
    """Checks only; `values()` is what is to be kept."""

    model = forms.RegexField(
        r"^[^\s/,=]+/[^\s,=]+$",
        max_length=200,
        label="Model",
        help_text="As it is asked: provider/name. Its address is that of the provider's key in the settings.",
        error_messages={"invalid": "Write provider/name, as in openai/gpt-4o-mini."},
        widget=forms.TextInput(attrs={"class": "mono", "spellcheck": "false", "autocomplete": "off"}),
    )
    window = tokens("Context window, tokens", "Empty: as the table says.")
    most_output = tokens("Longest answer, tokens", "Empty: as the table says.")
    kind = forms.ChoiceField(
        label="What the prices are",
        widget=forms.RadioSelect,
        initial="exact",
        choices=[
            ("exact", "exact: costs are counted with them"),
            ("estimate", "a guess: it counts against budgets only, costs stay “unknown”"),
        ],
    )
    input = per_million("Input, US dollars per million tokens")
    output = per_million("Output, US dollars per million tokens")
    cached = per_million("Cached input, US dollars per million tokens", "Empty: as input.")
    reasoning = per_million("Reasoning, US dollars per million tokens", "Empty: as output.")
    per_call = per_million("Or: assume at most, US dollars for each call", "Only for a guess.")

    def clean_model(self) -> str:
        model: str = self.cleaned_data["model"]
        if is_offline(model):
            raise forms.ValidationError("The built-in echo is free, and no language model.")
        return model

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        given = {name for name in (*PRICES, "per_call", "window", "most_output") if cleaned.get(name) is not None}
        if self.errors:
            return cleaned
        for name in ("input", "output"):
            if given & set(PRICES) and name not in given:
                self.add_error(name, "Input and output need a price, 0 where it is free.")
        if "per_call" in given and cleaned.get("kind") == "exact":
            self.add_error("per_call", "A price for each call is a guess: choose “a guess” above.")
        elif "per_call" in given and given & set(PRICES):
            self.add_error("per_call", "Either this or prices per million tokens.")
        if not given:
            self.add_error(None, "Nothing is given: fill in a window, a price, or what a call may cost.")
        if cleaned.get("kind") == "estimate" and not given & {*PRICES, "per_call"}:
            self.add_error("per_call", "A guess needs prices, or what a call may cost at most.")
        return cleaned

    def values(self) -> dict[str, Any]:
        kept = {name: self.cleaned_data[name] for name in (*PRICES, "per_call", "window", "most_output")}
        return {**kept, "certain": self.cleaned_data["kind"] == "exact"}

    @staticmethod
    def initial_of(own: OwnModel) -> dict[str, Any]:
        names = (*PRICES, "per_call", "window", "most_output", "model")
        return {**{name: getattr(own, name) for name in names}, "kind": "exact" if own.certain else "estimate"}
