"""One websocket to one relay: to an address that was checked, bounded, and without redirects or proxies."""

import asyncio
import time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from marketplace import addresses

# A frame of an event at its limit of 65,536 bytes may be escaped to six times that.
# Larger ones close the connection; those between are refused one by one.
MAX_FRAME = 4 * 2**20
MAX_QUEUE = 8  # frames read ahead; then the relay has to wait
OPEN_SECONDS = 10.0


class Unreachable(Exception):
    """The relay cannot be reached; str() says why in words for the operator."""


class _NoRedirect(connect):
    """A redirect would lead around the address guard."""

    def process_redirect(self, exc: Exception) -> Exception:
        return exc


def normal_url(text: str) -> str:
    """The address as it is stored: lower-case scheme and host, no trailing slash. Raises ValueError."""
    parts = urlsplit(text.strip())
    if parts.scheme.lower() not in {"ws", "wss"} or not parts.hostname or parts.username or parts.fragment:
        raise ValueError("A relay's address starts with wss:// or ws://.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname.lower()
    port = f":{parts.port}" if parts.port else ""
    url = urlunsplit((parts.scheme.lower(), host + port, parts.path.rstrip("/"), parts.query, ""))
    if len(url) > 300 or not url.isprintable():
        raise ValueError("This address is too long for a relay.")
    return url


def configured(url: str) -> bool:
    """Whether the operator named this relay in the settings, so that it may stand on a private network."""
    own = {settings.EMBEDDED_RELAY_URL, *settings.RELAYS, *settings.WRITE_RELAYS}
    return url.rstrip("/") in {known.rstrip("/") for known in own}


async def open_relay(url: str, seconds: float = OPEN_SECONDS) -> ClientConnection:
    """An open connection. Raises Unreachable, nothing else."""
    try:
        async with asyncio.timeout(seconds):
            return await _NoRedirect(normal_url(url), **await _where(url), **_limits(seconds))
    except addresses.NotAllowed:
        raise Unreachable("its address is not public") from None
    except TimeoutError:
        raise Unreachable(f"no connection within {seconds:.0f} s") from None
    except InvalidStatus as error:
        raise Unreachable(f"it answered HTTP {error.response.status_code}") from None
    except (OSError, ValueError) as error:
        raise Unreachable(str(error)[:200] or type(error).__name__) from None
    except Exception as error:
        # websockets has a dozen classes for a handshake gone wrong.
        raise Unreachable(f"{type(error).__name__}: {str(error)[:160]}") from None


async def _where(url: str) -> dict[str, Any]:
    """The checked address to connect to; the name is only used for TLS and the Host header."""
    if configured(url):
        return {}
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "wss" else 80)
    found = await asyncio.get_running_loop().run_in_executor(None, addresses.resolve, parts.hostname or "", port)
    if not found:
        raise OSError("its name has no address")
    # IPv4 first: a host without an IPv6 route is more common than the reverse.
    return {"host": sorted(found, key=lambda address: ":" in address)[0], "port": port}


def _limits(seconds: float) -> dict[str, Any]:
    return {
        "max_size": MAX_FRAME,
        "max_queue": MAX_QUEUE,
        "open_timeout": seconds,
        "close_timeout": 2,
        "ping_interval": 30,
        "ping_timeout": 30,
        "compression": None,  # a packed frame could grow a thousandfold
        "proxy": None,
        "user_agent_header": "Journeyman",
    }


class Clock:
    """One limit for several waits."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self.until - time.monotonic())
