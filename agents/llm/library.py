"""litellm itself: imported here and nowhere else, and only when a model is really to be asked."""

import logging
import os
import warnings
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def litellm() -> Any:
    # Before the import, or it fetches its price table from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.cache = None
    # What it does to pydantic models when it streams is no news for anybody here.
    warnings.filterwarnings("ignore", message="Accessing the 'model_|Item '.*' on TypedDict class")
    # What they say of a failed call may hold its key; we record the error ourselves.
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def warm_up() -> None:
    """Pays for the import, in the parent of worker processes."""
    litellm()


@lru_cache(maxsize=200)
def configured(model: str) -> bool:
    """Whether the provider's usual environment variables are set; a provider nobody knows counts as not."""
    try:
        found = litellm().validate_environment(model)
    except Exception:
        return False
    return bool(found.get("keys_in_environment"))
