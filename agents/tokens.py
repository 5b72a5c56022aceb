"""Counting tokens with the encoding file that litellm ships, loaded at first use and without importing litellm."""

import os
import threading
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PIECE = 20_000  # characters; tiktoken is slow on long texts without a space
_lock = threading.Lock()


def count(text: str) -> int:
    """Tokens of a text by cl100k, a close estimate for other models' own encodings."""
    encoding = _encoding()
    return sum(len(encoding.encode_ordinary(text[at : at + PIECE])) for at in range(0, len(text), PIECE))


def _encoding() -> Any:
    with _lock:  # the first request loads it, the others of that moment wait
        return _load()


@lru_cache(maxsize=1)
def _load() -> Any:
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("litellm is not installed, and its encoding file is what tokens are counted with")
    # tiktoken reads a file of this folder instead of downloading; litellm itself sets the same.
    folder = Path(next(iter(spec.submodule_search_locations))) / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    return tiktoken.get_encoding("cl100k_base")
