"""Connecting to an address from a form: checked as the connection is made, so that a name cannot change its mind."""

from collections.abc import Iterable
from functools import lru_cache
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

from marketplace import addresses


@lru_cache(maxsize=32)
def guarded(base_url: str, key: str, timeout: float) -> Any:
    """A client of OpenAI's protocol that reaches public or allowed addresses only, and follows nobody elsewhere."""
    transport = httpx.HTTPTransport(verify=tls(), trust_env=False)
    transport._pool = httpcore.ConnectionPool(ssl_context=tls(), network_backend=_Checked(), keepalive_expiry=30)
    http = httpx.Client(transport=transport, verify=tls(), trust_env=False, follow_redirects=False, timeout=timeout)
    return _speaking(base_url, key, http)


@lru_cache(maxsize=32)
def direct(base_url: str, key: str, timeout: float) -> Any:
    """A client for the operator's own address, by way of the operator's own proxies and certificates."""
    return _speaking(base_url, key, httpx.Client(verify=tls(ours=False), follow_redirects=True, timeout=timeout))


def _speaking(base_url: str, key: str, http: Any) -> Any:
    import openai

    return openai.OpenAI(api_key=key or "none", base_url=base_url, max_retries=0, http_client=http)


@lru_cache(maxsize=2)
def tls(ours: bool = True) -> SSLContext:
    """Made once, and before workers fork: reading the certificates takes 30 ms."""
    return httpx.create_ssl_context(trust_env=not ours)


class _Checked(httpcore.SyncBackend):
    """Resolves the name itself and connects to the very address it has checked."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception = httpcore.ConnectError("The name has no address.")
        try:
            found = addresses.resolve(host, port)
        except OSError:
            raise httpcore.ConnectError("The name is not known.") from None
        for address in found:
            try:
                return super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure
