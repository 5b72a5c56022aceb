"""A template action in a preview: no model, the text as it would be sent."""

from collections.abc import Mapping
from typing import Any

from agents.preview.samples import SAMPLE_KEY
from marketplace.protocol import nip19, templates
from marketplace.protocol.events import Event
from marketplace.protocol.skills import SkillSpec


def filled_in(spec: SkillSpec, event: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    """In the shape of a preview, without messages."""
    try:
        action = templates.read_action(spec.template)
    except ValueError as error:
        warnings.append(f"The recipient after DM is not a key. {error}")
        action = templates.Action("log", "", spec.template)
    values = templates.placeholders(read_event(event), "wss://relay.example", "")
    text = templates.expand_placeholders(action.body, values)
    return {
        "rule": "template",
        "reason": "Template action: the text is filled in and sent without a model.",
        "messages": [],
        "tools": [],
        "tokens": 0,
        "parts": [],
        "arguments": [],
        "action": {
            "kind": action.kind,
            "recipient": nip19.encode_npub(action.recipient) if action.recipient else "",
            "text": text,
        },
    }


def read_event(row: Mapping[str, Any]) -> Event:
    """An event of a preview may be half typed: what is missing or of a wrong type becomes empty."""

    def text(name: str, default: str) -> str:
        value = row.get(name)
        return value if isinstance(value, str) else default

    created, kind = row.get("created_at"), row.get("kind")
    return Event(
        text("id", "0" * 64),
        text("pubkey", SAMPLE_KEY),
        created if isinstance(created, int) else 0,
        kind if isinstance(kind, int) else 1,
        (),
        text("content", ""),
        "",
    )
