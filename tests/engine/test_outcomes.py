"""Every shape of answer ends in a defined outcome."""

import pytest

from agents.engine.outcomes import read


def answer(message, finish="stop", **rest):
    return {"choices": [{"message": message, "finish_reason": finish}], **rest}


def call(arguments, call_id="c1", name="f"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asking(*calls, finish="tool_calls", **rest):
    return answer({"content": None, "tool_calls": list(calls)}, finish, **rest)


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (answer({"content": "hi"}), "text"),
        (answer({"content": [{"type": "text", "text": "hi"}]}), "text"),
        (answer({"content": ""}), "empty"),
        (answer({"content": "  \n"}), "empty"),
        (answer({"content": None}), "empty"),
        (answer({}), "empty"),
        (answer(None), "empty"),
        ({"choices": []}, "empty"),
        ({"choices": None}, "empty"),
        ({"choices": [None]}, "empty"),
        ({}, "empty"),
        (None, "empty"),
        ("text", "empty"),
        (answer(None, "content_filter: PROHIBITED_CONTENT"), "filtered"),
        (answer({"content": "par"}, "content_filter"), "filtered"),
        (answer({"content": None, "refusal": "I cannot help with that."}), "text"),
        (answer({"content": "half a sen"}, "length"), "truncated"),
        (answer({"content": None}, "length"), "truncated"),
        (asking(call("{}")), "calls"),
        (asking(call('{"content":"Hello wor'), finish="length"), "truncated"),
        (asking(call('{"content":"Hello wor')), "truncated"),
        (asking(call('{"pubkey":"ab"}'), finish="length"), "truncated"),
        (asking(call("{}"), finish="stop"), "calls"),
    ],
)
def test_the_kind_of_an_answer(response, kind):
    assert read(response).kind == kind


def test_an_answer_at_its_limit_is_cut_whatever_a_router_says():
    cut = asking(call('{"a":1}'), usage={"completion_tokens": 100})
    assert read(cut, max_tokens=100).kind == "truncated"
    assert read(cut, max_tokens=101).kind == "calls"


@pytest.mark.parametrize("raw", ["", "null", None, "  "])
def test_no_arguments_are_no_arguments(raw):
    (found,) = read(asking(call(raw))).calls
    assert (found.arguments, found.problem) == ({}, "")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("[]", "not a JSON object"),
        ('"x"', "not a JSON object"),
        ('{"a":1,"a":2}', "twice"),
        ('{"a":NaN}', "NaN"),
        ('{"a": tru}', "not JSON"),
        ('{"a":' * 40 + "1" + "}" * 40, "too deeply"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "too deeply"),
        ('{"a":"' + "x" * 300_000 + '"}', "longer than"),
    ],
)
def test_arguments_that_cannot_be_used_say_why(raw, words):
    (found,) = read(asking(call(raw))).calls
    assert words in found.problem


def test_parallel_calls_keep_their_order_and_a_repeated_id_is_refused():
    first, second, third = read(asking(call("{}", "a"), call("{}", "b"), call("{}", "a"))).calls
    assert (first.problem, second.problem) == ("", "")
    assert third.id != "a"
    assert "already used" in third.problem


@pytest.mark.parametrize("row", [None, {}, {"function": None}, {"id": 5, "function": {"name": 3, "arguments": 4}}, "x"])
def test_a_call_of_any_shape_is_read(row):
    (found,) = read(answer({"tool_calls": [row]})).calls
    assert found.id
    assert found.problem


def test_a_filter_is_known_by_the_providers_own_word():
    filtered = answer(None)
    filtered["choices"][0]["provider_specific_fields"] = {"native_finish_reason": "content_filter: PROHIBITED_CONTENT"}
    assert read(filtered).kind == "filtered"


def test_a_call_that_is_cut_off_says_so_and_holds_no_arguments():
    for found in read(asking(call('{"pubkey":"ab"}'), finish="length")).calls:
        assert (found.arguments, found.cut) == ({}, True)
        assert found.problem.startswith("cut off")
