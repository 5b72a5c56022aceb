"""The app that knows which skills exist."""

from django.apps import AppConfig
from django.conf import settings


class MarketplaceConfig(AppConfig):
    name = "marketplace"

    def ready(self) -> None:
        if settings.PROCESS == "relay":
            return  # it stores nothing and starts nothing
        # Here and not in __init__, so that the pure core imports without Celery.
        from marketplace import celery

        celery.app.set_default()
        # Listens to `touched`, so that counts follow every list that is stored.
        from marketplace import recount  # noqa: F401
