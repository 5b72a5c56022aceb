"""The addresses that other programs call: `/hooks/<token>`."""

import threading
import time
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables

from agents.dispatch import receiving
from agents.models import Run

LARGEST = 1_000_000  # bytes of a body
PIECE, MOST_POURED = 65_536, 32_000_000  # bytes of a body that is too large and thrown away
LONGEST_WAIT = 30.0  # seconds
LOOK_EVERY = 0.2
# A web process has few threads: two may wait for an output, the others go on answering.
_WAITING = threading.BoundedSemaphore(2)


@sensitive_variables("token")
@csrf_exempt  # no session is looked at: the address and the signature are the credential
@never_cache
def hook(request: HttpRequest, token: str) -> HttpResponse:
    if request.method != "POST":
        return JsonResponse({"detail": "Send a POST."}, status=405, headers={"Allow": "POST"})
    body = _body(request)
    if body is None:
        _pour_out(request)
        return JsonResponse({"detail": f"The body has more than {LARGEST:,} bytes."}, status=413)
    headers = {name.lower(): value for name, value in request.headers.items()}
    answer = receiving.receive(token, receiving.Request(headers, body), timezone.now())
    if answer.run is None:
        return JsonResponse(answer.said, status=answer.status)
    where = request.build_absolute_uri(reverse("run", args=[answer.run.pk]))
    run, status = answer.run, answer.status
    said: dict[str, Any] = {**answer.said, "url": where}
    if answer.waits and request.GET.get("wait", "") not in {"", "0"} and _waited(run, request.GET["wait"]):
        said |= {"status": run.status, "output": run.output, "reason": run.reason_words}
        status = 200
    return JsonResponse(said, status=status, headers={"Location": where})


def _body(request: HttpRequest) -> bytes | None:
    """The raw bytes; None where they are too many. Without a length (chunked) they are read up to the limit."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isdigit():
        return request.body if int(length) <= LARGEST else None
    source = request.META.get("wsgi.input")
    body = source.read(LARGEST + 1) if source is not None and request.META.get("wsgi.input_terminated") else b""
    return body if len(body) <= LARGEST else None


def _pour_out(request: HttpRequest) -> None:
    """What is not read of a body would be taken for the next request of its connection."""
    source, length = request.META.get("wsgi.input"), request.META.get("CONTENT_LENGTH") or ""
    left = min(int(length), MOST_POURED) if length.isdigit() else MOST_POURED
    while source is not None and left > 0:
        piece = source.read(min(PIECE, left))
        left = left - len(piece) if piece else 0


def _waited(run: Run, asked: str) -> bool:
    """Whether the run ended while we waited for it, as long as was asked and not longer than 30 seconds."""
    seconds = float(asked) if asked.isascii() and asked.isdigit() and len(asked) < 5 else LONGEST_WAIT
    if not _WAITING.acquire(blocking=False):
        return False
    try:
        until = time.monotonic() + min(seconds, LONGEST_WAIT)
        while not run.is_final and time.monotonic() < until:
            time.sleep(LOOK_EVERY)
            run.refresh_from_db(fields=["status", "output", "reason_words"])
        return run.is_final
    finally:
        _WAITING.release()
