"""Characters a reader does not see and names that look like others: shown, never silently removed."""

import re
import unicodedata

# Letters and symbols that are drawn as nothing; the rest is known by its Unicode category.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\uffa0")
_JOINERS = frozenset("\u200c\u200d")  # have a use inside emoji and some scripts
_UNUSUAL = re.compile(r"[^\n\r\t -~]")
_LOOKALIKE_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


def hidden(text: str) -> tuple[tuple[int, str], ...]:
    """Place and code point (`U+202E`) of each character that would not be seen."""
    if text.isascii() and text.replace("\n", " ").isprintable():
        return ()  # most texts, and several times faster than the search
    places = (found.start() for found in _UNUSUAL.finditer(text))
    return tuple((at, f"U+{ord(text[at]):04X}") for at in places if _is_hidden(text, at))


def marked(text: str) -> str:
    """The text with each hidden character replaced by a mark such as ⟦U+202E⟧."""
    places = dict(hidden(text))
    if not places:
        return text
    return "".join(f"⟦{places[at]}⟧" if at in places else character for at, character in enumerate(text))


def mixed_scripts(text: str) -> tuple[str, ...]:
    """The scripts of one word that mixes look-alike alphabets (`spеllcheck` with a Cyrillic е), else ()."""
    if text.isascii():
        return ()
    word = set[str]()
    for character in text + " ":
        if character.isalpha():
            name = unicodedata.name(character, "").partition(" ")[0]
            if name in _LOOKALIKE_SCRIPTS:
                word.add(name)
        elif not unicodedata.combining(character):
            if len(word) > 1:
                return tuple(sorted(script.capitalize() for script in word))
            word.clear()
    return ()


def _is_hidden(text: str, at: int) -> bool:
    character = text[at]
    if character in _JOINERS:
        before = text[at - 1] if at else ""
        return not before or before.isascii() or unicodedata.category(before) not in {"Lo", "So", "Sk", "Mn", "Mc"}
    if 0xE0020 <= ord(character) <= 0xE007F:  # flags of regions end in these, hidden orders too
        return True
    return character in _BLANK or unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs"}
