"""Usage and a price become a Decimal, or unknown (None); token classes never overlap."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens by class, each counted once."""

    input: int = 0  # without cached
    cached: int = 0
    output: int = 0  # without reasoning
    reasoning: int = 0
    known: bool = True  # False: the provider said nothing usable
    consistent: bool = True  # False: its numbers contradict each other

    @property
    def total(self) -> int:
        return self.input + self.cached + self.output + self.reasoning


@dataclass(frozen=True, slots=True)
class Tier:
    """What a long request costs instead, as a whole: US dollars per token where the prompt has more than `above`."""

    above: int
    input: Decimal
    output: Decimal
    cached: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per token."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None  # None: as input
    reasoning: Decimal | None = None  # None: as output
    version: str = ""  # of the price table
    tiers: tuple[Tier, ...] = ()  # by `above`, ascending

    def per_million(self) -> dict[str, str]:
        """As people say prices: US dollars per million tokens of each class, all digits."""
        classes = {"input": self.input, "cached": self.cached, "output": self.output, "reasoning": self.reasoning}
        return {name: _plain(one * 1_000_000) for name, one in classes.items() if one is not None}

    def at(self, prompt_tokens: int) -> "Price":
        """The price of a request with so many tokens in its prompt."""
        for tier in reversed(self.tiers):
            if prompt_tokens > tier.above:
                # A price for reasoning that is not given for the tier is that of its output.
                return replace(self, input=tier.input, output=tier.output, cached=tier.cached, reasoning=None, tiers=())
        return self


FREE = Price(ZERO, ZERO, version="free")


@dataclass(frozen=True, slots=True)
class Assumed:
    """What a model without a known price is taken to cost: counts against budgets, and is part of no total."""

    version: str
    per_call: Decimal | None = None  # at most so much, whatever the call uses
    rates: Price | None = None

    def worst(self, input_tokens: int, max_tokens: int) -> Decimal | None:
        """What to reserve before a call."""
        return self.per_call if self.per_call is not None else worst_case(input_tokens, max_tokens, self.rates)

    def used(self, usage: Usage) -> Decimal | None:
        """What to settle it at; None where that stays what was reserved."""
        return None if self.per_call is not None else cost(usage, self.rates)


def read_usage(raw: Any) -> Usage:
    """The classes from an OpenAI-shaped usage object, whose prompt and completion include the details."""
    if not isinstance(raw, dict):
        return Usage(known=False)
    prompt, completion = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
    if prompt is None and completion is None:
        return Usage(known=False)
    cached = _detail(raw.get("prompt_tokens_details"), "cached_tokens")
    reasoning = _detail(raw.get("completion_tokens_details"), "reasoning_tokens")
    prompt, completion = prompt or 0, completion or 0
    consistent = cached <= prompt and reasoning <= completion
    cached, reasoning = min(cached, prompt), min(reasoning, completion)
    return Usage(prompt - cached, cached, completion - reasoning, reasoning, consistent=consistent)


def cost(usage: Usage, price: Price | None) -> Decimal | None:
    """US dollars, or None where usage or price is unknown."""
    if price is FREE or (price is not None and price.version == FREE.version):
        return ZERO
    if price is None or not usage.known:
        return None
    price = price.at(usage.input + usage.cached)
    cached = price.input if price.cached is None else price.cached
    reasoning = price.output if price.reasoning is None else price.reasoning
    return usage.input * price.input + usage.cached * cached + usage.output * price.output + usage.reasoning * reasoning


def worst_case(input_tokens: int, max_tokens: int, price: Price | None) -> Decimal | None:
    """The most a call may cost: nothing cached, the answer at its limit."""
    if price is None:
        return None
    price = price.at(input_tokens)
    dearest = max(price.output, price.reasoning or ZERO)
    return input_tokens * price.input + max_tokens * dearest


def total(amounts: Iterable[Decimal | None]) -> tuple[Decimal, int]:
    """The sum of what is known, and how many are not."""
    known, unknown = ZERO, 0
    for amount in amounts:
        if amount is None:
            unknown += 1
        else:
            known += amount
    return known, unknown


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _count(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, float) and value.is_integer() and value >= 0:
        return int(value)
    return None


def _detail(details: Any, name: str) -> int:
    return (_count(details.get(name)) or 0) if isinstance(details, dict) else 0
