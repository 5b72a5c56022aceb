"""What one text has that another has not, word by word."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

MOST_WORDS = 5_000  # of each text; beyond, comparing costs more than reading
_WORD = re.compile(r"\S+ ?|\s")  # with the space behind it, so that spaces alone match nothing


@dataclass(frozen=True, slots=True)
class Piece:
    """kind: same, ins (only in the second), del (only in the first)."""

    kind: str
    text: str


def words(first: str, second: str) -> tuple[Piece, ...] | None:
    """Pieces that give the first text without `ins`, the second without `del`; None where they are too long."""
    a, b = _WORD.findall(first), _WORD.findall(second)
    if max(len(a), len(b)) > MOST_WORDS:
        return None
    pieces = []
    # Whole tokens are compared; words that are very common anchor nothing, which bounds the work.
    for tag, a_from, a_to, b_from, b_to in SequenceMatcher(None, a, b).get_opcodes():
        if tag == "equal":
            pieces.append(Piece("same", "".join(a[a_from:a_to])))
            continue
        if a_to > a_from:
            pieces.append(Piece("del", "".join(a[a_from:a_to])))
        if b_to > b_from:
            pieces.append(Piece("ins", "".join(b[b_from:b_to])))
    return tuple(pieces)
