"""litellm itself: imported here and nowhere else, and only when a model is really to be asked."""

import logging
import os
import uuid
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import httpx

from agents.llm import connecting, prices, tokens


@lru_cache(maxsize=1)
def litellm() -> Any:
    # Before the import, or it fetches its price table from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm
    from litellm._service_logger import ServiceLogging

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.cache = None
    # It starts an event loop after each call, to tell those of whom there are none.
    ServiceLogging.service_success_hook = lambda *_, **__: None  # type: ignore[method-assign]
    # What it does to pydantic models when it streams is no news for anybody here.
    warnings.filterwarnings("ignore", message="Accessing the 'model_|Item '.*' on TypedDict class")
    # What they say of a failed call may hold its key; we record the error ourselves.
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def completion(**arguments: Any) -> Any:
    """litellm's own, without its second account of cost and its thread of callbacks: a quarter of its time."""
    record = _record()(
        model=arguments["model"],
        messages=arguments["messages"],
        stream=arguments.get("stream", False),
        call_type="completion",
        start_time=datetime.now(UTC).replace(tzinfo=None),  # it reckons without time zones
        litellm_call_id=str(uuid.uuid4()),
        function_id="",
    )
    with _unlogged():
        return litellm().completion(**arguments, litellm_logging_obj=record)


def _unlogged() -> AbstractContextManager[None]:
    from litellm._internal_context import internal_sub_call

    return internal_sub_call()


@lru_cache(maxsize=1)
def _record() -> Callable[..., Any]:
    litellm()
    from litellm.litellm_core_utils.litellm_logging import Logging

    class Record(Logging):
        """What litellm notes of one call, for nobody: the run's steps are the history and the account."""

        def response_cost_calculator(self, *_: Any, **__: Any) -> None:
            return None

        def success_handler(self, *_: Any, **__: Any) -> None:
            return None

    return Record


def warm_up() -> None:
    """Pays for what a first call would, in the parent of worker processes: imports, tokens, prices and a rehearsal."""
    litellm()
    import openai

    tokens.count("warm")
    prices.entry("gpt-4o-mini")
    answer = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}]}
    connecting.tls(ours=False)
    http: Any = httpx.Client(
        transport=httpx.MockTransport(lambda _: httpx.Response(200, json=answer)), verify=connecting.tls()
    )
    with openai.OpenAI(api_key="none", base_url="http://rehearsal.invalid", http_client=http) as client:
        messages = [{"role": "user", "content": "Ready?"}]
        completion(model="openai/gpt-4o-mini", messages=messages, client=client, max_retries=0, num_retries=0)


@lru_cache(maxsize=200)
def configured(model: str) -> bool:
    """Whether the provider's usual environment variables are set; a provider nobody knows counts as not."""
    try:
        found = litellm().validate_environment(model)
    except Exception:
        return False
    return bool(found.get("keys_in_environment"))
