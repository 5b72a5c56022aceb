"""Pages for what went wrong: what happened, that nothing was lost, and where to go."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseServerError
from django.shortcuts import render
from django.views.decorators.csrf import requires_csrf_token


@requires_csrf_token
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    too_big = isinstance(exception, RequestDataTooBig)
    return _page(request, 400, "What your browser sent is larger than this site takes." if too_big else "")


@requires_csrf_token
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page(request, 403)


@requires_csrf_token
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    # A view may say in its Http404 what is missing; the resolver's own words are for programmers.
    words = exception.args[0] if exception.args and isinstance(exception.args[0], str) else ""
    return _page(request, 404, words)


@requires_csrf_token
def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _page(
        request, 403, "The form was too old, or came from another site. Go back, reload the page and send it again."
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Without the frame: whatever broke may be in it."""
    if request.headers.get("HX-Request"):
        return HttpResponseServerError(
            '<p class="notice notice-error" role="alert">This part of the page failed. '
            "Nothing was lost; reload to try again.</p>"
        )
    return render(None, "500.html", status=500)


def _page(request: HttpRequest, status: int, words: str = "") -> HttpResponse:
    fragment = request.headers.get("HX-Request") and not request.headers.get("HX-History-Restore-Request")
    name = "_error.html" if fragment else f"{status}.html"
    return render(request, name, {"words": words, "status": status}, status=status)
