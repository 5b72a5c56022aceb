"""HTTP that only reaches addresses it may: decided on the address connected to, at every connection, with one clock."""

import time
from collections.abc import Iterable
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

from marketplace import addresses

PORTS = frozenset({80, 443})
_AGENT = "Journeyman (+https://github.com/nostr-protocol/nips)"


class NotAllowed(Exception):
    """The address is not one that may be fetched."""


class Deadline:
    """One limit for all of a call: a server that sends a byte a second must not outlast it."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds

    def left(self, wanted: float | None) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("deadline")
        return left if wanted is None else min(left, wanted)


def allowed_url(text: str) -> httpx.URL:
    """The address, if its form may be fetched at all; who answers there is decided when connecting."""
    url = httpx.URL(text.strip())
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo:
        raise NotAllowed
    if port not in PORTS and not addresses.listed_host(url.host):
        raise NotAllowed
    return url


def client(deadline: Deadline) -> httpx.Client:
    """A client without proxies, cookies and automatic redirects, that connects through the guard."""
    transport = httpx.HTTPTransport(trust_env=False)
    transport._pool = httpcore.ConnectionPool(
        ssl_context=httpx.create_ssl_context(trust_env=False), network_backend=_Backend(deadline)
    )
    headers = {"user-agent": _AGENT, "accept-encoding": "identity"}
    timeout = httpx.Timeout(deadline.left(None))
    return httpx.Client(transport=transport, trust_env=False, follow_redirects=False, headers=headers, timeout=timeout)


class _Backend(httpcore.NetworkBackend):
    """Resolves the name itself and connects to the very address it has checked: a second answer changes nothing."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            checked = addresses.resolve(host, port)
        except (addresses.NotAllowed, OSError):
            # An unknown name gives no other answer than a private one: nobody maps a network with it.
            raise NotAllowed from None
        failure: Exception = httpcore.ConnectError("The name has no address.")
        for address in checked:
            try:
                return _Stream(self.inner.connect_tcp(address, port, self.deadline.left(5)), self.deadline)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class _Stream(httpcore.NetworkStream):
    """A connection whose every wait ends with the call's own clock."""

    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self.inner = inner
        self.deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.inner.read(max_bytes, self.deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.inner.write(buffer, self.deadline.left(timeout))

    def close(self) -> None:
        self.inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self.inner.start_tls(ssl_context, server_hostname, self.deadline.left(timeout)), self.deadline)

    def get_extra_info(self, info: str) -> Any:
        return self.inner.get_extra_info(info)
