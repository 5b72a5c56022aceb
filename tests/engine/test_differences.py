"""Word by word: both texts can be read from the pieces."""

from hypothesis import given
from hypothesis import strategies as st

from agents.engine.differences import MOST_WORDS, Piece, words

TEXTS = st.text("ab \n\u202e", max_size=60)


@given(TEXTS, TEXTS)
def test_the_pieces_hold_both_texts_whole(first: str, second: str) -> None:
    pieces = words(first, second)
    assert pieces is not None
    assert "".join(piece.text for piece in pieces if piece.kind != "ins") == first
    assert "".join(piece.text for piece in pieces if piece.kind != "del") == second
    assert all(piece.text for piece in pieces)


@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert all(piece.kind == "same" for piece in words(text, text) or ())


def test_only_the_words_that_differ_are_marked() -> None:
    assert words("the old cat sat", "the new cat sat") == (
        Piece("same", "the "),
        Piece("del", "old "),
        Piece("ins", "new "),
        Piece("same", "cat sat"),
    )


def test_a_line_that_is_added_leaves_the_one_before_alone() -> None:
    assert words("settle it.", "settle it.\nBriefly.") == (Piece("same", "settle it."), Piece("ins", "\nBriefly."))


def test_texts_that_are_too_long_are_not_compared() -> None:
    assert words("a " * (MOST_WORDS + 1), "a") is None
    assert words("a " * MOST_WORDS, "b " * MOST_WORDS) is not None
