"""What every page's frame needs: its name, the navigation, and where one may sign in."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

# Label, URL name, first path segments that belong to it, who sees it.
NAVIGATION = (
    ("Skills", "skill_list", ("", "skills", "authors", "drafts"), "all"),
    ("Triggers", "triggers", ("triggers",), "all"),
    ("Agents", "agents", ("agents",), "owner"),
    ("Runs", "runs", ("runs",), "owner"),
    ("Costs", "costs", ("costs",), "owner"),
    ("Operate", "operate", ("operate",), "staff"),
)


def chrome(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    signed_in = user is not None and user.is_authenticated
    seen = {"all"} | ({"owner"} if signed_in else set()) | ({"staff"} if user is not None and user.is_staff else set())
    segment = request.path.split("/", 2)[1]
    navigation = [
        {"label": label, "url": url, "here": segment in segments}
        for label, name, segments, audience in NAVIGATION
        if audience in seen and (url := _url(name))
    ]
    return {
        "site_name": settings.SITE_NAME,
        "navigation": navigation,
        "account_url": _url("account") if signed_in else "",
        "sign_in_url": "" if signed_in else _url("account_login"),
    }


def _url(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""
