"""Prices and windows of models from the table shipped in the litellm package, without importing it."""

import importlib.metadata
import importlib.util
import json
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents.engine.costs import FREE, Price
from agents.llm.endpoints import Endpoint, is_offline

TABLE = "model_prices_and_context_window_backup.json"


def package_folder() -> Path:
    """Where litellm is installed; finding it does not run it."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("litellm is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


@lru_cache(maxsize=1)
def table() -> dict[str, Price]:
    """Model name -> price and window; only what has a price per token."""
    version = f"litellm {importlib.metadata.version('litellm')}"
    rows = json.loads((package_folder() / TABLE).read_text(), parse_float=Decimal)
    return {name: _price(row, version) for name, row in rows.items() if "input_cost_per_token" in row}


def price_of(endpoint: Endpoint, served: str = "") -> Price | None:
    """The price of the model that answered, else of the one asked for; None where unknown.

    What runs on the operator's own machine costs nothing unless the table knows its name.
    """
    if is_offline(endpoint.model):
        return FREE
    provider = endpoint.model.partition("/")[0]
    for name in _names(provider, served), _names(provider, endpoint.model):
        for known in name:
            if known in table():
                return table()[known]
    return FREE if endpoint.is_local else None


def window_of(model: str) -> int | None:
    """Tokens that fit into the model's context, None where unknown."""
    for name in _names(model.partition("/")[0], model):
        if name in table():
            return table()[name].window
    return None


def _names(provider: str, model: str) -> tuple[str, ...]:
    """How the table may call it: `groq/openai/x` comes back as `openai/x`, `openai/gpt` stands as `gpt`."""
    if not model:
        return ()
    return (model, f"{provider}/{model}", model.partition("/")[2] if model.startswith(f"{provider}/") else model)


def _price(row: dict[str, Any], version: str) -> Price:
    window = row.get("max_input_tokens") or row.get("max_tokens")
    return Price(
        input=Decimal(row["input_cost_per_token"] or 0),
        output=Decimal(row.get("output_cost_per_token") or 0),
        cached=_decimal(row.get("cache_read_input_token_cost")),
        reasoning=_decimal(row.get("output_cost_per_reasoning_token")),
        version=version,
        window=window if isinstance(window, int) else None,
    )


def _decimal(value: Any) -> Decimal | None:
    return None if value is None else Decimal(value)
