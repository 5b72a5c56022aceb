"""The app that knows which skills exist."""

from django.apps import AppConfig


class MarketplaceConfig(AppConfig):
    name = "marketplace"

    def ready(self) -> None:
        # Here and not in __init__, so that the pure core imports without Celery.
        from marketplace import celery

        celery.app.set_default()
        # Listens to `touched`, so that counts follow every list that is stored.
        from marketplace import recount  # noqa: F401
