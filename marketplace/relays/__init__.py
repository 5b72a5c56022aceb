"""The network door: reading relays with backpressure (websockets), and publishing to them.

    publish(event, urls, timeout=8) -> list[Answer]     sync; one answer per address, in order
    fetch(urls, filters, timeout=8) -> Fetched          sync; stored events, and which relays answered to the end
    Reader(url, filters, sink, state)                   async; catch-up, then live, for as long as it runs
    record(status)                                      sync; the one shown state of a relay, as its Relay row

Nothing leaves here unchecked: shape, size, id, signature, and that the event fits the filter we sent.
Addresses that are not the operator's own must be public (marketplace.addresses).
"""

from marketplace.relays.arrivals import Incoming
from marketplace.relays.connecting import normal_url
from marketplace.relays.fetching import Fetched, fetch
from marketplace.relays.reading import Reader
from marketplace.relays.sending import Answer, publish
from marketplace.relays.standing import Status, record

__all__ = ["Answer", "Fetched", "Incoming", "Reader", "Status", "fetch", "normal_url", "publish", "record"]
