"""One attempt at one model through litellm.

Retries and fallbacks stay off: there is one retry loop, the engine's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.conf import settings

from agents.engine.fallback import ModelError
from agents.llm import echo, errors
from agents.llm.connecting import direct, guarded
from agents.llm.endpoints import Endpoint, is_offline
from agents.llm.errors import ModelFailed
from agents.llm.library import completion, configured
from agents.llm.streaming import Assembly, Heard


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


def complete(endpoint: Endpoint, request: Request, on_text: Callable[[str], None] | None = None) -> Answer:
    """Raises ModelFailed, and nothing else that a provider may cause.

    With `on_text` the answer is streamed, and the callback gets all of its text each time some more has come.
    """
    if is_offline(endpoint.model):
        response = echo.answer(request.messages)
        return Answer(response, "offline/echo", response["usage"])
    if not endpoint.base_url and not endpoint.key and not configured(endpoint.model):
        raise ModelFailed(ModelError(None, f"No key for {endpoint.model} is configured.", not_configured=True))
    arguments = _arguments(endpoint, request)
    if on_text is not None and endpoint.base_url not in _cannot_stream():
        answer = _streamed(endpoint, arguments, on_text)
        if answer is not None:
            return answer
    return _whole(endpoint, arguments)


def _whole(endpoint: Endpoint, arguments: dict[str, Any]) -> Answer:
    failed = None
    try:
        response = completion(**arguments).model_dump(mode="json")
    except Exception as error:  # litellm raises far more than its own classes
        response = errors.recovered(error) or {}
        failed = None if response else ModelFailed(errors.read(error, endpoint.key))
    if failed is not None:
        raise failed  # outside the handler, so that nothing with a key in it hangs on
    if response.get("error") and not response.get("choices"):
        raise ModelFailed(errors.inside(response["error"], endpoint.key))
    return Answer(response, str(response.get("model") or ""), response.get("usage"))


def _streamed(endpoint: Endpoint, arguments: dict[str, Any], on_text: Callable[[str], None]) -> Answer | None:
    """None where the server does not know streaming, or usage in a stream: it is then asked for the whole."""
    assembly, heard, failed = Assembly(), Heard(()), None
    try:
        stream = completion(**arguments, stream=True, stream_options={"include_usage": True})
        heard = stream.completion_stream = Heard(stream.completion_stream)
        # What a server of OpenAI's protocol sends needs no translation, which takes a millisecond for each piece.
        for piece in heard if endpoint.base_url else stream:
            if assembly.add(piece.model_dump(mode="json", exclude_none=True)):
                on_text("".join(assembly.text))
        if not heard.any:
            failed = ModelFailed(ModelError(None, "The stream ended before it began.", maybe_spent=True))
        elif endpoint.base_url and not heard.finish:
            failed = ModelFailed(ModelError(None, "The stream ended without saying why.", maybe_spent=True))
    except Exception as error:
        failed = ModelFailed(errors.read(error, endpoint.key, began=assembly.began))
    if failed is None:
        response = assembly.response(heard)
        return Answer(response, response["model"], response["usage"])
    if failed.error.status in {400, 422} and "stream" in failed.error.message.lower() and not assembly.began:
        _cannot_stream().add(endpoint.base_url)
        return None
    raise failed


@lru_cache(maxsize=1)
def _cannot_stream() -> set[str]:
    """Addresses that have refused to stream, for as long as this process lives."""
    return set()


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
        client = direct if endpoint.trusted else guarded
        arguments["client"] = client(endpoint.base_url, endpoint.key, settings.LLM_TIMEOUT)
    elif endpoint.key:
        arguments["api_key"] = endpoint.key
    return arguments
