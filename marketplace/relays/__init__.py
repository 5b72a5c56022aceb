"""The network door: reading relays with backpressure (websockets), and publishing to them.

    publish(event, urls, timeout=8) -> list[Answer]     sync; one answer per address, in order
    fetch(urls, filters, timeout=8) -> Fetched          sync; stored events, and which relays answered to the end
    Reader(url, filters, sink, state)                   async; catch-up, then live, for as long as it runs
    publish_async, fetch_async                          the same inside an event loop
    record(status)                                      sync; the one shown state of a relay, as its Relay row

Nothing leaves here unchecked: shape, size, id, signature, and that the event fits the filter we sent.
Addresses that are not the operator's own must be public (marketplace.addresses).
"""

from marketplace.relays.arrivals import Incoming
from marketplace.relays.connecting import configured, normal_url
from marketplace.relays.fetching import Fetched, fetch, fetch_async
from marketplace.relays.frames import Verified
from marketplace.relays.reading import Reader
from marketplace.relays.sending import Answer, publish, publish_async
from marketplace.relays.standing import Status, record

__all__ = [
    "Answer",
    "Fetched",
    "Incoming",
    "Reader",
    "Status",
    "Verified",
    "configured",
    "fetch",
    "fetch_async",
    "normal_url",
    "publish",
    "publish_async",
    "record",
]
