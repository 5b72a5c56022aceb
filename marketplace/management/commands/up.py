"""Set up and run everything on this machine: what `make up` calls."""

import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from marketplace.management.supervisor import Child, Out, Supervisor

RELAY_STARTS_WITHIN = 15.0
WEB_STARTS_WITHIN = 30.0


def taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def serves() -> bool:
    """Whether the web process answers, healthy or not."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{settings.PORT}/healthz", timeout=2).close()  # noqa: S310
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


class Command(BaseCommand):
    help = "Set up and run web, relay, listener, worker and tick; Ctrl-C ends them all."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", choices=["", "local"], default=os.environ.get("MODEL", ""))

    def handle(self, *args: Any, **options: Any) -> None:
        self.out = Out(width=8)
        local = options["model"] == "local"
        self._refuse_taken_ports(local)
        self._set_up()
        supervisor = Supervisor(self.out)
        supervisor.listen_for_signals()
        self._start(supervisor, local)
        if not supervisor.stopping.is_set():
            self._say_where(supervisor)
        sys.exit(supervisor.run())

    def _refuse_taken_ports(self, local: bool) -> None:
        wanted = {"PORT": settings.PORT}
        if settings.EMBEDDED_RELAY:
            wanted["RELAY_PORT"] = settings.RELAY_PORT
        if local:
            wanted["LOCAL_MODEL_PORT"] = settings.LOCAL_MODEL_PORT
        for name, port in wanted.items():
            if taken(port):
                self.out.line("up", f"Port {port} is taken by another program. Choose one: {name}={port + 1} make up")
                sys.exit(1)

    @contextmanager
    def _step(self, words: str) -> Iterator[None]:
        started = time.monotonic()
        self.out.line("up", f"{words} …")
        yield
        self.out.line("up", f"{words}: done in {time.monotonic() - started:.1f} s")

    def _set_up(self) -> None:
        with self._step("bringing the database up to date"):
            call_command("migrate", interactive=False, verbosity=0)
        with self._step("collecting static files"):
            call_command("collectstatic", interactive=False, verbosity=0)

    def _start(self, supervisor: Supervisor, local: bool) -> None:
        environment = local_model_environment() if local else {}
        if settings.EMBEDDED_RELAY:
            supervisor.add(Child("relay", manage("relay"), fatal=lost_port("relay", "RELAY_PORT", settings.RELAY_PORT)))
            if not supervisor.wait_for(lambda: answers(settings.RELAY_PORT), RELAY_STARTS_WITHIN):
                return supervisor.fail(
                    f"The relay did not start on port {settings.RELAY_PORT}; its lines above say why."
                )
        if local:
            supervisor.add(Child("model", manage("local_model")))
        for name, arguments in processes().items():
            fatal = lost_port("web", "PORT", settings.PORT) if name == "web" else lambda code: None
            supervisor.add(Child(name, arguments, environment, fatal))
        return None

    def _say_where(self, supervisor: Supervisor) -> None:
        with self._step("creating the owner, the demo agent and the sample world"):
            call_command("prepare", verbosity=0)
        if not supervisor.wait_for(serves, WEB_STARTS_WITHIN):
            return supervisor.fail("The web process did not start; its lines above say why.")
        self.out.line("up", "")
        self.out.line("up", f"Journeyman is at {settings.SITE_URL}/")
        call_command("sign_in_link", stdout=Lines(self.out))
        self.out.line("up", "Ctrl-C ends it.")
        return None


class Lines:
    """A stream for commands whose output belongs into the one log."""

    def __init__(self, out: Out) -> None:
        self.out = out

    def write(self, text: str) -> None:
        if text.strip():
            self.out.line("up", text.rstrip())

    def flush(self) -> None:
        """Nothing is held back."""


def manage(command: str, *arguments: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), command, *arguments]


def processes() -> dict[str, list[str]]:
    celery = [sys.executable, "-m", "celery", "-A", "marketplace.celery", "worker", "--loglevel=WARNING"]
    celery += ["--without-gossip", "--without-mingle"]
    return {
        "web": [sys.executable, "-m", "gunicorn", "marketplace.wsgi", *gunicorn_arguments()],
        "worker": [*celery, "-Q", "runs", "-n", "runs@%h", "-c", str(settings.WORKER_CONCURRENCY)],
        "tick": [*celery, "-Q", "tick", "-n", "tick@%h", "-P", "solo", "-B", "-s", str(settings.VAR_DIR / "beat")],
        "listener": manage("listen"),
    }


def gunicorn_arguments() -> list[str]:
    return [
        *("--bind", f"127.0.0.1:{settings.PORT}", "--worker-class", "gthread", "--threads", "4"),
        *("--workers", str(settings.WEB_PROCESSES), "--graceful-timeout", "3", "--keep-alive", "15"),
        # No access log: addresses of webhooks are secrets.
        *("--log-level", "warning", "--no-control-socket", "--worker-tmp-dir", "/dev/shm"),
    ]


def lost_port(name: str, variable: str, port: int) -> Any:
    """The sentence that ends everything when another program took the port meanwhile."""

    def fatal(code: int) -> str | None:
        if code and taken(port):
            return f"The {name} ended because port {port} is taken. Choose another: {variable}={port + 1} make up"
        return None

    return fatal


def local_model_environment() -> dict[str, str]:
    """Every agent without a model of its own uses the one served here."""
    return {
        "JOURNEYMAN_DEFAULT_LLM": os.environ.get("JOURNEYMAN_DEFAULT_LLM", "openai/smollm2-135m-instruct"),
        "JOURNEYMAN_LLM_BASE_URL": f"http://127.0.0.1:{settings.LOCAL_MODEL_PORT}/v1",
        "JOURNEYMAN_LLM_API_KEY": "local",
    }
