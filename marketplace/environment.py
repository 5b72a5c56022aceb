"""Strict readers of environment variables, apart so that settings stay one flat list."""

import os
import secrets
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def flag(name: str, default: bool) -> bool:
    raw = os.environ.get(name)
    if raw is None:
        return default
    word = raw.strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be one of true or false, not {raw!r}")


def number(name: str, default: int, low: int, high: int) -> int:
    raw = os.environ.get(name, "").strip()
    if not raw:
        return default
    if not raw.isascii() or not raw.isdigit() or not low <= int(raw) <= high:
        raise ImproperlyConfigured(f"{name} must be a whole number from {low} to {high}, not {raw!r}")
    return int(raw)


def words(name: str, default: str = "") -> list[str]:
    """Values separated by commas or white space."""
    return [word for word in text(name, default).replace(",", " ").split() if word]


def folders(name: str) -> list[str]:
    """Folders on this machine, separated as in PATH."""
    found = [part.strip() for part in text(name).split(os.pathsep) if part.strip()]
    for folder in found:
        if not Path(folder).is_absolute() or not Path(folder).is_dir():
            raise ImproperlyConfigured(f"{name}: {folder!r} is not a folder on this machine; name each from the root /")
    return found


def relay_urls(name: str, default: str = "") -> list[str]:
    found = words(name, default)
    for url in found:
        parts = urlsplit(url)
        if parts.scheme not in {"ws", "wss"} or not parts.hostname:
            raise ImproperlyConfigured(f"{name}: {url!r} is not a ws:// or wss:// address")
    return [url.rstrip("/") for url in found]


def database(name: str, sqlite_path: str) -> dict[str, object]:
    """Django's database entry from a postgresql:// address; SQLite when nothing is set."""
    raw = text(name)
    if not raw:
        return sqlite(sqlite_path)
    parts = urlsplit(raw)
    if parts.scheme == "sqlite" and parts.path:
        return sqlite(parts.path)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(f"{name} must start with postgresql:// or sqlite:///, not {parts.scheme!r}")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "postgres",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
    }


def sqlite(path: str) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        # Persistent connections are safe here: one per thread, and WAL readers never block.
        "CONN_MAX_AGE": 600,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-4000;"
            ),
        },
    }


def kept_secret(path: Path) -> str:
    """The text of a secret file, made at first use: mode 600, and whole or not there at all."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            os.write(handle, secrets.token_urlsafe(64).encode())
            os.link(temporary, path)  # of two first starts at once, one wins and both read it
        except FileExistsError:
            pass
        finally:
            os.close(handle)
            Path(temporary).unlink()
    return path.read_text().strip()
