"""Counting tokens with the encoding that litellm ships: an estimate for other families of models."""

import ctypes
import gc
import os
from functools import lru_cache
from typing import Any

from agents.llm.prices import package_folder

PIECE = 4_000  # characters; one long run without spaces would cost quadratic time


@lru_cache(maxsize=1)
def _encoding() -> Any:
    # The file lies in the package; without this tiktoken would fetch it.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(package_folder() / "litellm_core_utils" / "tokenizers")
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    # Only for decoding single tokens; 18 MB that every web process would keep.
    encoding._mergeable_ranks = {}
    _give_back()
    return encoding


def _give_back() -> None:
    """Hands memory freed while loading back to the system, where the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@lru_cache(maxsize=256)
def count(text: str) -> int:
    """Tokens of the text; a few too many where a piece ends inside a word."""
    encode = _encoding().encode_ordinary
    return sum(len(encode(text[start : start + PIECE])) for start in range(0, len(text), PIECE))
