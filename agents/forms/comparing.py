"""The form of a comparison: one input, and twice what may differ."""

from collections.abc import Iterable, Iterator
from typing import Any

from django import forms

from agents.forms.fields import LONGEST_TEXT, SecretsRefused
from agents.forms.runs import OwnNames, parameter_fields

SIDES = ("a", "b")


class CompareForm(SecretsRefused, OwnNames, forms.Form):
    """Fields of a variant begin with its letter; a template is there only where a skill is."""

    token = forms.CharField(max_length=64, widget=forms.HiddenInput)
    message = forms.CharField(required=False, max_length=LONGEST_TEXT, widget=forms.Textarea(attrs={"rows": 5}))
    writes = forms.BooleanField(
        required=False,
        label="Let both variants use tools that write or spend",
        help_text="Each would do so by itself. Without it they only read.",
    )

    def __init__(self, *args: Any, own: Iterable[str], has_skill: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_own(own)
        self.fields["message"].required = not has_skill
        self.names: tuple[str, ...] = ("template",) if has_skill else ()
        for side in SIDES:
            if has_skill:
                self.fields[f"{side}_template"] = forms.CharField(
                    label="Template",
                    max_length=LONGEST_TEXT,
                    widget=forms.Textarea(attrs={"rows": 12, "class": "mono"}),
                )
            for name, field in parameter_fields().items():
                self.fields[f"{side}_{name}"] = field
        self.names += tuple(parameter_fields())

    def clean(self) -> dict[str, Any] | None:
        """A name that only an edited template brings in was not on the page yet: it is asked for first."""
        cleaned = super().clean()
        new = [name for field, name in self.own.items() if self.add_prefix(field) not in self.data]
        if new and not self.errors:
            raise forms.ValidationError(f"Say what stands for {', '.join(new)}, or leave it empty, and send again.")
        return cleaned

    @property
    def sides(self) -> Iterator[tuple[str, list[Any]]]:
        """Letter and fields of each variant."""
        for side in SIDES:
            yield side, [self[f"{side}_{name}"] for name in self.names]

    def variant(self, side: str) -> dict[str, Any]:
        found = {name: self.cleaned_data[f"{side}_{name}"] for name in self.names}
        if "template" in found:
            found["template"] = found["template"].replace("\r\n", "\n")
        return {name: value for name, value in found.items() if value not in (None, "")}
