"""Frames over one websocket: sending, receiving with a clock, and answering AUTH (NIP-42)."""

import asyncio
import hashlib
import json
import time
from typing import Any

from django.conf import settings
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from marketplace.environment import kept_secret
from marketplace.protocol import nostr
from marketplace.protocol.events import Draft
from marketplace.protocol.kinds import CLIENT_AUTH
from marketplace.relays import frames
from marketplace.relays.connecting import open_relay


class Gone(Exception):
    """The connection ended; str() says how."""


class Wire:
    """An open connection to a relay; use `async with await Wire.to(url)`."""

    def __init__(self, url: str, socket: ClientConnection) -> None:
        self.url = url
        self.socket = socket
        self.challenge = ""
        self.auth_id = ""
        self.auth_answered = False

    @classmethod
    async def to(cls, url: str, seconds: float = 10.0) -> "Wire":
        """Raises Unreachable."""
        return cls(url, await open_relay(url, seconds))

    async def __aenter__(self) -> "Wire":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.socket.close()

    async def send(self, *parts: Any) -> None:
        """Raises Gone."""
        try:
            await self.socket.send(json.dumps(parts, ensure_ascii=False, separators=(",", ":")))
        except ConnectionClosed as error:
            raise Gone(_how(error)) from None

    async def receive(self, seconds: float) -> frames.Frame | None:
        """The next frame, None when none came in time. Raises Gone."""
        try:
            async with asyncio.timeout(seconds):
                raw = await self.socket.recv()
        except TimeoutError:
            return None
        except ConnectionClosed as error:
            raise Gone(_how(error)) from None
        frame = frames.read(raw)
        if frame.verb == "AUTH":
            self.challenge = frame.text
        elif frame.verb == "OK" and frame.name == self.auth_id:
            self.auth_answered = True
        return frame

    async def authenticate(self) -> bool:
        """Answer the relay's challenge with the site's own key; whether there is anything to wait for."""
        if self.auth_id or not self.challenge:
            return bool(self.auth_id) and not self.auth_answered
        secret = site_secret()
        tags = (("relay", self.url), ("challenge", self.challenge))
        event = nostr.sign(Draft(nostr.public_key(secret), int(time.time()), CLIENT_AUTH, tags, ""), secret)
        self.auth_id = event.id
        await self.send("AUTH", event.to_dict())
        return True


def site_secret() -> str:
    """The key the site shows itself to relays with; it signs nothing else."""
    return hashlib.sha256(kept_secret(settings.VAR_DIR / "relay-auth.key").encode()).hexdigest()


def _how(error: ConnectionClosed) -> str:
    frame = error.rcvd or error.sent
    if frame is None:
        return "the connection broke"
    return f"the connection was closed ({frame.code}{': ' + frame.reason[:120] if frame.reason else ''})"
