"""Money as whole pico-dollars in the database, so that sums are exact on every engine."""

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models.expressions import Combinable

PICO = Decimal("1e-12")


def storable(amount: Decimal) -> Decimal:
    """As it comes back from the database: to the pico-dollar, without zeros behind it."""
    return amount.quantize(PICO).normalize() + Decimal(0)


class MoneyField(models.BigIntegerField):  # type: ignore[type-arg]
    """US dollars as Decimal in Python; SQLite would sum a DecimalField as binary floats."""

    _pyi_private_set_type: Decimal | int | Combinable  # type: ignore[assignment]
    _pyi_private_get_type: Decimal  # type: ignore[assignment]

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Decimal | None:
        return None if value is None else (Decimal(value) * PICO).normalize() + Decimal(0)

    def to_python(self, value: Any) -> Decimal | None:
        return None if value is None else Decimal(value)

    def get_prep_value(self, value: Any) -> int | None:
        return None if value is None else int((Decimal(value) / PICO).to_integral_value())

    def formfield(self, **kwargs: Any) -> Any:
        from django import forms

        return forms.DecimalField(min_value=0, max_value=1_000_000, decimal_places=12, required=not self.null)
