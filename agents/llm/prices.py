"""Prices and sizes of models from the table shipped in the litellm package, without importing it."""

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents.engine.costs import FREE, Price, Tier
from agents.llm.endpoints import Endpoint, is_offline

TABLE = "model_prices_and_context_window_backup.json"
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens that fit; None where the table does not say."""

    window: int | None = None
    most_output: int | None = None


def package_folder() -> Path:
    """Where litellm is installed; finding it does not run it."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("litellm is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


@lru_cache(maxsize=1)
def _read() -> tuple[dict[str, Price], dict[str, Sizes]]:
    path = package_folder() / TABLE
    installed = datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
    version = f"litellm {importlib.metadata.version('litellm')} of {installed}"
    rows = json.loads(path.read_text(), parse_float=Decimal)
    prices = {name: price for name, row in rows.items() if (price := _price(row, version)) is not None}
    return prices, {name: _sizes(row) for name, row in rows.items()}


def table() -> dict[str, Price]:
    """Model name -> price; only what is billed by the token and nothing else."""
    return _read()[0]


def price_of(endpoint: Endpoint, served: str = "") -> Price | None:
    """The price of the model that answered, else of the one asked for; None where unknown.

    What runs on the operator's own machine costs nothing unless the table knows its name.
    """
    if is_offline(endpoint.model):
        return FREE
    provider = endpoint.model.partition("/")[0]
    for name in (*_names(provider, served), *_names(provider, endpoint.model)):
        if name in table():
            return table()[name]
    return FREE if endpoint.is_local else None


def sizes_of(model: str) -> Sizes:
    """The model's context window and longest answer."""
    for name in _names(model.partition("/")[0], model):
        if name in _read()[1]:
            return _read()[1][name]
    return Sizes()


def _names(provider: str, model: str) -> tuple[str, ...]:
    """How the table may call it: `groq/openai/x` comes back as `openai/x`, `openai/gpt` stands as `gpt`."""
    if not model:
        return ()
    return (model, f"{provider}/{model}", model.removeprefix(f"{provider}/"))


def _price(row: dict[str, Any], version: str) -> Price | None:
    """None where the row does not say what a token costs, or where something else is billed besides."""
    given, answered = row.get("input_cost_per_token"), row.get("output_cost_per_token")
    if given is None or answered is None or "input_cost_per_request" in row:
        return None
    return Price(
        input=Decimal(given),
        output=Decimal(answered),
        cached=_decimal(row.get("cache_read_input_token_cost")),
        reasoning=_decimal(row.get("output_cost_per_reasoning_token")),
        version=version,
        tiers=tuple(sorted(_tiers(row), key=lambda tier: tier.above)),
    )


def _tiers(row: dict[str, Any]) -> Iterator[Tier]:
    for name, value in row.items():
        found = _TIER.fullmatch(name)
        if found and value is not None:
            above = f"above_{found[1]}k_tokens"
            answered = row.get(f"output_cost_per_token_{above}") or row["output_cost_per_token"]
            cached = _decimal(row.get(f"cache_read_input_token_cost_{above}"))
            yield Tier(int(found[1]) * 1_000, Decimal(value), Decimal(answered), cached)


def _sizes(row: dict[str, Any]) -> Sizes:
    window, most = row.get("max_input_tokens") or row.get("max_tokens"), row.get("max_output_tokens")
    return Sizes(window if isinstance(window, int) else None, most if isinstance(most, int) else None)


def _decimal(value: Any) -> Decimal | None:
    return None if value is None else Decimal(value)
