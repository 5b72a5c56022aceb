"""Keeps the processes of one machine running, apart from what they are."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import IO

STOP_AFTER = 4.0  # seconds from SIGTERM to SIGKILL; everything has ended within 5
STEADY_AFTER = 30.0  # a child that lived this long starts again at once
LONGEST_PAUSE = 30.0
PR_SET_PDEATHSIG = 1
# Two memory arenas serve a few threads as well as eight, and keep a third less memory.
LEAN = {"PYTHONUNBUFFERED": "1", "MALLOC_ARENA_MAX": "2", "MALLOC_TRIM_THRESHOLD_": "262144"}

_libc = ctypes.CDLL(None, use_errno=True)
log = logging.getLogger("supervisor")


def _end_with_parent() -> None:
    """Runs in the child: SIGTERM when the supervisor dies, so that `kill -9` leaves no orphans."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass
class Child:
    """One process, its arguments, and when it may start again."""

    name: str
    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    # Asked when it ended by itself: a sentence here ends everything.
    fatal: Callable[[int], str | None] = lambda code: None
    process: subprocess.Popen[str] | None = None
    started: float = 0.0
    failures: int = 0
    due: float = 0.0

    def start(self, out: "Out") -> None:
        self.process = subprocess.Popen(  # noqa: S603 our own command lines
            self.arguments,
            env={**os.environ, **LEAN, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C in the terminal reaches the supervisor alone
            preexec_fn=_end_with_parent,
        )
        self.started = time.monotonic()
        threading.Thread(target=out.copy, args=(self.name, self.process.stdout or ()), daemon=True).start()

    def signal(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        if number == signal.SIGKILL:
            try:
                os.killpg(self.process.pid, number)  # its whole group: worker children too
            except ProcessLookupError:
                pass
        elif self.process.poll() is None:
            self.process.send_signal(number)


class Out:
    """One log for all: every line carries the name of the process it came from."""

    def __init__(self, width: int, stream: IO[str] = sys.stdout) -> None:
        self.width = width
        self.stream = stream
        self.lock = threading.Lock()

    def line(self, name: str, text: str) -> None:
        with self.lock:
            self.stream.write(f"{name:<{self.width}} | {text}\n")
            self.stream.flush()

    def copy(self, name: str, source: Iterable[str]) -> None:
        for text in source:
            self.line(name, text.rstrip("\n"))


class Supervisor:
    """Starts children, starts again what dies, ends all at one signal."""

    def __init__(self, out: Out) -> None:
        self.out = out
        self.children: list[Child] = []
        self.stopping = threading.Event()
        self.code = 0

    def add(self, child: Child) -> None:
        self.children.append(child)
        child.start(self.out)

    def listen_for_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self.stopping.set())

    def fail(self, sentence: str) -> None:
        self.out.line("up", sentence)
        self.code = 1
        self.stopping.set()

    def run(self) -> int:
        """Until told to stop; the exit code."""
        while not self.stopping.wait(0.2):
            for child in self.children:
                self._look_after(child)
        self.stop()
        return self.code

    def wait_for(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Whether `ready` came true in time, looking after the children meanwhile."""
        until = time.monotonic() + seconds
        while not self.stopping.is_set() and time.monotonic() < until:
            if ready():
                return True
            for child in self.children:
                self._look_after(child)
            time.sleep(0.05)
        return False

    def _look_after(self, child: Child) -> None:
        if child.process is not None and (code := child.process.poll()) is not None:
            sentence = child.fatal(code)
            if sentence:
                child.process = None
                child.due = float("inf")
                self.fail(sentence)
                return
            child.signal(signal.SIGKILL)  # what it may have left behind
            lived = time.monotonic() - child.started
            child.failures = 0 if lived > STEADY_AFTER else child.failures + 1
            pause = 0.0 if child.failures == 0 else min(0.5 * 2**child.failures, LONGEST_PAUSE)
            child.due = time.monotonic() + pause
            child.process = None
            self.out.line("up", f"{child.name} ended ({_how(code)}); starting it again in {pause:.0f} s")
        if child.process is None and time.monotonic() >= child.due:
            child.start(self.out)

    def stop(self) -> None:
        self.out.line("up", "stopping")
        started = time.monotonic()
        for child in reversed(self.children):
            child.signal(signal.SIGTERM)
        while time.monotonic() - started < STOP_AFTER and any(
            child.process is not None and child.process.poll() is None for child in self.children
        ):
            time.sleep(0.02)
        for child in self.children:
            child.signal(signal.SIGKILL)
        for child in self.children:
            if child.process is not None:
                child.process.wait(timeout=1)
        self.out.line("up", f"stopped after {time.monotonic() - started:.1f} s")


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
