"""Which addresses may be reached for a form, an event or a tool: one guard, apart so that all doors share it."""

import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings

Address = IPv4Address | IPv6Address
NAT64 = IPv6Network("64:ff9b::/96")
NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")  # RFC 8215: a network's own translation
TEREDO = IPv6Network("2001::/32")
COMPATIBLE = IPv6Network("::/96")  # deprecated ::a.b.c.d


class NotAllowed(Exception):
    """The address is not public, and not one the operator allowed."""


def public(text: str) -> bool:
    """Whether an address is globally routable, also after unwrapping mapped, NAT64 and 6to4 forms."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(_routable(form) for form in _forms(address))


def check_address(text: str) -> None:
    """Raises NotAllowed unless the IP address is public or allowed by the operator."""
    if not public(text) and not _listed_address(text):
        raise NotAllowed(f"{text} is not a public address")


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, all of them checked; connect to these and not to the name again.

    Raises NotAllowed when one of them may not be reached, OSError when the name is not known.
    """
    name = host.strip("[]")
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError(f"{name[:80]!r} is not a host name") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not listed_host(name):
        for address in addresses:
            check_address(address)
    return addresses


def listed_host(host: str) -> bool:
    """Whether the operator allowed this name or address (JOURNEYMAN_ALLOW_ADDRESSES)."""
    name = host.strip("[]").rstrip(".").lower()
    return name in {word.strip("[]").lower() for word in settings.ALLOW_ADDRESSES} or _listed_address(name)


def may_be_public(host: str) -> bool:
    """What can be said of a host before anybody looks its name up: "no" to this machine and to private addresses."""
    name = host.strip("[]").rstrip(".").lower()
    if listed_host(name):
        return True
    if name == "localhost" or name.endswith(".localhost"):
        return _listed_address("127.0.0.1") or _listed_address("::1")
    try:
        # As connecting reads it: 2130706433, 0x7f.1 and 127.1 are this machine too.
        return public(name if ":" in name else str(IPv4Address(socket.inet_aton(name))))
    except (OSError, ValueError):
        return True  # a name; whom it leads to is checked at every connection


def _listed_address(text: str) -> bool:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    networks = _networks(tuple(settings.ALLOW_ADDRESSES))
    return any(address in network for network in networks if network.version == address.version)


@lru_cache(maxsize=8)
def _networks(words: tuple[str, ...]) -> list[IPv4Network | IPv6Network]:
    """Those of the allowed words that are addresses or networks; the others are names."""
    found = []
    for word in words:
        try:
            found.append(ip_network(word.strip("[]"), strict=False))
        except ValueError:
            continue
    return found


def _routable(address: Address) -> bool:
    # `is_private` alone misses shared space (100.64.0.0/10); multicast counts as global.
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _forms(address: Address) -> list[Address]:
    """The address, or what it leads to where it only wraps an IPv4 address."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    low = IPv4Address(int(address) & 0xFFFFFFFF)
    if address in NAT64:
        return [low]
    if address in NAT64_LOCAL or address in COMPATIBLE:
        return [address, low]
    if address.sixtofour:
        return [address.sixtofour]
    if address in TEREDO and address.teredo:
        return [address, *address.teredo]
    return [address]
