"""Pages kept in memory: what nobody's sign-in changes is rendered once per catalogue version and minute."""

import gzip
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.cache import get_conditional_response, patch_vary_headers

from marketplace.models import CatalogueVersion

MAX_BYTES = 32_000_000
# Times on a page read "5 min ago": a kept one is at most a minute behind.
FRESH_SECONDS = 60
VARY = ("HX-Request", "HX-History-Restore-Request", "Cookie", "Accept-Encoding")


@dataclass(frozen=True, slots=True)
class Page:
    body: bytes  # compressed
    etag: str
    headers: tuple[tuple[str, str], ...] = ()


class Shelf:
    """The most recently used values up to a number of bytes, shared by a process's threads."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes, self.held = max_bytes, 0
        self._items: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any:
        with self._lock:
            if key not in self._items:
                return None
            self._items.move_to_end(key)
            return self._items[key][0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        with self._lock:
            if key in self._items:
                self.held -= self._items.pop(key)[1]
            self._items[key] = (value, size)
            self.held += size
            while self.held > self.max_bytes:
                self.held -= self._items.popitem(last=False)[1][1]

    def clear(self) -> None:
        with self._lock:
            self._items.clear()
            self.held = 0


shelf = Shelf()


def is_fragment(request: HttpRequest) -> bool:
    """Whether htmx wants a part; going back in history always gets the whole page."""
    headers = request.headers
    return headers.get("HX-Request") == "true" and headers.get("HX-History-Restore-Request") != "true"


def current() -> tuple[int, int]:
    """What a kept value is valid for. One query."""
    return CatalogueVersion.current(), int(time.time()) // FRESH_SECONDS


View = Callable[..., HttpResponse]


def for_visitors(view: View) -> View:
    """Keep a view's answers to signed-out visitors; everybody else passes through."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method not in {"GET", "HEAD"} or request.user.is_authenticated or "messages" in request.COOKIES:
            response = view(request, *args, **kwargs)
            patch_vary_headers(response, VARY[:3])
            return response
        key = (*current(), request.get_full_path(), is_fragment(request))
        page = shelf.get(key)
        if page is None:
            response = view(request, *args, **kwargs)
            if response.status_code != 200 or response.cookies:
                patch_vary_headers(response, VARY[:3])
                return response
            page = _keep(key, response)
        return _answer(request, page)

    return wrapped


def _keep(key: Hashable, response: HttpResponse) -> Page:
    digest = hashlib.blake2b(response.content, digest_size=12).hexdigest()
    headers = tuple((name, value) for name, value in response.headers.items() if name not in {"Content-Length", "Vary"})
    # Compressed once here and not by the middleware on every request. mtime 0: same bytes for the same page.
    page = Page(gzip.compress(response.content, 6, mtime=0), f'W/"{digest}"', headers)
    shelf.put(key, page, len(page.body) + 1_000)
    return page


def _answer(request: HttpRequest, page: Page) -> HttpResponse:
    headers = dict(page.headers) | {"ETag": page.etag, "Vary": ", ".join(VARY), "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match"):
        unchanged = get_conditional_response(request, page.etag)
        if isinstance(unchanged, HttpResponseNotModified):
            for name in ("Vary", "Cache-Control"):
                unchanged.headers[name] = headers[name]
            return unchanged
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return HttpResponse(page.body, headers={**headers, "Content-Encoding": "gzip"})
    return HttpResponse(gzip.decompress(page.body), headers=headers)
