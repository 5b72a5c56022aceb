"""The site's addresses and one view that does nothing, served side by side."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from marketplace.urls import urlpatterns as own


def empty(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


urlpatterns = [path("empty/", empty), *own]
