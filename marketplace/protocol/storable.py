"""Text that every database and every JSON reader takes: models, web pages and strangers send other text too."""

import re
from typing import Any

# PostgreSQL stores no NUL, and nothing encodes half of a character.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Asked of every text that comes in, so it walks over none of them in Python."""
    if "\0" in text:
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def storable(value: Any) -> Any:
    """The value with what cannot be stored replaced by the mark for it, however deep it stands."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
