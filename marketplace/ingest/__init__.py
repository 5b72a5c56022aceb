"""The only way an event becomes rows: verify, archive, project; order, repetition and relay do not matter.

    store(batch, now) -> list[Outcome]      one outcome per Incoming, in the order given
    release_held(now) -> list[Outcome]      events dated ahead that are due by now
    expire(now) -> int                      hide what expired (NIP-40); how many events
    rebuild(now, progress) -> int           every projection anew from the archive; how many addresses

`now` is unix seconds. Inside its transaction `signals.touched` tells which skills' counts may have changed;
after commit `signals.stored` carries the outcomes that changed something.
"""

from marketplace.ingest.keeping_time import expire, release_held
from marketplace.ingest.outcomes import OUTCOMES, Outcome
from marketplace.ingest.rebuilding import rebuild
from marketplace.ingest.storing import store
from marketplace.relays.arrivals import Incoming

__all__ = ["OUTCOMES", "Incoming", "Outcome", "expire", "rebuild", "release_held", "store"]
