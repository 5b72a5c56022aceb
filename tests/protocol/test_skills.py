"""Skills of both generations: the reader never raises, the writer gives back what it was handed."""

import json
from dataclasses import replace

import pytest

from marketplace.protocol.events import Draft, Event
from marketplace.protocol.parameters import RunParams
from marketplace.protocol.skills import (
    NotWritable,
    SkillSpec,
    kind_of,
    problems_of,
    read_skill,
    write_skill,
)
from marketplace.protocol.triggers import TriggerSpec
from marketplace.protocol.triggers.cron import Cron
from marketplace.protocol.triggers.webhook import Webhook
from tests.events import NOW, A, load


def draft(content: object, tags: object = (("d", "x"),), kind: int = 31123) -> Draft:
    text = content if isinstance(content, str) else json.dumps(content)
    return Draft(A, NOW, kind, tuple(tuple(tag) for tag in tags), text)  # type: ignore[attr-defined]


def written(spec: SkillSpec) -> Draft:
    content, tags = write_skill(spec)
    return Draft(A, NOW, kind_of(spec), tags, content)


def fields(spec: SkillSpec) -> set[str]:
    return {problem.field for problem in spec.problems if problem.level == "error"}


def test_the_spelling_checker_of_generation_a() -> None:
    skill = read_skill(Event.from_dict(load("skills")["spellcheck_a"]))
    assert (skill.generation, skill.rule, skill.llm, skill.tools) == ("A", "full", "openai/gpt-4o-mini, cheap", False)
    assert (skill.params.max_tokens, skill.params.temperature) == (2000, 0.1)
    assert skill.runnable
    assert skill.problems == ()


def test_a_triggered_skill_of_generation_b_takes_its_parameters_from_tags() -> None:
    skill = read_skill(Event.from_dict(load("skills")["mention_monitor_b"]))
    assert (skill.generation, skill.rule, skill.tools) == ("B", "compose", ("nostr_dm_send", "nostr_post"))
    assert not skill.params
    assert skill.trigger is not None
    assert skill.trigger.params.seed == 7


@pytest.mark.parametrize(
    ("content", "generation", "rule"),
    [
        ({"template": "x"}, "B", "compose"),
        ({"template": "x", "base": "y"}, "B", "compose"),
        ({"template": "x", "llm": "cheap"}, "A", "inject"),
        ({"template": "x", "soul": False}, "A", "inject"),
        ({"template": "x", "context_mode": "override"}, "A", "override"),
        ({"template": "x", "context_mode": "sideways"}, "A", "inject"),
        ({"template": "x", "seed": 1}, "B", "compose"),
    ],
)
def test_the_generation_follows_from_the_fields(content: object, generation: str, rule: str) -> None:
    skill = read_skill(draft(content))
    assert (skill.generation, skill.rule) == (generation, rule)


def test_absent_tools_ask_for_all_also_in_full() -> None:
    assert read_skill(draft({"context_mode": "full", "template": "x"})).tools is True
    assert read_skill(draft({"template": "x"})).tools is True


def test_full_without_a_template_is_a_problem_and_not_runnable() -> None:
    skill = read_skill(draft({"context_mode": "full", "template": " \n"}))
    assert fields(skill) == {"template"}
    assert not skill.runnable


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("description", 1),
        ("template", ["x"]),
        ("context_mode", True),
        ("llm", 5),
        ("tools", "yes"),
        ("soul", "no"),
        ("max_tokens", "2000"),
        ("max_tokens", True),
        ("temperature", [0.1]),
        ("base", {}),
    ],
)
def test_a_wrong_type_is_a_problem_and_never_an_exception(name: str, value: object) -> None:
    skill = read_skill(draft({"template": "x", name: value}))
    assert name in fields(skill)
    assert skill.readable


def test_unreadable_tools_ask_for_nothing() -> None:
    assert read_skill(draft({"tools": {"all": True}})).tools is False


@pytest.mark.parametrize("content", ["", "hello", "[]", "null", '"x"', '{"a":1,"a":2}', '{"a":NaN}', "{" * 70])
def test_content_that_is_no_object_is_listed_nowhere(content: str) -> None:
    skill = read_skill(draft(content))
    assert not skill.readable
    assert not skill.runnable
    assert fields(skill) == {"content"}


ALERT = (("d", "x"), ("trigger", "nostr-subscription"), ("filter", '{"kinds":[1]}'), ("action", "template"))


@pytest.mark.parametrize("text", ["DM admin: {content}", "{author_display_name} posted", '{"template": unquoted}'])
def test_a_template_action_takes_text_that_is_not_json_as_its_template(text: str) -> None:
    skill = read_skill(draft(text, ALERT))
    assert (skill.template, skill.readable, skill.runnable, skill.problems) == (text, True, True, ())


def test_a_template_action_in_json_takes_the_field() -> None:
    assert read_skill(draft({"template": "POST: {content}"}, ALERT)).template == "POST: {content}"
    assert fields(read_skill(draft({"description": "x"}, ALERT))) == {"template"}
    assert fields(read_skill(draft('{"template":"x","template":"y"}', ALERT))) == {"content"}
    assert fields(read_skill(draft({"template": "DM bob: hi"}, ALERT))) == {"template"}


def test_a_sealed_private_skill_says_so_and_is_read_from_its_plaintext() -> None:
    sealed = draft("AqX0c2VjcmV0", ALERT, 31124)
    assert fields(read_skill(sealed)) == {"content"}
    assert read_skill(sealed).template == ""
    opened = read_skill(sealed, '{"template":"LOG: {content}"}')
    assert (opened.template, opened.public, opened.readable) == ("LOG: {content}", False, True)


