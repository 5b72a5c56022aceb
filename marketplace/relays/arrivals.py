"""An event as it came, and from where: what every source hands to ingest."""

from dataclasses import dataclass, field
from typing import Any

from marketplace.protocol.events import Event


@dataclass(frozen=True, slots=True)
class Incoming:
    """One event on its way in; `relay` is the address it came from, "" for a file or our own hand."""

    raw: str | bytes | dict[str, Any] | Event
    relay: str = ""
    # Set by the relay door alone, after its own checks of shape, id and signature.
    checked: bool = field(default=False, kw_only=True)
