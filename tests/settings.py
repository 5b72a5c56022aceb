"""The product's settings, on a throw-away data folder and without a running broker."""

import atexit
import os
import shutil
import tempfile

_var = os.environ.get("JOURNEYMAN_VAR")
if not _var:
    _var = tempfile.mkdtemp(prefix="journeyman-test-")
    os.environ["JOURNEYMAN_VAR"] = _var
    atexit.register(shutil.rmtree, _var, ignore_errors=True)
if os.environ.get("TEST_DATABASE_URL") and os.environ.get("TEST_ON_POSTGRES"):
    os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]
os.environ.setdefault("JOURNEYMAN_LOG_LEVEL", "WARNING")

from marketplace.settings import *  # noqa: E402, F403

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CELERY_BROKER_URL = "memory://"
# WhiteNoise warns of a missing folder, and warnings are errors here.
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # noqa: F405
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    # A file, as in production: SQLite in memory knows no waiting between threads.
    DATABASES["default"]["TEST"] = {"NAME": str(VAR_DIR / "test.sqlite3")}  # noqa: F405
