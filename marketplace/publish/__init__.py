"""Draft, signature, relays, ingest: the only way this site publishes for its owners.

    PublishError            base: nothing was published, the words say why
    ├── NoRelayAnswered     no relay told us the current list to its end, so it may not be replaced
    ├── StaleList           the list is not what the caller saw, or is dated in the future
    ├── Busy                another change of the same list is on its way
    └── Unpublishable       the event itself would be refused everywhere (size, time)

A relay that refuses is no exception: its answer stands in the publication's rows.
"""

from marketplace.publish.errors import Busy, NoRelayAnswered, PublishError, StaleList, Unpublishable
from marketplace.publish.inbox import inbox
from marketplace.publish.lists import adopt, reorder, unadopt
from marketplace.publish.sending import answered, next_time, retry, send, write_relays
from marketplace.publish.skills import signed_skill, skill, unsigned_skill

__all__ = [
    "Busy",
    "NoRelayAnswered",
    "PublishError",
    "StaleList",
    "Unpublishable",
    "adopt",
    "answered",
    "inbox",
    "next_time",
    "reorder",
    "retry",
    "send",
    "signed_skill",
    "skill",
    "unadopt",
    "unsigned_skill",
    "write_relays",
]
