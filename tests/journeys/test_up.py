"""`make up`: one command starts everything, one signal ends it, what dies comes back."""

import fcntl
import os
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest

from tests.stack import Stack, eventually

pytestmark = [pytest.mark.stack]


def test_it_starts_heals_stops_and_starts_again_on_old_data(tmp_path: Path) -> None:
    with Stack(tmp_path) as stack:
        eventually(20, stack.healthy, "everything is ok")
        listed = httpx.get(f"{stack.url}/api/v1/skills?limit=50").json()["items"]
        assert len(listed) == 14
        counts = [skill["adopters"] for skill in listed]
        assert counts == sorted(counts, reverse=True)
        worker = next(pid for pid, line in stack.children().items() if "-Q runs" in line)
        os.kill(worker, signal.SIGKILL)
        eventually(20, lambda: "worker ended (signal SIGKILL)" in stack.log, "the supervisor says so")
        again = eventually(
            20, lambda: [p for p, line in stack.children().items() if "-Q runs" in line and p != worker], "a new worker"
        )
        assert again
        began = time.monotonic()
        assert stack.stop() == 0
        assert time.monotonic() - began < 5.5
        assert stack.children() == {}
    with Stack(tmp_path) as second:
        print(f"started again within {second.took:.1f} s")
        assert len(httpx.get(f"{second.url}/api/v1/skills?limit=50").json()["items"]) == 14
        eventually(20, second.healthy, "everything is ok again")


def test_a_second_copy_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "up.lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        second = Stack(tmp_path)
        with pytest.raises(AssertionError), second:
            pass
    assert f"Another copy runs on the data in {tmp_path}" in second.log
    assert second.process.returncode == 1


def test_a_taken_port_ends_everything_with_a_sentence(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", stack.port))
        other.listen()
        with pytest.raises(AssertionError), stack:
            pass
    assert f"Port {stack.port} is taken" in stack.log
    assert stack.process.returncode == 1
