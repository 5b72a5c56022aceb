"""The door to models: one call in, an answer or a classified error out.

ModelFailed    one attempt failed; `.error` is the engine's ModelError, without secrets
"""

from agents.llm.attempts import Answer, Request, complete
from agents.llm.endpoints import Endpoint, endpoint_for, is_offline
from agents.llm.errors import ModelFailed
from agents.llm.library import warm_up
from agents.llm.prices import Sizes, price_of, sizes_of
from agents.llm.terms import Terms
from agents.llm.tokens import count

__all__ = [
    "Answer",
    "Endpoint",
    "ModelFailed",
    "Request",
    "Sizes",
    "Terms",
    "complete",
    "count",
    "endpoint_for",
    "is_offline",
    "price_of",
    "sizes_of",
    "warm_up",
]
