"""Prices and sizes of models from the table shipped in the litellm package, without importing it.

A row is read when its model is asked for: the whole table would take 13 MB of every process for a handful of them.
"""

import importlib.metadata
import importlib.util
import json
import mmap
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
LONGEST_ROW = 65_536  # bytes; the longest has a tenth of it
# Names stand four spaces in, a few of them at the margin; whatever a row holds stands further in.
_NAME = re.compile(rb'\n(?: {4})?("[^"\n]+"): \{')
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens that fit; None where the table does not say."""

    window: int | None = None
    most_output: int | None = None


@lru_cache(maxsize=1)
def package_folder() -> Path:
    """Where litellm is installed; finding it does not run it."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("litellm is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


@dataclass(frozen=True, slots=True)
class Entry:
    """What the table says of one name."""

    price: Price | None  # only of what is billed by the token and nothing else
    sizes: Sizes


@lru_cache(maxsize=500)
def entry(name: str) -> Entry | None:
    """None where the table does not know the name."""
    row = _row(name)
    if row is not None and isinstance(row.get("alias_of"), str):
        row = _row(row["alias_of"])
    return None if row is None else Entry(_price(row, _version()), _sizes(row))


def _row(name: str) -> dict[str, Any] | None:
    start = _places().get(name)
    if start is None:
        return None
    with (package_folder() / TABLE).open("rb") as file:
        file.seek(start)
        text = file.read(LONGEST_ROW).decode(errors="replace")
    return _decoder().raw_decode(text)[0]  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _places() -> dict[str, int]:
    """Where in the file each name's row begins."""
    with (package_folder() / TABLE).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as table:
        return {json.loads(found[1]): found.end() - 1 for found in _NAME.finditer(table)}


@lru_cache(maxsize=1)
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_float=Decimal)


@lru_cache(maxsize=1)
def _version() -> str:
    installed = datetime.fromtimestamp((package_folder() / TABLE).stat().st_mtime, UTC).date()
    return f"litellm {importlib.metadata.version('litellm')} of {installed}"


def price_of(endpoint: Endpoint, served: str = "") -> Price | None:
    """The price of the model that answered, else of the one asked for; None where unknown.

    What runs on the operator's own machine costs nothing unless the table knows its name.
    """
    if is_offline(endpoint.model):
        return FREE
    provider = endpoint.model.partition("/")[0]
    for name in (*_names(provider, served), *_names(provider, endpoint.model)):
        found = entry(name)
        if found is not None and found.price is not None:
            return found.price
    return FREE if endpoint.is_local else None


def sizes_of(model: str) -> Sizes:
    """The model's context window and longest answer."""
    for name in _names(model.partition("/")[0], model):
        found = entry(name)
        if found is not None:
            return found.sizes
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
