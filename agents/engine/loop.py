"""The agent loop: complete, append, run the calls, again; every call id gets exactly one reply."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agents.engine.outcomes import Call, Outcome

MAX_TURNS = 12


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answered, or why it did not."""

    call: Call
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as it ended."""

    number: int
    outcome: Outcome
    replies: tuple[Reply, ...] = ()


@dataclass
class Conversation:
    """The messages so far, in the provider's shape, always valid to send."""

    messages: list[dict[str, Any]] = field(default_factory=list)

    def add_answer(self, outcome: Outcome) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": outcome.text or None}
        if outcome.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name or "unknown", "arguments": _sent_back(call)},
                }
                for call in outcome.calls
            ]
        self.messages.append(message)

    def add_reply(self, reply: Reply) -> None:
        self.messages.append({"role": "tool", "tool_call_id": reply.call.id, "content": reply.text})


@dataclass(frozen=True, slots=True)
class End:
    """How the loop ended. status: succeeded or failed."""

    status: str
    reason: str
    words: str
    text: str = ""


def _sent_back(call: Call) -> str:
    """The arguments as the model wrote them, where they are an object: some providers refuse anything else."""
    return call.raw if call.arguments and not call.problem else "{}"


Complete = Callable[[list[dict[str, Any]], int, bool], Outcome]
CallTool = Callable[[Call, int], str]
Ahead = Callable[[tuple[Call, ...], int], None]


def run(
    messages: list[dict[str, Any]],
    complete: Complete,
    call: CallTool,
    max_turns: int = MAX_TURNS,
    ahead: Ahead = lambda calls, turn: None,
) -> Iterator[Turn | End]:
    """Yields each Turn, then one End.

    `complete(messages, turn, larger)` gives the outcome of the next answer, whatever models that took;
    `larger` asks for more room after a truncated one. `call(call, turn)` gives the tool's text and
    raises ToolProblem where it refused or failed. `ahead(calls, turn)` sees all calls of a turn before the first of
    them is made. Whatever else they raise ends the loop.
    """
    talk = Conversation(list(messages))
    truncated = False
    for number in range(1, max_turns + 1):
        outcome = complete(talk.messages, number, truncated)
        if outcome.kind == "calls" or (outcome.kind == "truncated" and outcome.calls):
            talk.add_answer(outcome)
            ahead(tuple(asked for asked in outcome.calls if not asked.problem), number)
            replies = []
            for asked in outcome.calls:
                replies.append(_reply(asked, number, call))
                talk.add_reply(replies[-1])
            yield Turn(number, outcome, tuple(replies))
            if outcome.kind == "calls":
                continue
        else:
            yield Turn(number, outcome)
        if outcome.kind == "truncated" and not truncated:
            truncated = True
            continue
        yield _end(outcome)
        return
    yield End("failed", "turns", f"The model still wanted to go on after {max_turns} turns.")


class ToolProblem(Exception):
    """A call that was refused or failed; str() is what the model reads."""


def _reply(asked: Call, number: int, call: CallTool) -> Reply:
    if asked.problem:
        return Reply(asked, f"Error: {asked.problem}")
    try:
        return Reply(asked, call(asked, number))
    except ToolProblem as problem:
        return Reply(asked, f"Error: {problem}")


def _end(outcome: Outcome) -> End:
    if outcome.kind == "text":
        return End("succeeded", "", "", outcome.text)
    if outcome.kind == "filtered":
        return End("failed", "filtered", "The provider's content filter stopped the answer.", outcome.text)
    if outcome.kind == "truncated":
        return End("failed", "truncated", "The answer was cut off at its length limit, twice.", outcome.text)
    return End("failed", "empty", "The model gave an empty answer.")
