"""What one request would cost at each model of a chain, and whether it fits there; nobody is asked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings

from agents import llm
from agents.engine import costs, fallback
from agents.models import Agent


@dataclass(frozen=True, slots=True)
class Estimate:
    """One call of one model; amounts in US dollars, None where the price is unknown."""

    model: str
    window: int | None  # tokens; None where nobody says
    room: int | None  # tokens its answer may have; None: the request does not fit, it would not be asked
    input: Decimal | None  # the request alone
    at_most: Decimal | None  # with the longest answer
    price_version: str

    def to_dict(self) -> dict[str, Any]:
        own = {"model": self.model, "window": self.window, "room": self.room, "price_version": self.price_version}
        return {**own, "input": _digits(self.input), "at_most": _digits(self.at_most)}


def estimates(agent: Agent | None, models: Sequence[str], tokens: int, most: int) -> list[Estimate]:
    """One for each model, in the order of the chain."""
    terms = llm.Terms.of(agent if models else None)
    # Only what no table names may be free for standing on the owner's own machine: by the address, without its key.
    unnamed = [model for model in models if terms.price(llm.Endpoint(model)) is None]
    own = dict(agent.provider_keys.values_list("provider", "base_url")) if agent and unnamed else {}
    return [_estimate(terms, llm.Endpoint(model, _address(model, own)), tokens, most) for model in models]


def _address(model: str, own: Mapping[str, str]) -> str:
    provider = model.partition("/")[0]
    return own.get(provider, settings.LLM_BASE_URL if provider == "openai" else "")


def _estimate(terms: llm.Terms, endpoint: llm.Endpoint, tokens: int, most: int) -> Estimate:
    sizes, price = terms.sizes(endpoint.model), terms.price(endpoint)
    room = fallback.room(tokens, most, sizes.window, sizes.most_output)
    return Estimate(
        endpoint.model,
        sizes.window,
        room,
        costs.worst_case(tokens, 0, price),
        None if room is None else costs.worst_case(tokens, room, price),
        price.version if price else "",
    )


def too_long(found: Iterable[Estimate], tokens: int) -> list[str]:
    """Models that the request does not fit into, in words."""
    found = list(found)
    words = [
        f"{one.model}: about {tokens:,} tokens do not fit its window of {one.window or 0:,}; it would not be asked."
        for one in found
        if one.room is None
    ]
    if words and len(words) == len(found):
        words.append("No model of the chain can take this request.")
    return words


def _digits(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:f}"
