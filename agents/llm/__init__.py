"""The door to models: one call in, an answer or a classified error out.

ModelFailed    one attempt failed; `.error` is the engine's ModelError, without secrets
"""

from agents.llm.attempts import Answer, ModelFailed, Request, complete, warm_up
from agents.llm.endpoints import Endpoint, endpoint_for, is_offline
from agents.llm.prices import price_of, window_of
from agents.llm.tokens import count

__all__ = [
    "Answer",
    "Endpoint",
    "ModelFailed",
    "Request",
    "complete",
    "count",
    "endpoint_for",
    "is_offline",
    "price_of",
    "warm_up",
    "window_of",
]
