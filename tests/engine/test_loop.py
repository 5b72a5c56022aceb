"""The loop: every call id gets exactly one reply, in order."""

from agents.engine.loop import End, ToolProblem, Turn, run
from agents.engine.outcomes import Call, Outcome


def play(outcomes, call=lambda asked, turn: f"did {asked.name}", max_turns=12):
    script, sent = iter(outcomes), []

    def complete(messages, turn, larger):
        sent.append(([dict(m) for m in messages], larger))
        return next(script)

    return list(run([{"role": "user", "content": "go"}], complete, call, max_turns)), sent


def asks(*calls):
    return Outcome("calls", "", calls)


def test_text_ends_it():
    happened, _ = play([Outcome("text", "done")])
    assert happened[-1] == End("succeeded", "", "", "done")


def test_calls_are_replied_to_in_order_and_the_model_sees_them():
    a, b = Call("a", "one", {}, "{}"), Call("b", "two", {}, "{}")
    happened, sent = play([asks(a, b), Outcome("text", "ok")])
    assert isinstance(happened[0], Turn)
    messages = sent[1][0]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool"]
    assert [m.get("tool_call_id") for m in messages[2:]] == ["a", "b"]
    assert messages[2]["content"] == "did one"


def test_a_failing_tool_is_a_reply_and_not_an_end():
    def fails(asked, turn):
        raise ToolProblem("not today")

    happened, sent = play([asks(Call("a", "one", {}, "{}")), Outcome("text", "ok")], fails)
    assert sent[1][0][-1] == {"role": "tool", "tool_call_id": "a", "content": "Error: not today"}
    assert happened[-1].status == "succeeded"


def test_a_call_with_a_problem_is_never_executed():
    executed = []
    broken = Call("a", "one", {}, '{"x', "cut off: the arguments end in the middle")
    _happened, sent = play([asks(broken), Outcome("text", "ok")], lambda asked, turn: executed.append(asked) or "")
    assert executed == []
    assert sent[1][0][-1]["content"].startswith("Error: cut off")
    assert sent[1][0][1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_a_truncated_call_gets_its_reply_and_one_larger_retry():
    cut = Outcome("truncated", "", (Call("a", "one", {}, '{"x', "cut off: nothing was done"),))
    happened, sent = play([cut, cut])
    assert [larger for _, larger in sent] == [False, True]
    assert happened[-1].reason == "truncated"


def test_a_model_that_never_ends_is_ended():
    happened, _ = play([asks(Call(f"c{n}", "one", {}, "{}")) for n in range(3)], max_turns=3)
    assert happened[-1].reason == "turns"


def test_empty_and_filtered_answers_are_told_apart():
    assert play([Outcome("empty")])[0][-1].reason == "empty"
    assert play([Outcome("filtered")])[0][-1].reason == "filtered"
