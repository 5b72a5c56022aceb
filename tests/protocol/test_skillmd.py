"""SKILL.md: nothing is dropped in silence, and no right is gained by accident (S01, S03)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skillmd import from_spec, read_skillmd, to_spec
from marketplace.protocol.skills import SkillSpec, problems_of

DEMO = "---\nname: demo\ndescription: d\n---\nBody"


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + DEMO.replace("\n", "\r\n").encode(),
        DEMO.replace("---\n", "--- \n", 1).encode(),
        DEMO.replace("---\n", "---\t\n").encode(),
        DEMO.replace("\n", "\r").encode(),
        (DEMO + "\n").encode(),
        DEMO.encode(),
    ],
)
def test_s01_marks_line_ends_and_spaces_load_alike(data: bytes) -> None:
    file = read_skillmd(data, "demo")
    assert (file.name, file.description, file.body, file.problems) == ("demo", "d", "Body", ())


def test_s01_a_mark_inside_the_body_stays() -> None:
    assert read_skillmd(DEMO + "\ufeff!").body == "Body\ufeff!"


def test_s03_a_colon_in_the_description_keeps_the_text_and_the_limit() -> None:
    file = read_skillmd("---\nname: x\ndescription: Use when: the user asks\nallowed-tools: Read\n---\n")
    assert file.usable
    assert file.description == "Use when: the user asks"
    assert file.tools == ("Read",)
    assert [(problem.level, problem.message[:7]) for problem in file.problems] == [("warning", "line 3:")]


def test_s03_what_stands_under_a_key_is_kept_where_another_line_is_broken() -> None:
    front = "name: x\ndescription: Use when: asked\nargument-hint: [a] - e.g. \"x\"\nmetadata:\n  author: Ada: L\n  v: 'it''s'\n"
    file = read_skillmd(f"---\n{front}allowed-tools: [Read\n---\n")
    assert file.usable and file.description == "Use when: asked" and file.tools == ("Read",)
    assert file.fields["metadata"] == {"author": "Ada: L", "v": "it's"}
    assert [problem.message.split(" ")[1] for problem in file.problems] == ["3:", "4:", "6:", "8:"]


def test_s03_brackets_before_text() -> None:
    front = 'name: x\ndescription: >\n  one\n  two\nargument-hint: [action] - e.g. "x"\nallowed-tools:\n  - Read\n'
    file = read_skillmd(f"---\n{front}---\n")
    assert file.usable
    assert file.description == "one two"
    assert file.tools == ("Read",)
    assert dict(file.extra)["argument-hint"] == '[action] - e.g. "x"'


@pytest.mark.parametrize(
    ("line", "tools"),
    [
        ("allowed-tools: Read, Write", ("Read", "Write")),
        ("allowed-tools: Read Write Read", ("Read", "Write")),
        ("allowed-tools: [Read, Write]", ("Read", "Write")),
        ('allowed-tools: ""', ()),
        ("allowed-tools:", ()),
        ("allowed-tools: {a: b}", ()),
        ("allowed-tools: [[Read]]", ()),
        ("other: x", None),
    ],
)
def test_tools_are_never_wider_than_written(line: str, tools: tuple[str, ...] | None) -> None:
    file = read_skillmd(f"---\nname: x\ndescription: d\n{line}\n---\nb")
    assert file.tools == tools
    assert to_spec(file).tools == (True if tools is None else tools)


@pytest.mark.parametrize("value", ["no", "1.10", "0123", "2026-03-29", "12:30:00", "null", "~", "*bold* text", "a &b"])
def test_values_stay_the_text_they_are(value: str) -> None:
    assert read_skillmd(f"---\nname: x\ndescription: see {value}\nowner: {value.replace('*', '')}\n---\n").usable
    assert dict(read_skillmd(f"---\nname: x\ndescription: d\nowner: x{value}\n---\n").extra)["owner"] == f"x{value}"
    if value[0] not in "*~":
        assert dict(read_skillmd(f"---\nname: x\ndescription: d\nowner: {value}\n---\n").extra)["owner"] == value


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "does not start"),
        ("# Title\n", "does not start"),
        ("---\nname: x\n", "never closed"),
        ("---\n- a\n---\n", "not a list of fields"),
        ("---\nname: x\n---\n", "description is missing"),
        (f"---\nname: x\ndescription: {'y' * 1_025}\n---\n", "longer than"),
        ("---\nname: a--b\ndescription: d\n---\n", "not a name"),
        ("---\nname: -a\ndescription: d\n---\n", "not a name"),
        ("---\nname: /var/secret\ndescription: d\n---\n", "not a name"),
        (f"---\nname: {'a' * 65}\ndescription: d\n---\n", "not a name"),
    ],
)
def test_an_unusable_file_says_why(text: str, word: str) -> None:
    file = read_skillmd(text, "x")
    assert not file.usable
    assert word in " ".join(problem.message for problem in file.problems)
    with pytest.raises(ValueError, match=word):
        to_spec(file)


def test_the_folder_names_a_file_without_a_name_and_a_difference_is_said() -> None:
    assert read_skillmd("---\ndescription: d\n---\n", "best").name == "best"
    file = read_skillmd("---\nname: acme-best\ndescription: d\n---\n", "best")
    assert (file.name, file.usable) == ("acme-best", True)
    assert file.problems[0].level == "warning"


def test_aliases_do_not_grow_a_small_file() -> None:
    bomb = "a: &a [x,x]\n" + "".join(f"k{at}: &k{at} [*a,*a,*a,*a]\n" for at in range(30))
    file = read_skillmd(f"---\nname: x\ndescription: d\n{bomb}---\n")
    assert file.usable
    assert sum(len(text) for _, text in file.extra) < 2_000


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=30)


@settings(max_examples=40)
@given(TEXT, TEXT, TEXT, st.sampled_from(["", "inject", "full"]), st.sampled_from([None, False, ("a", "b_c")]))
def test_what_is_exported_reads_back(
    description: str, version: str, body: str, mode: str | None, tools: object
) -> None:
    spec = SkillSpec(
        "my-skill",
        description=description,
        template=f"# {body}\n\n---\n{{{{message}}}}",
        context_mode=mode or None,
        params=RunParams(tools=tools),  # type: ignore[arg-type]
        license=description,
        version=version,
        generation="A" if mode or tools is not None else "B",
    )
    file = read_skillmd(from_spec(spec), "my-skill")
    assert file.problems == ()
    back = to_spec(file)
    assert (back.d, back.description, back.template, back.license, back.version) == (
        spec.d,
        spec.description,
        spec.template,
        spec.license,
        spec.version,
    )
    assert back.tools == spec.tools
    assert back.rule == spec.rule
    assert problems_of(back) == ()


@settings(max_examples=40)
@given(st.binary(max_size=80))
def test_nothing_is_raised_whatever_the_bytes(data: bytes) -> None:
    read_skillmd(data)
    read_skillmd(b"---\n" + data + b"\n---\nbody")