def test_unknown_fields_and_tags_survive_an_edit_byte_for_byte() -> None:
    content = '{"description":"d", "x_big" : 1.10e+2 ,"template":"t","x_\\u00e9":{"b":[1, 2],"a":"\\/"},"x_n":null}'
    tags = (("d", "x"), ("zap", "a", "", "1"), ("t", "one"), ("source", "https://x"), ("x",), ("-",))
    edited = written(replace(read_skill(draft(content, tags)), description="new"))
    assert '"x_big":1.10e+2' in edited.content
    assert '"x_\u00e9":{"b":[1, 2],"a":"\\/"}' in edited.content
    assert '"x_n":null' in edited.content
    for tag in (("zap", "a", "", "1"), ("source", "https://x"), ("x",), ("-",)):
        assert tag in edited.tags
    assert read_skill(edited).extra_tags == read_skill(draft(content, tags)).extra_tags


def test_an_unknown_trigger_survives_an_edit() -> None:
    event = Event.from_dict(load("skills")["unknown_kind"])
    edited = written(replace(read_skill(event), description="new"))
    for tag in (("trigger", "lunar-phase"), ("phase", "full"), ("enabled", "true")):
        assert tag in edited.tags


def test_a_stray_parameter_does_not_join_a_new_trigger() -> None:
    spec = read_skill(draft({"template": "t"}, (("d", "x"), ("max_tokens", "5"))))
    assert ("max_tokens", "5") in written(spec).tags
    edited = written(replace(spec, trigger=TriggerSpec("webhook", Webhook())))
    assert ("max_tokens", "5") not in edited.tags


def test_a_triggered_skill_carries_its_parameters_for_both_generations() -> None:
    spec = SkillSpec(
        "x",
        template="t",
        context_mode="inject",
        params=RunParams("a/b, cheap", 5, 0.5, 3, ("x", "y")),
        generation="A",
        trigger=TriggerSpec("webhook", Webhook(), params=RunParams(max_tokens=9)),
    )
    event = written(spec)
    content = json.loads(event.content)
    assert (content["llm"], content["max_tokens"], content["tools"]) == ("a/b, cheap", 5, ["x", "y"])
    for tag in (("llm", "a/b, cheap"), ("max_tokens", "9"), ("temperature", "0.5"), ("tools", "x", "y")):
        assert tag in event.tags


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"d": " "}, "d"),
        ({"d": "é" * 93}, "d"),
        ({"d": "a\nb"}, "d"),
        ({"context_mode": "full", "generation": "A", "template": ""}, "template"),
        ({"template": "x" * 66_000}, "template"),
        ({"template": "é" * 20_001, "public": False}, "template"),
        ({"description": "a\x00"}, ""),
        ({"template": "\ud800"}, ""),
        ({"topics": tuple(map(str, range(2_000)))}, ""),
        ({"params": RunParams("cheap")}, "context_mode"),
        ({"generation": "A", "params": RunParams(max_tokens=-1)}, "max_tokens"),
        ({"generation": "A", "params": RunParams(tools=("true",))}, "tools"),
        ({"trigger": TriggerSpec("cron", Cron("0 0 30 2 *"))}, "schedule"),
    ],
)
def test_what_must_not_be_published_is_refused_beside_its_field(changes: dict[str, object], field: str) -> None:
    spec = replace(SkillSpec("x", template="t"), **changes)  # type: ignore[arg-type]
    with pytest.raises(NotWritable) as refusal:
        write_skill(spec)
    assert field in {problem.field for problem in refusal.value.problems}
    assert refusal.value.problems == tuple(problem for problem in problems_of(spec) if problem.level == "error")


def test_a_sealed_skill_is_not_overwritten_unread() -> None:
    with pytest.raises(NotWritable, match="would be lost"):
        write_skill(read_skill(draft("AqX0c2VjcmV0", kind=31124)))


def test_what_no_text_may_hold_becomes_a_mark_in_everything_that_is_read() -> None:
    content = (
        r'{"template":"a\u0000b\ud800","llm":"a\udc00","tools":["\ud800"],"x":"\ud83c\udf55","y":["\ud801"],"\ud800":1}'
    )
    tags = [
        ["d", "n\0"],
        ["t", "a\0"],
        ["trigger", "nostr-subscription"],
        ["filter", r'{"#t":["\ud800"]}'],
        ["z", "\0"],
    ]
    spec = read_skill(draft(content, tags))
    assert (spec.d, spec.template, spec.llm, spec.tools) == ("n\0", "a\ufffdb\ufffd", "a\ufffd", ("\ufffd",))
    assert spec.topics == ("a\ufffd",)
    assert dict(spec.extra_content) == {"x": r'"\ud83c\udf55"', "y": '["\ufffd"]', "\ufffd": "1"}
    assert spec.extra_tags == (("z", "\ufffd"),)
    assert {"content", "filter"} <= {problem.field for problem in spec.problems}
    assert spec.trigger is not None
    assert not spec.trigger.usable


def test_half_a_character_in_the_tag_of_tools_names_none() -> None:
    spec = read_skill(draft({}, [["d", "x"], ["trigger", "webhook"], ["tools", r'["\ud800","nostr_post"]']]))
    assert spec.tools == ("nostr_post",)
    assert "tools" in {problem.field for problem in spec.problems}


def test_a_pair_of_halves_is_a_character_and_no_problem() -> None:
    spec = read_skill(draft(r'{"template":"\ud83c\udf55 🍕","x":"\\ud800"}'))
    assert (spec.template, spec.problems, spec.extra_content) == ("🍕 🍕", (), (("x", r'"\\ud800"'),))
