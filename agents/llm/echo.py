"""`offline/echo`: what answers when no model is configured. It is not a language model, and says so."""

from typing import Any

from agents.llm.tokens import count

NOTE = "[offline echo: this is not a language model. Configure a model to get real answers.]"
LONGEST = 2_000  # characters repeated


def answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """A chat completion that repeats the last user message."""
    said = next((m.get("content") for m in reversed(messages) if m.get("role") == "user"), "") or ""
    text = f"{NOTE}\n{str(said)[:LONGEST]}".rstrip()
    prompt = sum(count(str(m.get("content") or "")) for m in messages)
    return {
        "model": "offline/echo",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": count(text)},
    }
