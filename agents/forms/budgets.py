"""The form of budgets: every limit there is, each in its own field, and one more."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from django import forms

from agents.engine.budgets import Allowance
from agents.forms.fields import choose
from agents.models import Budget

NOT_FOR_RUNS = [choice for choice in Budget.Period.choices if choice[0] != Budget.Period.RUN]


def amount(label: str, help_text: str = "") -> forms.DecimalField:
    """US dollars, to the millionth."""
    return forms.DecimalField(
        label=label, help_text=help_text, required=False, min_value=0, max_value=1_000_000, decimal_places=6
    )


class BudgetsForm(forms.Form):
    """Validates only; `changes()` is what was asked for, to be saved elsewhere."""

    what = forms.ChoiceField(label="One more budget for", required=False)
    period = forms.ChoiceField(label="Period", required=False, choices=NOT_FOR_RUNS)
    limit = amount("Limit, US dollars")

    def __init__(
        self,
        *args: Any,
        rows: Sequence[tuple[Budget, Allowance]],
        targets: Iterable[tuple[str, str]],
        **kwargs: Any,
    ) -> None:
        """`targets` are (scope and address, words); a site has only itself."""
        super().__init__(*args, **kwargs)
        self.rows = rows
        choose(self.fields["what"], [("", "choose…"), *targets])
        for budget, allowance in rows:
            self.fields[f"limit-{budget.pk}"] = amount(f"Limit for {allowance.name}, US dollars")
            self.initial[f"limit-{budget.pk}"] = budget.limit

    @property
    def kept(self) -> list[tuple[Budget, Allowance, Any]]:
        """Each budget with what is used of it and its field."""
        return [(budget, allowance, self[f"limit-{budget.pk}"]) for budget, allowance in self.rows]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        what, limit = cleaned.get("what"), cleaned.get("limit")
        if limit is not None and not what and "what" not in self.errors:
            self.add_error("what", "Choose what the limit is for.")
        if what and limit is None and "limit" not in self.errors:
            self.add_error("limit", "Say how many US dollars; 0 lets nothing be spent.")
        if what and limit is not None and self._place() in {(b.scope, b.target, b.period) for b, _ in self.rows}:
            self.add_error("limit", "There is such a budget already: change it above.")
        return cleaned

    def changes(self) -> list[tuple[str, str, str, Decimal | None]]:
        """(scope, target, period, limit) of what differs; None as limit takes a budget away.

        A budget that the page did not know of yet when it was loaded stays as it is.
        """
        sent = [budget for budget, _ in self.rows if f"limit-{budget.pk}" in self.data]
        found = [
            (budget.scope, budget.target, budget.period, self.cleaned_data[f"limit-{budget.pk}"])
            for budget in sent
            if self.cleaned_data[f"limit-{budget.pk}"] != budget.limit
        ]
        if self.cleaned_data["what"]:
            found.append((*self._place(), self.cleaned_data["limit"]))
        return found

    def _place(self) -> tuple[str, str, str]:
        scope, _, target = self.cleaned_data["what"].partition(" ")
        runs = scope == Budget.Scope.RUN
        return scope, target, Budget.Period.RUN if runs else self.cleaned_data.get("period") or Budget.Period.DAY
