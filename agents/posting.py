"""Sends a notice to its owner's webhook: signed, to public addresses only, and a retry sends the same body."""

import hashlib
import hmac
import json
import uuid
from typing import Any

import httpx
from django.views.decorators.debug import sensitive_variables

from agents.models import Notice
from agents.models.alerts import AlertRoute
from agents.tools import guarded
from marketplace import signing

MOST_SECONDS = 10.0


class NotPosted(Exception):
    """It did not arrive; the words say why, and hold no secret."""


@sensitive_variables("key")
def post(notice: Notice, link: str) -> None:
    """Returns once the address took it. Raises NotPosted."""
    route = AlertRoute.objects.filter(agent=notice.agent_id).first()
    if route is None or not route.webhook:
        raise NotPosted("There is no webhook any more.")
    body = _body(notice, link)
    try:
        key = signing.unseal(route.sealed).encode() if route.sealed else b""
    except signing.VaultError as error:
        raise NotPosted(str(error)) from None
    headers = {"content-type": "application/json", "idempotency-key": json.loads(body)["id"]}
    headers["x-signature"] = hmac.new(key, body, hashlib.sha256).hexdigest()
    status = _status(route.webhook, body, headers)
    if 300 <= status < 400:
        raise NotPosted(f"It answered {status}; redirects are not followed.")
    if not 200 <= status < 300:
        raise NotPosted(f"It answered {status}.")


def _body(notice: Notice, link: str) -> bytes:
    """What is sent, kept before it is: the id tells a receiver what it has already."""
    kept = notice.intent.get("event")
    if not kept:
        kept = {"id": str(uuid.uuid4()), "body": ""}
        kept["body"] = json.dumps(_said(notice, kept["id"], link), ensure_ascii=False)
        if not notice.remember({"event": kept}):
            raise NotPosted("Another attempt is sending it.")
    return str(kept["body"]).encode("utf-8", "replace")


def _said(notice: Notice, event_id: str, link: str) -> dict[str, Any]:
    alert = notice.alert
    return {
        "id": event_id,
        "state": notice.level,
        "kind": alert.kind if alert else "test",
        "subject": alert.subject if alert else "",
        "agent": notice.agent.slug,
        "words": notice.words,
        "at": notice.at.isoformat(),
        "began": alert.at.isoformat() if alert else None,
        "url": link,
    }


def _status(address: str, body: bytes, headers: dict[str, str]) -> int:
    """Of its answer, which is not read: nothing in it is of use."""
    deadline = guarded.Deadline(MOST_SECONDS)
    try:
        with guarded.client(deadline) as client:
            url = guarded.allowed_url(address)
            with client.stream("POST", url, content=body, headers=headers) as response:
                return response.status_code
    except (guarded.NotAllowed, httpx.InvalidURL):
        raise NotPosted("This address is unknown, or not a public one of http or https.") from None
    except httpx.TimeoutException:
        raise NotPosted("It did not answer within 10 seconds.") from None
    except (httpx.HTTPError, UnicodeError) as error:
        raise NotPosted(f"It could not be reached ({type(error).__name__}).") from None
