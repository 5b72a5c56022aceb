"""A web request to a hook becomes a delivery on record and, once for each delivery id, a run."""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from agents import dispatch
from agents.engine import webhooks
from agents.models import Delivery, Hook, Run, UnknownCall
from marketplace import signing
from marketplace.protocol.triggers import Occasion, delivery_key, read_trigger

NOT_FOUND = "There is no such address, or the request is not signed as it should be."
MOST_HOPS = 99  # a larger number is nonsense, and the limit on depth holds anyway


@dataclass(frozen=True, slots=True)
class Request:
    """What came, as the web server read it; header names in lower case."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def hops(self) -> int:
        """How many runs of ours led to this request: an agent that calls its own address comes to an end."""
        text = self.headers.get("x-journeyman-hops", "")
        return min(int(text), MOST_HOPS) if text.isascii() and text.isdigit() and len(text) < 4 else 0


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and JSON; the run that the request stands for, where there is one."""

    status: int
    said: dict[str, Any]
    run: Run | None = None
    waits: bool = False  # whether the owner lets the answer wait for the output


def receive(token: str, request: Request, now: datetime) -> Answer:
    """Verified, kept, dispatched, answered; the work itself comes later."""
    hook = Hook.objects.called(token, now)
    if hook is None:
        # As long as for a hook with a secret, and the same words.
        webhooks.refusal("plain", [token], request.headers, request.body, int(now.timestamp()))
        UnknownCall.note(now)
        return Answer(404, {"detail": NOT_FOUND})
    refused = webhooks.refusal(hook.scheme, _secrets(hook, now), request.headers, request.body, int(now.timestamp()))
    if refused:
        _keep_refused(hook, request, 404, refused, now)
        return Answer(404, {"detail": NOT_FOUND})
    spec = read_trigger([tuple(tag) for tag in hook.trigger.tags])
    said = webhooks.read_body(request.headers.get("content-type", ""), request.body)
    arguments, wrong = webhooks.arguments(spec.data.params if spec and spec.data else (), said)
    if wrong:
        why = webhooks.unread(request.headers.get("content-type", ""), request.body, said)
        words = f"{why + ': ' if why else ''}{'; '.join(wrong)}."[:300]
        _keep_refused(hook, request, 422, words, now)
        return Answer(422, {"detail": words})
    return _accept(hook, request, {"arguments": arguments, "body": said}, hook.is_test(token), now)


def replay(delivery: Delivery, key: str, now: datetime) -> Run | None:
    """The same request once more, as a run of its own for each key; None where it was only counted."""
    spec = read_trigger([tuple(tag) for tag in delivery.trigger.tags])
    said = webhooks.read_body(str(delivery.headers.get("content-type", "")), bytes(delivery.body))
    arguments, _ = webhooks.arguments(spec.data.params if spec and spec.data else (), said)
    occasion_key = delivery_key(f"replay:{delivery.pk}:{key}")
    return _run(delivery, occasion_key, {"arguments": arguments, "body": said}, 0, now)


def _secrets(hook: Hook, now: datetime) -> list[str]:
    sealed = [hook.sealed] if hook.sealed else []
    if hook.old_sealed and hook.old_until and hook.old_until > now:
        sealed.append(hook.old_sealed)
    return [signing.unseal(one) for one in sealed]


def _accept(hook: Hook, request: Request, payload: dict[str, Any], test: bool, now: datetime) -> Answer:
    digest = hashlib.sha256(request.body).hexdigest()
    named = webhooks.delivery_id(hook.scheme, request.headers, request.body)
    key = f"id:{named}" if named else f"body:{digest}" if hook.by_content else f"once:{secrets.token_hex(16)}"
    delivery = Delivery(
        trigger=hook.trigger, at=now, key=delivery_key(key), accepted=True, test=test, body=request.body,
        body_hash=digest, headers=webhooks.kept_headers(request.headers), status=202,
    )  # fmt: skip
    if test:
        delivery.save(force_insert=True)
        return Answer(202, {"delivery": delivery.pk, "test": True, "arguments": payload["arguments"], "run": None})
    try:
        with transaction.atomic():
            delivery.save(force_insert=True)  # of twenty at once, one gets past this line
            run = _run(delivery, delivery.key, payload, request.hops, now)
            delivery.run = run
            delivery.save(update_fields=["run"])
    except IntegrityError:
        first = Delivery.objects.select_related("run").get(
            trigger=hook.trigger, key=delivery.key, accepted=True, test=False
        )
        return _again(first, digest, hook.waits)
    return Answer(202, _said(delivery), run, hook.waits)


def _again(first: Delivery, digest: str, waits: bool) -> Answer:
    if first.body_hash != digest:
        return Answer(409, {"detail": "A delivery with this id came before, with another body.", "delivery": first.pk})
    return Answer(200, {**_said(first), "duplicate": True}, first.run, waits)


def _run(delivery: Delivery, key: str, payload: dict[str, Any], hops: int, now: datetime) -> Run | None:
    occasion = Occasion("webhook", key, int(now.timestamp()), payload=payload, depth=hops)
    return next(iter(dispatch.runs_for(occasion, now, [delivery.trigger_id])), None)


def _said(delivery: Delivery) -> dict[str, Any]:
    run = delivery.run
    held = run.reason_words if run is not None and run.status == Run.Status.SUPPRESSED else ""
    if run is None:
        held = "This was held back and only counted, as many others of this minute."
    status = run.status if run else Run.Status.SUPPRESSED
    return {"delivery": delivery.pk, "run": run.pk if run else None, "status": status, "held_back": held}


def _keep_refused(hook: Hook, request: Request, status: int, words: str, now: datetime) -> None:
    """The newest hundred, each cut short: whoever knows the address must not fill the disk."""
    Delivery.objects.create(
        trigger=hook.trigger, at=now, key=secrets.token_hex(16), accepted=False, status=status, reason=words,
        headers=webhooks.kept_headers(request.headers), body=request.body[: Delivery.LONGEST_REFUSED],
        body_hash=hashlib.sha256(request.body).hexdigest(),
    )  # fmt: skip
    refused = Delivery.objects.filter(trigger=hook.trigger, accepted=False).order_by("-pk")
    oldest = refused.values_list("pk", flat=True)[Delivery.MOST_REFUSED : Delivery.MOST_REFUSED + 1].first()
    if oldest is not None:
        refused.filter(pk__lte=oldest).delete()
