"""Whether a call may be paid for: its worst case is reserved before, settled after."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

WARN_AT = Decimal("0.8")


@dataclass(frozen=True, slots=True)
class Allowance:
    """One budget and what of it is used: settled costs plus open reservations, in US dollars."""

    name: str  # in words: "Helper, a day"
    limit: Decimal
    used: Decimal
    budget: int = 0  # its id, for whoever keeps a note of it

    @property
    def left(self) -> Decimal:
        return max(Decimal(0), self.limit - self.used)

    @property
    def share(self) -> int | None:
        """Per cent that is used; None where nothing may be spent anyway."""
        return int(self.used * 100 / self.limit) if self.limit > 0 else None

    @property
    def state(self) -> str:
        """`stop` when it is used up, `warn` shortly before, else empty; a limit of 0 is a decision, not news."""
        if self.limit <= 0 or self.used < self.limit * WARN_AT:
            return ""
        return "stop" if self.used >= self.limit else "warn"

    @property
    def words(self) -> str:
        """What its owner reads; empty while there is nothing to say."""
        if not self.state:
            return ""
        said = "is used up" if self.state == "stop" else f"is {self.share} % used"
        return f"The budget for {self.name}, {said}: {self.used} of {self.limit} USD."


def refusing(worst_case: Decimal | None, allowances: Iterable[Allowance]) -> Allowance | None:
    """The first budget that a call of a known worst case does not fit into."""
    if not worst_case:
        return None
    return next((one for one in allowances if one.used + worst_case > one.limit), None)


def refusal(worst_case: Decimal | None, allowances: Iterable[Allowance]) -> str | None:
    """Why the call may not be made, in words; None where it fits into every budget.

    Free calls always fit. A call without a price or an estimate is refused while a budget applies.
    """
    if worst_case == 0:
        return None
    allowances = list(allowances)
    if worst_case is None and allowances:
        return (
            f"The model has no known price, and a budget applies ({allowances[0].name})."
            " Say what it costs, or what a call may cost at most, under “Models” of this agent."
        )
    full = refusing(worst_case, allowances)
    if full is None:
        return None
    return f"The budget for {full.name}, is {full.limit} USD, {full.used} is used, and this call may cost {worst_case}."
