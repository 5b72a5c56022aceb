"""Where a key reads its private messages (kind 10050): other clients send gift wraps nowhere else (NIP-17)."""

from collections.abc import Sequence

from marketplace import relays, signing
from marketplace.models import Identity, Publication
from marketplace.protocol import kinds
from marketplace.protocol.events import Address, Draft
from marketplace.protocol.filters import Filter
from marketplace.publish import sending
from marketplace.publish.errors import NoRelayAnswered

FETCH_SECONDS = 6.0
MOST = 3  # NIP-17: such a list should be short


def inbox(identity: Identity, reads: Sequence[str], now: int) -> Publication | None:
    """Publish the list of the key, naming what it reads; None when relays have one that names a relay.

    Raises PublishError, and signing.NotHeld for a key that signs elsewhere.
    """
    urls = sending.write_relays(identity)
    wanted = Filter(kinds=frozenset({kinds.DM_RELAYS}), authors=frozenset({identity.pubkey}))
    fetched = relays.fetch(urls, [wanted], FETCH_SECONDS)
    if not any(fetched.finished.values()):
        raise NoRelayAnswered("No relay told us whether there is such a list already. Nothing was published.")
    known = sorted(fetched.events, key=lambda event: (-event.created_at, event.id))
    if known and known[0].values("relay"):
        return None
    at = sending.next_time(Address(kinds.DM_RELAYS, identity.pubkey, ""), now)
    at = max(at, known[0].created_at + 1) if known else at
    tags = tuple(("relay", url) for url in list(dict.fromkeys(reads))[:MOST])
    event = signing.sign(identity, Draft(identity.pubkey, at, kinds.DM_RELAYS, tags, ""))
    publication, _ = sending.record(identity, event, "name its inbox relays", urls)
    return sending.send(publication, urls, now)
