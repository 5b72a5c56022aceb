"""How a run leaves its course: each carries the words its owner reads."""

from datetime import datetime

# Reasons of waits that say nothing about models: they do not use up the waits a run has for those.
WAITS_FOR_OTHERS = frozenset({"approval", "child"})


class Leaves(Exception):
    """Base: the run does not go on here."""


class Stopped(Leaves):
    """Somebody stopped it, or another worker has it now: nothing more may be written."""


class Fails(Leaves):
    """The run has failed; `reason` is the short word."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class Waits(Leaves):
    """The run goes on later: at a time, or when its owner has decided."""

    def __init__(self, reason: str, words: str, until: datetime | None) -> None:
        super().__init__(words)
        self.reason = reason
        self.until = until
