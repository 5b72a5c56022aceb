"""Webhooks from request to answer and to the start of their run, and how many triggered runs a second get through.

Run as a script: `python -m tests.benchmarks.triggered [requests] [events]`. With TEST_DATABASE_URL and TEST_REDIS_URL
the throughput is measured on PostgreSQL and Redis too, in a database of its own that is dropped afterwards.
"""

import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
from websockets.sync.client import connect

from tests import armed
from tests.stack import Stack, eventually

REQUESTS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
EVENTS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
BAR = 200.0  # milliseconds, p99 of a webhook's answer
ENVIRONMENT = {
    "JOURNEYMAN_DEFAULT_LLM": "offline/echo",
    "JOURNEYMAN_TRIGGER_COOLDOWN": "0",
    "JOURNEYMAN_MAX_CONCURRENT_TRIGGERS": "10000",
    "JOURNEYMAN_LLM_ACTIONS_PER_MINUTE": "100000",
    "JOURNEYMAN_TEMPLATE_ACTIONS_PER_MINUTE": "100000",
    "JOURNEYMAN_LOG_LEVEL": "ERROR",
}

ARM = """
import json
from django.conf import settings
from django.utils import timezone
from agents import arming
from agents.models import Agent, Hook, Trigger
from marketplace import ingest, publish, signing
from marketplace.protocol.events import Draft
agent = Agent.objects.select_related("identity").get(slug="demo")
now = timezone.now()
for d, content, tags in {skills!r}:
    at = int(timezone.now().timestamp())
    draft = Draft(agent.identity.pubkey, at, 31123, tuple(map(tuple, [["d", d], *tags])), json.dumps(content))
    event = signing.sign(agent.identity, draft)
    ingest.store([ingest.Incoming(event)], at)
    publish.adopt(agent.identity, event.address, at)
    arming.pin(agent, str(event.address), event.id, timezone.now())
Trigger.objects.filter(agent=agent).update(autonomy="auto")
print(Hook(trigger=Trigger.objects.get(kind="webhook")).readdress(now)[0])
"""
SKILLS = [
    ("hooked", {"description": "x", "template": "Say hello."}, [["trigger", "webhook"]]),
    (
        "logged",
        {"description": "x", "template": "LOG: {content}"},
        [["trigger", "nostr-subscription"], ["filter", json.dumps({"kinds": [1], "#t": [armed.TOPIC]})],
         ["action", "template"]],
    ),
]  # fmt: skip
WAITS = """
import json
from agents.models import Run
rows = Run.objects.filter(trigger_kind="webhook", started_at__isnull=False).values_list("created_at", "started_at")
print(json.dumps([(started - created).total_seconds() * 1000 for created, started in rows]))
"""
ENDED = """
import json
from django.db.models import Max, Min
from agents.models import Run
rows = Run.objects.filter(action="template", status="succeeded")
span = rows.aggregate(first=Min("created_at"), last=Max("finished_at"))
print(json.dumps([rows.count(), (span["last"] - span["first"]).total_seconds() if span["last"] else 0]))
"""


def told(name: str, found: list[float]) -> float:
    """Prints median and p99; the p99."""
    p99 = statistics.quantiles(found, n=100)[98]
    print(f"{name}: median {statistics.median(found):.0f} ms, p99 {p99:.0f} ms, of {len(found)}")
    return p99


def answers(stack: Stack, token: str) -> list[float]:
    """Milliseconds of each answer, four callers at once."""
    with httpx.Client(base_url=stack.url) as client:

        def one(number: int) -> float:
            began = time.perf_counter()
            answer = client.post(f"/hooks/{token}", json={"n": number}, headers={"Idempotency-Key": str(uuid.uuid4())})
            assert answer.status_code == 202 and answer.json()["run"], answer.text
            return (time.perf_counter() - began) * 1000

        with ThreadPoolExecutor(4) as callers:
            return list(callers.map(one, range(REQUESTS)))[4:]  # the first of each opens its connection


def throughput(stack: Stack) -> None:
    events = [armed.call(f"note {number}") for number in range(EVENTS)]
    with connect(stack.relay) as socket:
        for event in events:
            armed.send(socket, event)
    eventually(300, lambda: json.loads(armed.shell(stack, ENDED))[0] == EVENTS, "every event has its run")
    count, seconds = json.loads(armed.shell(stack, ENDED))
    print(f"{count} triggered template runs in {seconds:.1f} s: {count / seconds:.1f} a second, end to end")


@contextmanager
def server_database() -> Iterator[str]:
    given = os.environ["TEST_DATABASE_URL"]
    name = f"bench_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(given, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        try:
            yield urlsplit(given)._replace(path=f"/{name}").geturl()
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def measured(name: str, **environment: str) -> float:
    print(f"-- {name}")
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder), **ENVIRONMENT, **environment) as stack:
        eventually(60, stack.healthy, "everything is ok")
        token = armed.shell(stack, ARM.format(skills=SKILLS))
        time.sleep(2)  # the listener follows new triggers within half a second
        p99 = told("webhook to its answer", answers(stack, token))
        eventually(120, lambda: len(json.loads(armed.shell(stack, WAITS))) == REQUESTS, "every run began")
        told("webhook to the start of its run, four callers at once", json.loads(armed.shell(stack, WAITS)))
        throughput(stack)
    return p99


def main() -> int:
    worst = measured("embedded defaults")
    if "TEST_DATABASE_URL" in os.environ and "TEST_REDIS_URL" in os.environ:
        with server_database() as url:
            broker = os.environ["TEST_REDIS_URL"]
            worst = max(worst, measured("PostgreSQL and Redis", DATABASE_URL=url, CELERY_BROKER_URL=broker))
    print(f"a webhook's answer has to come within {BAR:.0f} ms at p99: {'met' if worst <= BAR else 'MISSED'}")
    return 0 if worst <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
