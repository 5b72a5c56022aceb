"""Hidden characters and look-alike names are said (Y04)."""

import pytest

from marketplace.protocol.events import Event
from marketplace.protocol.hidden import hidden, marked, mixed_scripts
from marketplace.protocol.skills import read_skill
from tests.events import load

HIDDEN = [0x202E, 0x200B, 0xE0041, 0x00AD, 0xFEFF, 0x2066, 0x3164, 0x2800, 0x1B, 0xE000, 0xD800]


@pytest.mark.parametrize("code", HIDDEN)
def test_a_character_nobody_sees_becomes_a_mark(code: int) -> None:
    assert hidden(f"ab{chr(code)}c") == ((2, f"U+{code:04X}"),)
    assert marked(f"ab{chr(code)}c") == f"ab⟦U+{code:04X}⟧c"


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand", "é ü 日本語 пример", "👩‍🚀 ok ❤️", "می‌خواهم", "naïve"])
def test_ordinary_text_stays(text: str) -> None:
    assert marked(text) == text


def test_a_joiner_between_plain_letters_is_hidden() -> None:
    assert [code for _, code in hidden("a\u200db")] == ["U+200D"]


@pytest.mark.parametrize(
    ("name", "scripts"),
    [
        ("spеllcheck", ("Cyrillic", "Latin")),
        ("spellcheck", ()),
        ("проверка", ()),
        ("проверка-check", ()),
        ("οpen", ("Greek", "Latin")),
        ("日本check", ()),
    ],
)
def test_a_word_of_two_alphabets_is_named(name: str, scripts: tuple[str, ...]) -> None:
    assert mixed_scripts(name) == scripts


def test_y04_the_skill_is_flagged_and_unchanged() -> None:
    skill = read_skill(Event.from_dict(load("skills")["hidden_text"]))
    assert skill.description == "Safe\u202e\u200b \U000e0041 skill"
    assert skill.readable
    warnings = {problem.field: problem.message for problem in skill.problems}
    assert "U+202E, U+200B, U+E0041" in warnings["description"]
    assert "Cyrillic and Latin" in warnings["d"]
    assert {problem.level for problem in skill.problems} == {"warning"}
