"""Answers as providers, proxies and local servers really give them: what each becomes, whole and streamed.

An expectation is `kind` of the outcome, with what becomes of the calls in brackets: `run`, or `refused`.
"""

import json
from typing import Any

from tests.agents.scripted import LIMIT, body, both, call, end, piece, said, stream, whole
from tests.fakes import Scripted, calls, message, text


def _row(call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


DEEP = '{"a":' * 40 + "1" + "}" * 40
TEXTS = [
    said("a text", "text", text("Hello")),
    both(
        "a text in a list of parts",
        "text",
        text([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]),
        piece({"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}),
        end(),
    ),
    both(
        "a text after reasoning",
        "text",
        message({"role": "assistant", "content": "Hello", "reasoning_content": "secret thought"}),
        piece({"role": "assistant", "reasoning_content": "secret thought"}),
        piece({"content": "Hello"}),
        end(),
    ),
    both(
        "a refusal in a field of its own",
        "text",
        message({"role": "assistant", "content": None, "refusal": "I cannot."}),
        piece({"role": "assistant", "refusal": "I cannot."}),
        end(),
    ),
    said("a text with a finish reason nobody knows", "text", text("Hello", "eos_token")),
    whole("a text with finish reason null", "text", message({"role": "assistant", "content": "Hello"}, None)),  # type: ignore[arg-type]
    whole(
        "two choices: the first counts",
        "text",
        body(
            choices=[
                {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"},
                {"index": 1, "message": {"role": "assistant", "content": "Other"}, "finish_reason": "length"},
            ]
        ),
    ),
    said(
        "a text beside an empty list of calls",
        "text",
        message({"role": "assistant", "content": "Hello", "tool_calls": []}),
    ),
    stream("a text whose stream ends without [DONE]", "text", piece({"content": "Hello"}), end(), done=False),
    stream(
        "a text between comments and empty pieces",
        "text",
        piece({}),
        piece({"content": "Hello"}),
        piece({"content": ""}),
        end(),
    ),
]
EMPTY = [
    said("an empty text", "empty", text("")),
    said("white space only", "empty", text(" \n\t")),
    said("content null without calls", "empty", text(None)),
    whole("no content at all", "empty", message({"role": "assistant"})),
    both(
        "reasoning and nothing else",
        "empty",
        message({"role": "assistant", "content": None, "reasoning_content": "thinking"}),
        piece({"role": "assistant", "reasoning_content": "thinking"}),
        end(),
    ),
    whole("a null message", "empty", message(None)),
    whole("empty choices", "empty", body(choices=[])),
    whole("choices null", "empty", body(choices=None)),
    whole("no choices at all", "empty", body()),
    whole("a choice that is null", "empty", body(choices=[None])),
    whole("a body that is an empty object", "empty", Scripted({})),
    stream("a stream of nothing but its end", "empty", end()),
]
FILTERED = [
    said(f"finish reason {word}", "filtered", text("so far", word))
    for word in (
        "content_filter",
        "SAFETY",
        "PROHIBITED_CONTENT",
        "BLOCKLIST",
        "RECITATION",
        "SPII",
        "guardrail_intervened",
        "content_filtered",
        "sensitive",
        "refusal",
    )
] + [
    both(
        "a null message with “content_filter: PROHIBITED_CONTENT”",
        "filtered",
        message(None, "content_filter: PROHIBITED_CONTENT"),
        end("content_filter: PROHIBITED_CONTENT"),
    ),
]
TRUNCATED = [
    said("a text cut by length", "truncated", text("half a sen", "length")),
    said("a text cut by “max_tokens”", "truncated", text("half a sen", "max_tokens")),
    said("a text cut by “MAX_TOKENS”", "truncated", text("half a sen", "MAX_TOKENS")),
    said("nothing, cut by length", "truncated", text(None, "length")),
    said("a call cut by length", "truncated [refused]", call('{"content":"Hello wor', "length")),
    said("a whole call at its length limit", "truncated [refused]", call('{"pubkey":"ab"}', "length")),
    said("a cut call that claims to be whole", "truncated [refused]", call('{"content":"Hello wor')),
    said("a whole call that used every token allowed", "truncated [refused]", call('{"a":1}', completion_tokens=LIMIT)),
]
CALLS = [
    said("a call", "calls [run]", call('{"a":1}')),
    said("a call with finish reason “stop”", "calls [run]", call('{"a":1}', "stop")),
    said("two calls", "calls [run, run]", calls(("a", "f", {"x": 1}), ("b", "g", {"y": 2}))),
    said("two calls with one id", "calls [run, refused]", calls(("a", "f", {"x": 1}), ("a", "f", {"y": 2}))),
    whole("a call without an id", "calls [run]", call("{}", call_id=None)),
    said("arguments “”", "calls [run]", call("")),
    said("arguments “null”", "calls [run]", call("null")),
    whole("arguments null", "calls [run]", call(None)),
    whole(
        "arguments missing",
        "calls [run]",
        message(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}],
            },
            "tool_calls",
        ),
    ),
    whole("arguments as an object, not as text", "calls [run]", call({"a": 1})),
    said("arguments “[]”", "calls [refused]", call("[]")),
    said('arguments “"x"”', "calls [refused]", call('"x"')),
    said("arguments “5”", "calls [refused]", call("5")),
    said("arguments with NaN", "calls [refused]", call('{"a":NaN}')),
    said("arguments with a number beyond every range", "calls [refused]", call('{"a":[1e400]}')),
    said("arguments with a number of 5,000 digits", "calls [refused]", call('{"a":' + "9" * 5_000 + "}")),
    whole(
        "arguments as an object with a number beyond every range",
        "calls [refused]",
        call({"a": float("inf")}),
    ),
    said("arguments with one key twice", "calls [refused]", call('{"a":1,"a":2}')),
    said("arguments with one key twice inside", "calls [refused]", call('{"b":{"a":1,"a":2}}')),
    said("arguments nested too deeply", "calls [refused]", call(DEEP)),
    said("arguments that are no JSON", "calls [refused]", call("{a:1}")),
    said("arguments with words behind them", "calls [refused]", call('{"a":1} as you asked')),
    said("arguments longer than 200,000 characters", "calls [refused]", call(json.dumps({"a": "x" * 200_001}))),
    said("a call without a name", "calls [refused]", call("{}", name="")),
    whole("a call whose name is null", "calls [refused]", call("{}", name=None)),
    said(
        "words beside a call",
        "calls [run]",
        message(
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            "tool_calls",
        ),
    ),
    stream(
        "two calls whose pieces come mixed",
        "calls [run, run]",
        piece(
            {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]}
        ),
        piece(
            {
                "tool_calls": [
                    {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": '{"y"'}}
                ]
            }
        ),
        piece({"tool_calls": [{"index": 0, "function": {"arguments": '{"x":1}'}}]}),
        piece({"tool_calls": [{"index": 1, "function": {"arguments": ":2}"}}]}),
        end("tool_calls"),
    ),
    stream(
        "a call that repeats its id and name in each piece",
        "calls [run]",
        piece(
            {
                "tool_calls": [
                    {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x"'}}
                ]
            }
        ),
        piece(
            {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ":1}"}}]}
        ),
        end("tool_calls"),
    ),
    stream(
        "two whole calls, each in one piece with index 0",
        "calls [run, run]",
        piece(
            {
                "tool_calls": [
                    {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
                ]
            }
        ),
        piece(
            {
                "tool_calls": [
                    {"index": 0, "id": "b", "type": "function", "function": {"name": "g", "arguments": '{"y":2}'}}
                ]
            }
        ),
        end("tool_calls"),
    ),
]
ODD = [
    whole(
        "a list of calls with a null in it",
        "calls [refused, run]",
        message({"role": "assistant", "content": None, "tool_calls": [None, _row("c")]}, "tool_calls"),
    ),
    both(
        "a call whose function is null",
        "calls [refused]",
        message({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": None}]}, "tool_calls"),
        piece({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": None}]}),
        end("tool_calls"),
    ),
    both(
        "calls that are a text",
        "text",
        message({"role": "assistant", "content": "Hello", "tool_calls": "none"}),
        piece({"content": "Hello", "tool_calls": "none"}),
        end(),
    ),
    stream(
        "arguments that come as an object in a piece",
        "calls [run]",
        piece({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]}),
        end("tool_calls"),
    ),
    stream(
        "whole calls without an index",
        "calls [run, run]",
        piece({"tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}),
        piece({"tool_calls": [{"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}),
        end("tool_calls"),
    ),
    stream(
        "a text with pieces of no shape", "text", piece(None), piece({"content": 5}), piece({"content": "Hello"}), end()
    ),
    stream(
        "a text with a choice that is null", "text", piece({"content": "Hello"}), {**end(), "choices": [None]}, end()
    ),
    whole("content that is a number", "empty", message({"role": "assistant", "content": 5})),
]
SHAPES = [*TEXTS, *EMPTY, *FILTERED, *TRUNCATED, *CALLS, *ODD]
