"""The whole product as its user starts it: `manage.py up` on free ports with a folder of its own."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import httpx

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"Sign in once: (\S+)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(seconds: float, happened: Callable[[], object], what: str) -> object:
    """What `happened` gives once it is true. Fails with words when it never is."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = happened()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


class Stack:
    """Started on entering, ended by SIGTERM on leaving."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.port, self.relay_port = free_port(), free_port()
        self.lines: list[str] = []
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
        self.environment = {
            **kept,
            "PORT": str(self.port),
            "RELAY_PORT": str(self.relay_port),
            "LOCAL_MODEL_PORT": str(free_port()),
            "JOURNEYMAN_VAR": str(folder),
            **environment,
        }
        self.url = f"http://127.0.0.1:{self.port}"
        self.relay = f"ws://127.0.0.1:{self.relay_port}"

    def __enter__(self) -> "Stack":
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "marketplace.management.up"],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        try:
            eventually(90, lambda: "Ctrl-C ends it." in self.log or self.process.poll() is not None, "the site is up")
            assert self.process.poll() is None, self.log
        except BaseException:
            self.stop()
            raise
        self.took = time.monotonic() - self.started
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
        if error is not None:
            print(self.log)

    def stop(self) -> int:
        """SIGTERM, as Ctrl-C does; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait(5)
        self.reader.join(5)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    @property
    def link(self) -> str:
        found = LINK.search(self.log)
        return found[1] if found else ""

    def manage(self, *arguments: str, given: str | None = None) -> str:
        """What a management command prints."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def health(self) -> dict[str, str]:
        found: dict[str, str] = httpx.get(f"{self.url}/healthz").json()
        return found

    def healthy(self) -> bool:
        return set(self.health().values()) == {"ok"}

    def children(self) -> dict[int, str]:
        """Every process that works on this folder, by its environment."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if f"JOURNEYMAN_VAR={self.folder}\0".encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        found.pop(self.process.pid, None)
        return found
