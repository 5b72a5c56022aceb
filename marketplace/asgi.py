"""ASGI entry point, for servers that want one; WSGI is faster here."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")
application = get_asgi_application()
