"""Whether a call may be paid for: its worst case is reserved before, settled after."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

WARN_AT = Decimal("0.8")


@dataclass(frozen=True, slots=True)
class Allowance:
    """One budget and what of it is used: settled costs plus open reservations, in US dollars."""

    name: str  # in words: "this agent's day"
    limit: Decimal
    used: Decimal

    @property
    def left(self) -> Decimal:
        return self.limit - self.used

    @property
    def warns(self) -> bool:
        return self.limit > 0 and self.used >= self.limit * WARN_AT


def refusal(worst_case: Decimal | None, allowances: Iterable[Allowance]) -> str | None:
    """Why the call may not be made, in words; None where it fits into every budget.

    Free calls always fit. A call without a price is refused while a budget applies.
    """
    if worst_case == 0:
        return None
    for allowance in allowances:
        if worst_case is None:
            return f"The model has no known price, and a budget applies ({allowance.name})."
        if allowance.used + worst_case > allowance.limit:
            return (
                f"The budget for {allowance.name} is {allowance.limit} USD, {allowance.used} is used,"
                f" and this call may cost {worst_case}."
            )
    return None
