"""Set up and run everything on this machine: what `make up` calls.

A plain program and not a management command: it stays for as long as the site runs, and Django with
every app would cost 100 MB for nothing.
"""

import fcntl
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import IO

from django.core.exceptions import ImproperlyConfigured

from marketplace.management.supervisor import Child, Out, Supervisor

try:
    from marketplace import settings
except ImproperlyConfigured as error:
    sys.exit(f"Not started: {error}")

RELAY_STARTS_WITHIN = 30.0
WEB_STARTS_WITHIN = 60.0
SECOND_COPY = "A second one needs its own: PORT=8001 RELAY_PORT=7778 JOURNEYMAN_VAR=/some/folder make up"


def main() -> int:
    """The exit code: 0 after a signal, 1 with a sentence when it could not start."""
    out = Out(width=8)
    local = os.environ.get("MODEL", "") == "local"
    sentence = taken_port(local)
    lock = None if sentence else lock_folder()
    if lock is None:
        out.line("up", sentence or f"Another copy runs on the data in {settings.VAR_DIR}. {SECOND_COPY}")
        return 1
    if not step(out, "bringing database and static files up to date", "set_up"):
        return 1
    supervisor = Supervisor(out)
    supervisor.listen_for_signals()
    start(supervisor, local)
    if not supervisor.stopping.is_set():
        say_where(supervisor)
    return supervisor.run()


def taken_port(local: bool) -> str:
    """A sentence when another program has one of our ports, "" when all are free."""
    wanted = {"PORT": settings.PORT}
    if settings.EMBEDDED_RELAY:
        wanted["RELAY_PORT"] = settings.RELAY_PORT
    if local:
        wanted["LOCAL_MODEL_PORT"] = settings.LOCAL_MODEL_PORT
    for name, port in wanted.items():
        if taken(port):
            return f"Port {port} is taken by another program. Choose one: {name}={port + 1} make up"
    return ""


def lock_folder() -> IO[bytes] | None:
    """Holds the data folder for as long as the file stays open; None while another copy holds it."""
    # Two relays and two brokers in one folder would write over each other.
    lock = (settings.VAR_DIR / "up.lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def step(out: Out, words: str, *command: str) -> bool:
    """One management command to its end, its lines in the log; whether it worked."""
    started = time.monotonic()
    out.line("up", f"{words} …")
    done = subprocess.run(  # noqa: S603
        manage(*command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    for line in done.stdout.splitlines():
        out.line("up", line)
    how = "done" if done.returncode == 0 else "failed"
    out.line("up", f"{words}: {how} in {time.monotonic() - started:.1f} s")
    return done.returncode == 0


def start(supervisor: Supervisor, local: bool) -> None:
    environment = local_model_environment() if local else {}
    if settings.EMBEDDED_RELAY:
        fatal = lost_port("relay", "RELAY_PORT", settings.RELAY_PORT)
        supervisor.add(Child("relay", manage("relay"), lean("relay"), fatal=fatal))
        if not supervisor.wait_for(lambda: answers(settings.RELAY_PORT), RELAY_STARTS_WITHIN):
            supervisor.fail(f"The relay did not start on port {settings.RELAY_PORT}; its lines above say why.")
            return
    if local:
        supervisor.add(Child("model", manage("local_model")))
    for name, arguments in processes().items():
        child = Child(name, arguments, {**environment, **lean(name)})
        if name == "web":
            child.fatal = lost_port("web", "PORT", settings.PORT)
        supervisor.add(child)


def say_where(supervisor: Supervisor) -> None:
    if not step(supervisor.out, "looking after the owner and the sample world", "prepare"):
        supervisor.fail("The first owner could not be created; the lines above say why.")
    elif supervisor.wait_for(serves, WEB_STARTS_WITHIN):
        supervisor.out.line("up", "Ctrl-C ends it.")
    elif not supervisor.stopping.is_set():
        supervisor.fail("The web process did not start; its lines above say why.")


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
        urllib.request.urlopen(f"http://127.0.0.1:{settings.PORT}/healthz", timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def manage(command: str, *arguments: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), command, *arguments]


def lean(name: str) -> dict[str, str]:
    """So that a process loads what it needs and no more."""
    return {"JOURNEYMAN_PROCESS": name, "CELERY_SKIP_CHECKS": "1"}


def processes() -> dict[str, list[str]]:
    celery = [sys.executable, "-m", "celery", "-q", "-A", "marketplace.celery", "worker", "--loglevel=WARNING"]
    celery += ["--without-gossip", "--without-mingle"]
    return {
        "web": [sys.executable, "-m", "gunicorn", "marketplace.wsgi", *gunicorn_arguments()],
        "worker": [*celery, "-Q", "runs", "-n", "runs@%h", "-c", str(settings.WORKER_CONCURRENCY)],
        "tick": manage("tick"),
        "listener": manage("listen"),
    }


def gunicorn_arguments() -> list[str]:
    return [
        *("--bind", f"127.0.0.1:{settings.PORT}", "--worker-class", "gthread", "--threads", "4"),
        *("--workers", str(settings.WEB_PROCESSES), "--graceful-timeout", "3", "--keep-alive", "15"),
        # No access log: addresses of webhooks are secrets.
        *("--log-level", "warning", "--no-control-socket", "--worker-tmp-dir", str(settings.VAR_DIR)),
    ]


def lost_port(name: str, variable: str, port: int) -> Callable[[int], str | None]:
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


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("It takes no arguments; variables choose: PORT, RELAY_PORT, JOURNEYMAN_VAR (docs/configuration.md).")
    sys.exit(main())
