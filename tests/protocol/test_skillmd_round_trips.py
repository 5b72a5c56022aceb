"""Any skill leaves as SKILL.md and comes back whole; the reference validator takes what leaves."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import skills_ref
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marketplace.protocol.events import Draft
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skillmd import from_spec, read_skillmd, to_spec
from marketplace.protocol.skills import NotWritable, SkillSpec, normalised, read_skill, write_skill
from tests.events import NOW, A
from tests.protocol.test_skill_round_trips import SPECS

SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # of a busy machine
ODD = st.text(max_size=60) | st.text("-: #&*'\"\\[]{}|>\r\n\t\0\x85\u2028\ufeff\ud800a", max_size=30)
NAMES = st.text(st.characters(categories=["L", "N"]) | st.sampled_from("-_ .#A"), min_size=1, max_size=90)


def back(spec: SkillSpec) -> SkillSpec:
    file = read_skillmd(from_spec(spec))
    assert file.problems == ()
    found = to_spec(file)
    assert found.problems == ()
    return found


def valid(folder: Path, text: str) -> list[str]:
    """What the reference validator says of the file in a folder of its name."""
    place = folder / read_skillmd(text).name
    place.mkdir(exist_ok=True)
    (place / "SKILL.md").write_bytes(text.encode())
    return skills_ref.validate(place)


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(SPECS)
def test_every_field_comes_back(spec: SkillSpec) -> None:
    try:
        content = write_skill(spec)
    except NotWritable:
        return
    found = back(spec)
    assert write_skill(found) == content
    assert found == replace(normalised(spec), generation=found.generation)


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(ODD, ODD, ODD, NAMES)
def test_texts_come_back_whatever_they_hold(description: str, template: str, version: str, d: str) -> None:
    spec = SkillSpec(d, description=description, template=template, version=version, license=version, base=template)
    found = back(spec)
    assert (found.d, found.description, found.template, found.base) == (d, description, template, template)
    assert (found.version, found.license) == (version, version)


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(ODD, ODD, NAMES, SPECS)
def test_the_reference_validator_takes_every_export(
    tmp_path: Path, description: str, template: str, d: str, other: SkillSpec
) -> None:
    spec = replace(other, d=d, description=description, template=template, license=description)
    text = from_spec(spec).encode()  # no half characters, whatever the skill holds
    assert valid(tmp_path, text.decode()) == []


FULL = {
    "description": "Watches *notes*: all --- of them",
    "context_mode": "full",
    "llm": "openai/gpt-4o-mini, cheap",
    "max_tokens": 400,
    "temperature": 0.5,
    "seed": 7,
    "tools": ["nostr_post"],
    "soul": False,
    "template": "system:\nBe brief.\n\n---\nuser:\n{{triggering_event}}\n\n",
    "base": "x",
    "unknown": {"kept": [1.50, "é"]},
}
TAGS = [
    ["d", "Watch Notes!"],
    ["scope", "public"],
    ["trigger", "nostr-subscription"],
    ["filter", '{"kinds":[1],"#t":["nostr"]}'],
    ["temperature", "0.2"],
    ["t", "a, b"],
    ["license", "MIT"],
    ["version", "1.10"],
    ["x-odd", "1", ""],
]


def test_an_event_with_everything_comes_back_and_reads_well(tmp_path: Path) -> None:
    content = json.dumps(FULL)
    spec = read_skill(Draft(A, NOW, 31123, tuple(map(tuple, TAGS)), content))  # type: ignore[arg-type]
    text = from_spec(spec)
    assert valid(tmp_path, text) == []
    assert write_skill(back(spec)) == write_skill(spec)
    assert text.startswith(
        '---\nname: watch-notes\ndescription: "Watches *notes*: all -\\x2d- of them"\nlicense: MIT\n'
    )
    for line in (
        "allowed-tools: nostr_post",
        "  version: '1.10'",
        "  didactyl-name: Watch Notes!",
        "  didactyl-context-mode: full",
        "  didactyl-llm: openai/gpt-4o-mini, cheap",
        "  didactyl-max-tokens: '400'",
    ):
        assert f"\n{line}\n" in text, text
    assert '"unknown":{"kept": [1.5, "\\u00e9"]}' in text


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("name: watch-notes", "name: other", "d", "other"),
        ("description: ", "description: Now ", "description", None),
        ("Be brief.", "Be long.", "template", None),
        ("allowed-tools: nostr_post", "allowed-tools: true", "tools", ("true",)),
        ("allowed-tools: nostr_post\n", "allowed-tools: ''\n", "tools", ()),
    ],
)
def test_an_edit_of_what_the_format_shows_wins(old: str, new: str, field: str, value: object) -> None:
    content = json.dumps({**FULL, "description": "d\n" * 3})
    spec = read_skill(Draft(A, NOW, 31123, tuple(map(tuple, TAGS)), content))  # type: ignore[arg-type]
    text = from_spec(spec)
    assert old in text
    found = getattr(to_spec(read_skillmd(text.replace(old, new, 1))), field)
    assert found != getattr(spec, field)
    assert value is None or found == value


FOREIGN = """---
name: best
description: Use when asked
compatibility: Requires git
argument-hint: "[action]"
disable-model-invocation: true
hooks:
  - a: [b, c]
metadata:
  author: Ada
  version: "2.0"
  nested:
    deep: "1"
---
Do it.
"""


def test_keys_of_others_stay_with_the_skill(tmp_path: Path) -> None:
    file = read_skillmd(FOREIGN, "best")
    assert not file.by_model
    spec = to_spec(file)
    assert (spec.rule, spec.tools, spec.version, spec.params) == ("compose", True, "2.0", RunParams())
    content, tags = write_skill(spec)
    published = read_skill(Draft(A, NOW, 31123, tags, content))
    text = from_spec(published)
    assert valid(tmp_path, text) == []
    again = read_skillmd(text, "best")
    assert again.fields["compatibility"] == "Requires git"
    assert again.fields["metadata"]["author"] == "Ada"
    assert to_spec(again) == spec
    assert write_skill(to_spec(again)) == (content, tags)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers() | st.none(), max_size=4))
def test_metadata_of_any_shape_is_read_without_harm(values: dict[str, object]) -> None:
    text = from_spec(SkillSpec("x", description="d", template="b"))
    for key in ("params", "trigger", "tags", "content", "tools", "seed", "topics", "front-matter", "name", "soul"):
        line = json.dumps(json.dumps(values, ensure_ascii=True))
        file = read_skillmd(text.replace("---\n\n", f"metadata:\n  didactyl-{key}: {line}\n---\n\n", 1))
        assert file.usable
        spec = to_spec(file)
        assert spec.template == "b"
