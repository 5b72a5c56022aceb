"""A private key in an address is masked before anything routes, shows or logs it."""

from collections.abc import Callable
from urllib.parse import parse_qsl, quote, unquote, unquote_plus, urlencode

from django.http import HttpRequest, HttpResponse

from marketplace.protocol import nip19

# What gunicorn keeps of the request line beside what WSGI names.
_RAW = ("RAW_URI", "REQUEST_URI", "HTTP_REFERER")


class SpilledKeys:
    """First of all middleware: those behind it never see the key."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        meta = request.META
        if nip19.holds_nsec(request.path_info):
            request.path, request.path_info = nip19.without_nsec(request.path), nip19.without_nsec(request.path_info)
            meta["PATH_INFO"] = request.path_info
        asked = meta.get("QUERY_STRING", "")
        if nip19.holds_nsec(unquote_plus(asked)):
            fields = parse_qsl(asked, keep_blank_values=True)
            meta["QUERY_STRING"] = urlencode(
                [(nip19.without_nsec(name), nip19.without_nsec(value)) for name, value in fields]
            )
        for name in _RAW:
            if nip19.holds_nsec(unquote(meta.get(name, ""))):
                meta[name] = quote(nip19.without_nsec(unquote(meta[name])), safe="/:?&=%")
        return self.get_response(request)
