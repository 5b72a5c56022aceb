"""docs/protocol.md and the code say the same."""

import json
import re
from pathlib import Path

import pytest

from marketplace.protocol import checks, filters, skills, vocabulary
from marketplace.protocol.triggers import KINDS, read_trigger, tag_names
from tests.events import A

TEXT = (Path(__file__).parent.parent.parent / "docs" / "protocol.md").read_text("utf-8")
EXAMPLES = [
    json.loads(block.replace("<64 lower-case hex>", A)) for block in re.findall(r"```json\n(.*?)```", TEXT, re.S)
]


@pytest.mark.parametrize(
    "name",
    sorted(
        {*vocabulary.VARIABLES, *vocabulary.CONTEXT_MODES, *vocabulary.ACTIONS}
        | {name for kind in KINDS for name in tag_names(kind)}
        | {f"{{{name}}}" for name in vocabulary.PLACEHOLDERS}
        | filters.KEY_PLACEHOLDERS
    ),
)
def test_every_name_of_the_protocol_is_documented(name: str) -> None:
    assert re.search(rf"[`\"\[ ]{re.escape(name)}[`\": ]", TEXT), name


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_each_trigger_kind_works(kind: str) -> None:
    (tags,) = [example for example in EXAMPLES if example[0] == ["trigger", kind]]
    found = read_trigger([tuple(tag) for tag in tags])
    assert found is not None
    assert found.usable
    assert found.problems == ()
    assert f"### `{kind}`" in TEXT


@pytest.mark.parametrize(
    "number", [checks.MAX_BYTES, checks.MAX_TAGS, checks.FUTURE_SECONDS, skills.MAX_D_BYTES, filters.MAX_VALUES]
)
def test_every_limit_is_documented(number: int) -> None:
    assert f"{number:,}" in TEXT
