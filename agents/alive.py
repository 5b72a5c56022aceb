"""Which parts of the site are alive, from heartbeats and connections: for pages, machines and alerts."""

import os
import socket
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError

from marketplace.models import Heartbeat, Relay

FRESH = timedelta(seconds=30)  # three missed heartbeats
CONNECT_SECONDS = 0.5
OK = "ok"
_PORTS = {"redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}


def facts(now: datetime) -> dict[str, str]:
    """Each part: `ok`, or what is wrong in words."""
    try:
        beats = newest_beats()
    except DatabaseError as error:
        words = f"the database does not answer ({type(error).__name__})"
        return {"web": OK, "database": words, "broker": broker()} | dict.fromkeys(
            ("worker", "relay", "listener"), "unknown while the database is away"
        )
    return {
        "web": OK,
        "database": OK,
        "broker": broker(),
        "worker": of_role(beats, "worker", "No worker is running: runs stay queued.", now),
        "relay": relay(),
        "listener": of_role(beats, "listener", "The listener is not running: new events are not seen.", now),
    }


def newest_beats() -> dict[str, datetime]:
    """The newest sign of life of each role."""
    newest: dict[str, datetime] = {}
    for role, at in Heartbeat.objects.order_by("at").values_list("role", "at"):
        newest[role] = at
    return newest


def of_role(beats: dict[str, datetime], role: str, words: str, now: datetime) -> str:
    at = beats.get(role)
    if at is None:
        return words
    silent = now - at
    return OK if silent <= FRESH else f"{words} Last sign of life {span(silent)} ago."


def span(length: timedelta) -> str:
    seconds = int(length.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def broker() -> str:
    """A folder that can be written, or an address that takes a connection: never a ping through the queue."""
    parts = urlsplit(settings.CELERY_BROKER_URL)
    scheme = parts.scheme.partition("+")[0]
    if scheme == "filesystem":
        folder = settings.BROKER_DIR / "messages"
        if os.access(folder, os.W_OK | os.X_OK):
            return OK
        return f"the folder {folder} {'cannot be written' if folder.exists() else 'is not there'}"
    if scheme in _PORTS:
        return _reached(parts.hostname or "localhost", parts.port or _PORTS[scheme], "the broker")
    return OK  # in memory: it is this process


def relay() -> str:
    """The embedded relay by a connection, others by what the listener last saw of them."""
    if settings.EMBEDDED_RELAY:
        return _reached("127.0.0.1", settings.RELAY_PORT, "the embedded relay")
    if not settings.RELAYS:
        return "no relay is named: set JOURNEYMAN_RELAYS"
    rows = {row.url: row for row in Relay.objects.filter(url__in=settings.RELAYS)}
    states = {url: rows[url].state if url in rows else Relay.State.NEW for url in settings.RELAYS}
    if any(state in {Relay.State.LIVE, Relay.State.CATCHING_UP} for state in states.values()):
        return OK
    return "no relay is connected: " + ", ".join(f"{url} ({state})" for url, state in states.items())


def _reached(host: str, port: int, what: str) -> str:
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        return f"{what} takes no connection on {host}:{port} ({error.strerror or type(error).__name__})"
    return OK
