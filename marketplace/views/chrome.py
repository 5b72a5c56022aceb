"""What every page's frame needs."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def chrome(request: HttpRequest) -> dict[str, Any]:
    return {"site_name": settings.SITE_NAME}
