"""`kill -9` at random moments: every occasion still makes one run, every run ends, every note is sent once."""

import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests import armed
from tests.caller import ToolCaller
from tests.stack import Stack, eventually

pytestmark = [pytest.mark.stack]

SEED = int(os.environ.get("TEST_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 1_000_000)
ROUNDS = 2  # after three deliveries a run would be parked, and not succeed

# What a minute of waiting would bring: leases of workers killed before `cut` run out, lost messages are sent again.
# Leases that living workers took since are later than `cut`, and stay.
PASS_TIME = """
from datetime import datetime
from django.utils import timezone
from agents.models import Run
Run.objects.filter(status="running", lease_until__lt=datetime.fromisoformat("{cut}")).update(lease_until=timezone.now())
Run.objects.claimable(timezone.now()).update(announced_at=None)
"""


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def find(stack: Stack, what: str) -> int | None:
    """A process of the product: the worker's parent, one of its children, or the listener."""
    alive = stack.children()
    if what == "listener":
        return next((pid for pid, line in alive.items() if line.rstrip().endswith("manage.py listen")), None)
    workers = [pid for pid, line in alive.items() if "-Q runs" in line]
    own = [pid for pid in workers if (parent_of(pid) in workers) == (what == "child")]
    return own[0] if own else None


def kill(stack: Stack, what: str) -> None:
    pid = eventually(60, lambda: find(stack, what), f"there is a {what} to kill")
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)


def kill_at_a_note(stack: Stack, pubkey: str) -> None:
    """The worker, parent and children, as soon as the relay has a note: mostly before its result is on record."""
    with connect(stack.relay) as socket:
        socket.send(json.dumps(["REQ", "new", {"authors": [pubkey], "kinds": [1], "since": int(time.time())}]))
        while json.loads(socket.recv(10))[0] != "EOSE":
            continue
        eventually(60, lambda: find(stack, "child"), "there is a worker to kill")
        socket.recv(60)
        for pid in [pid for pid, line in stack.children().items() if "-Q runs" in line]:
            with suppress(ProcessLookupError):  # a child ends with its parent
                os.kill(pid, signal.SIGKILL)


def a_round_of_kills(stack: Stack, chance: random.Random, pubkey: str) -> None:
    """Child and listener in any order, the whole worker last: then every lease taken until now is one to run out."""
    for what in chance.sample(["child", "listener"], 2):
        time.sleep(chance.uniform(0.2, 2.0))
        kill(stack, what)
    time.sleep(chance.uniform(0.2, 2.0))
    kill_at_a_note(stack, pubkey)
    # A new worker needs more than a second to its first lease.
    cut = datetime.now(UTC) + timedelta(seconds=61)
    armed.shell(stack, PASS_TIME.format(cut=cut.isoformat()))


def publish(stack: Stack, chance: random.Random, sent: list[str], over: threading.Event) -> None:
    with connect(stack.relay) as socket:
        while not over.wait(chance.uniform(0.2, 1.0)):
            event = armed.call(f"occasion-{len(sent)}")
            armed.send(socket, event)
            sent.append(event.id)


def test_kills_lose_no_occasion_and_repeat_no_effect(tmp_path: Path) -> None:
    print(f"TEST_KILL_SEED={SEED}")
    chance, sent = random.Random(SEED), list[str]()
    with ToolCaller("nostr_post", delay=0.2) as model:
        environment = {
            "JOURNEYMAN_LLM_BASE_URL": model.url,
            "JOURNEYMAN_LLM_API_KEY": "test",
            "JOURNEYMAN_DEFAULT_LLM": "openai/gpt-4o-mini",
            "JOURNEYMAN_TRIGGER_COOLDOWN": "0",
            "JOURNEYMAN_MAX_CONCURRENT_TRIGGERS": "10000",
            "JOURNEYMAN_LLM_ACTIONS_PER_MINUTE": "100000",
        }
        with Stack(tmp_path, **environment) as stack:
            eventually(40, stack.healthy, "everything is ok")
            pubkey = armed.arm(stack, "nostr_post")
            over = threading.Event()
            calls = threading.Thread(target=publish, args=(stack, random.Random(SEED + 1), sent, over))
            calls.start()
            try:
                for _ in range(ROUNDS):
                    a_round_of_kills(stack, chance, pubkey)
            finally:
                over.set()
                calls.join(20)
            eventually(75, lambda: settled(stack, len(sent)), "every occasion has its run, and every run has ended")
            runs = armed.runs(stack)
            print(f"{len(runs)} runs, met by kills: {[run['deliveries'] - 1 for run in runs if run['deliveries'] > 1]}")
            assert sorted(run["occasion_key"] for run in runs) == sorted(sent)
            assert {run["status"] for run in runs} == {"succeeded"}, runs
            assert max(run["deliveries"] for run in runs) > 1, "no kill met a run"
            posted = Counter(re.match(r"occasion-\d+", note)[0] for note in armed.notes(stack, pubkey))  # type: ignore[index]
            assert posted == {f"occasion-{number}": 1 for number in range(len(sent))}


def test_idle_children_that_are_killed_leave_a_worker_that_hears(tmp_path: Path) -> None:
    with Stack(tmp_path) as stack:
        eventually(60, stack.healthy, "everything is ok")
        headers = armed.token(stack)
        for _ in range(6):
            kill(stack, "child")
            time.sleep(0.5)
            body = {"agent": "demo", "message": "Do you hear me?"}
            run = httpx.post(f"{stack.url}/api/v1/runs", json=body, headers=headers).json()["id"]
            eventually(15, lambda run=run: ended(stack, run, headers), "the run ends")  # type: ignore[misc]


def ended(stack: Stack, run: str, headers: dict[str, str]) -> bool:
    found = httpx.get(f"{stack.url}/api/v1/runs/{run}", headers=headers)
    return bool(found.json()["status"] == "succeeded")


def settled(stack: Stack, occasions: int) -> bool:
    time.sleep(2)
    runs = armed.runs(stack)
    return len(runs) >= occasions and not {run["status"] for run in runs} & {"queued", "running", "waiting"}
