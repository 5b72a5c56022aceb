"""What an owner decides about a trigger before it is armed."""

from collections.abc import Iterable
from typing import Any

from django import forms

from agents.forms.budgets import amount
from agents.models import Trigger


class AdoptForm(forms.Form):
    """Validates only; grants and the way of carrying are ticks that cannot be wrong."""

    autonomy = forms.ChoiceField(
        label="What it writes",
        required=False,
        choices=[
            (Trigger.Autonomy.SUGGEST, "waits for my approval, each time"),
            (Trigger.Autonomy.AUTO, "goes out by itself"),
        ],
        widget=forms.RadioSelect,
        initial=Trigger.Autonomy.SUGGEST,
    )
    budget = amount(
        "Budget of this trigger, US dollars a day",
        "A call that does not fit is not made. Empty: only the budgets of the agent and the site hold.",
    )

    def __init__(self, *args: Any, grants: Iterable[str] = (), **kwargs: Any) -> None:
        """`grants`: the tools that are ticked before anybody says anything."""
        super().__init__(*args, **kwargs)
        self.ticked = set(self.data.getlist("grant")) if self.is_bound else set(grants)  # type: ignore[attr-defined]
        self.on_demand = self.is_bound and self.data.get("carry") == "demand"
