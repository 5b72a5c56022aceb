"""The names the protocol defines, with the help text that forms show."""

VARIABLES: dict[str, str] = {
    "soul": "the agent's own character and rules",
    "admin_profile": "the admin's profile",
    "admin_notes": "the admin's recent notes",
    "admin_relays": "the admin's relay list",
    "adopted_skills": "the instructions of the other adopted skills",
    "dm_history": "recent direct messages with the admin",
    "message": "the message that started the run",
    "triggering_event": "the event that fired the trigger, as JSON",
    "tools": "the tools this run may call",
}
# Come from the run itself; the others are resolved by a tool, only when a template names them.
FROM_THE_RUN = frozenset({"soul", "message", "triggering_event"})

PLACEHOLDERS: dict[str, str] = {
    "event_id": "the event's id",
    "pubkey": "its author's key",
    "author_display_name": "its author's name, or the short npub",
    "kind": "its kind number",
    "content": "its whole content",
    "content_preview": "the first 200 characters on one line",
    "created_at": "when it was written, in UTC",
    "relay_url": "the relay that delivered it",
}

CONTEXT_MODES: dict[str, str] = {
    "inject": "the agent's soul first, then these instructions",
    "full": "only this template; the soul where it names {{soul}}",
    "override": "this template in place of the soul's instructions",
}

ACTIONS: dict[str, str] = {
    "llm": "a model reads the event and acts",
    "template": "the text is filled in and sent, without a model",
}

ROLES = ("system", "user", "assistant")
