"""One attempt at one model through litellm, which is imported here and nowhere else.

Retries and fallbacks stay off: there is one retry loop, the engine's.
"""

import base64
import logging
import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

from django.conf import settings

from agents.engine.fallback import ModelError, retry_after
from agents.llm import echo
from agents.llm.endpoints import Endpoint, is_offline
from marketplace import addresses

LONGEST_MESSAGE = 1_000
# Keys of providers inside error texts: in addresses, headers and by their usual shapes.
_SECRETS = re.compile(
    r"(?i)((?:api[-_]?key|key|token|authorization|secret)[\"']?\s*[=:]\s*[\"']?(?:bearer\s+)?)[^\s\"'&,;)}\]]+"
    r"|(bearer\s+)[\w.~+/=-]+|\b(sk-|xai-|gsk_|AIza)[\w-]{6,}"
)


@dataclass(frozen=True)
class Request:
    """What is sent: messages and tools in OpenAI's shape; None is not sent."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    max_tokens: int = 4_096
    temperature: float | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Answer:
    """The completion as plain JSON values; nothing about its shape is promised."""

    response: dict[str, Any]
    served: str
    usage: Any


class ModelFailed(Exception):
    """The attempt failed."""

    def __init__(self, error: ModelError) -> None:
        super().__init__(error.message)
        self.error = error


def complete(endpoint: Endpoint, request: Request) -> Answer:
    """Raises ModelFailed, and nothing else that a provider may cause."""
    if is_offline(endpoint.model):
        response = echo.answer(request.messages)
        return Answer(response, "offline/echo", response["usage"])
    if not endpoint.base_url and not endpoint.key and not _configured(endpoint.model):
        raise ModelFailed(ModelError(None, f"No key for {endpoint.model} is configured.", not_configured=True))
    if endpoint.base_url and not endpoint.trusted:
        _check_address(endpoint)
    try:
        found = _litellm().completion(**_arguments(endpoint, request))
        response = found.model_dump(mode="json")
    except Exception as error:  # litellm raises far more than its own classes
        raise ModelFailed(_read_error(error, endpoint)) from None
    inside = response.get("error")
    if inside and not response.get("choices"):
        raise ModelFailed(ModelError(200, scrub(str(inside), endpoint.key)))
    return Answer(response, str(response.get("model") or ""), response.get("usage"))


def _check_address(endpoint: Endpoint) -> None:
    """An address from a form may not reach into the operator's network. Raises ModelFailed."""
    parts = urlsplit(endpoint.base_url)
    try:
        addresses.resolve(parts.hostname or "", parts.port or 443)
    except (addresses.NotAllowed, OSError, ValueError):
        words = (
            f"The address set for {endpoint.model.partition('/')[0]} is unknown, or neither public nor allowed here."
        )
        raise ModelFailed(ModelError(None, words, not_configured=True)) from None


def _arguments(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": endpoint.model,
        "messages": request.messages,
        "max_tokens": request.max_tokens,
        "timeout": settings.LLM_TIMEOUT,
        "max_retries": 0,
        "num_retries": 0,
        "drop_params": True,  # a model that knows no seed still answers
    }
    if request.temperature is not None:
        arguments["temperature"] = request.temperature
    if request.seed is not None:
        arguments["seed"] = request.seed
    if request.tools:
        arguments["tools"] = request.tools
    if endpoint.base_url:
        # Whatever the provider is called: this address speaks OpenAI's protocol.
        name = endpoint.model.partition("/")[2]
        arguments |= {"model": f"openai/{name}", "api_base": endpoint.base_url, "api_key": endpoint.key or "none"}
    elif endpoint.key:
        arguments["api_key"] = endpoint.key
    return arguments


def _read_error(error: Exception, endpoint: Endpoint) -> ModelError:
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", None) or {}
    message = scrub(str(error), endpoint.key)
    name = type(error).__name__
    if name == "InternalServerError" and "onnection" in message:
        status = None  # nobody answered
    return ModelError(
        status=status if isinstance(status, int) else None,
        message=f"{name}: {message}"[:LONGEST_MESSAGE],
        retry_after=retry_after(headers.get("retry-after"), str(error), datetime.now(UTC)),
        timed_out=name == "Timeout",
    )


def scrub(text: str, key: str = "") -> str:
    """The text without the key in any of its spellings, and without what looks like one."""
    if key:
        encoded = base64.b64encode(key.encode()).decode()
        for spelling in {key, quote(key, safe=""), encoded, encoded.rstrip("=")}:
            text = text.replace(spelling, "[key]")
    return _SECRETS.sub(lambda match: f"{match[1] or match[2] or ''}[key]", text)


@lru_cache(maxsize=1)
def _litellm() -> Any:
    # Before the import, or it fetches its price table from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.cache = None
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def warm_up() -> None:
    """Pays for the import, in the parent of worker processes."""
    _litellm()


@lru_cache(maxsize=200)
def _configured(model: str) -> bool:
    """Whether the provider's usual environment variables are set; a provider nobody knows counts as not."""
    try:
        found = _litellm().validate_environment(model)
    except Exception:
        return False
    return bool(found.get("keys_in_environment"))
