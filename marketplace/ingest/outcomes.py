"""What became of each event that was handed in."""

from dataclasses import dataclass

from marketplace.protocol.events import Event

OUTCOMES = ("stored", "duplicate", "older", "deleted", "expired", "held", "ignored", "refused")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One of OUTCOMES with its reason: a word for refusals and a sentence elsewhere, "" when stored."""

    id: str  # "" where the input was too broken to have one
    outcome: str
    reason: str = ""
    event: Event | None = None  # None for what was refused
    relay: str = ""
