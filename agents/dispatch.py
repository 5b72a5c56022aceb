"""From an occasion to Run rows: queued, or suppressed with a reason."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agents.models import Agent, Run

if TYPE_CHECKING:
    from marketplace.protocol.triggers import Occasion


def runs_for(occasion: "Occasion", now: datetime, trigger_ids: Collection[int] | None = None) -> list[Run]:
    """The new runs of each trigger the occasion is for, queued or suppressed; announced after commit.

    `trigger_ids` are those that the source already matched (the listener's index, a cron slot, a webhook's address);
    without them the live triggers are asked.
    """
    raise NotImplementedError


def manual(
    agent: Agent,
    skill_address: str,
    event_id: str,
    message: str,
    arguments: dict[str, Any],
    overrides: dict[str, Any],
    now: datetime,
    key: str,
) -> Run:
    """A run that a person asked for; the same key gives the same run. `event_id`: the skill's version, "" for none."""
    raise NotImplementedError


def announce(ids: Iterable[str], now: datetime) -> int:
    """Wakes workers for these runs; how many messages were sent."""
    raise NotImplementedError
