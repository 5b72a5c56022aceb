"""Ingest with archive and projections against signature checks alone and bulk insert alone, on one core.

Run as a script: `python -m tests.benchmarks.ingest [events]`. Exits with 1 where a promise is broken.
"""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

EVENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
SHARE = 2 / 5  # of what signature checks alone reach
MOST_WAIT = 50.0  # ms; p99 of other writers meanwhile
if "BENCH_WRITER" not in os.environ:
    os.environ["JOURNEYMAN_VAR"] = tempfile.mkdtemp(prefix="journeyman-bench-")
os.environ["JOURNEYMAN_LOG_LEVEL"] = "ERROR"
os.environ["DJANGO_SETTINGS_MODULE"] = "marketplace.settings"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402

from marketplace import ingest  # noqa: E402
from marketplace.ingest import Incoming, archive  # noqa: E402
from marketplace.models import ArchivedEvent, Heartbeat, Skill  # noqa: E402
from marketplace.protocol import checks  # noqa: E402
from tests.keys import T0, Key  # noqa: E402

NOW = T0 + 100_000_000


def lines(count: int, seed: int = 1, skills: float = 0.67) -> list[str]:
    """What a relay of skills holds: two thirds skills, a quarter lists, profiles, some deletions."""
    chance = random.Random(seed)
    keys = [Key(f"bench{number}") for number in range(max(20, count // 20))]
    addresses: list[str] = []
    found = []
    for number in range(count):
        key, roll = chance.choice(keys), chance.random()
        if roll < skills or len(addresses) < 30:
            event = _skill(key, f"skill-{number}", T0 + number, chance)
            addresses.append(str(event.address))
        elif roll < 0.92:
            event = key.adopts(*chance.sample(addresses[-3_000:], chance.randint(3, 20)), at=T0 + number)
        elif roll < 0.98:
            event = key.profile(f"Author {number}", T0 + number)
        else:
            event = key.deletes(chance.choice(addresses), at=T0 + number)
        found.append(event.to_json())
    return found


def _skill(key: Key, d: str, at: int, chance: random.Random):  # type: ignore[no-untyped-def]
    template = "system:\n" + "Be brief. " * 40 + "\n{{message}}"
    content = {"description": f"Does {d} and little else", "template": template}
    tags = [["d", d], ["scope", "public"], ["t", f"topic{chance.randrange(50)}"], ["t", "bench"]]
    if chance.random() < 0.3:
        tags += [["trigger", "nostr-subscription"], ["filter", '{"kinds":[1],"#t":["x"]}'], ["tools", "nostr_post"]]
    return key.sign(31123, json.dumps(content), tags, at)


def rate(count: int, seconds: float) -> float:
    return count / seconds


def checks_alone(raw: list[str]) -> float:
    started = time.perf_counter()
    for line in raw:
        checks.check(line)
    return rate(len(raw), time.perf_counter() - started)


def insert_alone(raw: list[str]) -> float:
    events = [checks.parse(line) for line in raw]
    started = time.perf_counter()
    for start in range(0, len(events), 200):
        with transaction.atomic():
            archive.write(events[start : start + 200], {}, NOW)
    seconds = time.perf_counter() - started
    ArchivedEvent.objects.all().delete()
    return rate(len(raw), seconds)


def stored(raw: list[str]) -> float:
    started = time.perf_counter()
    for start in range(0, len(raw), 1_000):
        ingest.store([Incoming(line) for line in raw[start : start + 1_000]], NOW)
    return rate(len(raw), time.perf_counter() - started)


def small_writes(seconds: float) -> None:
    """Another process that writes a row a few times a second; prints how long each took, in ms."""
    until, waits = time.monotonic() + seconds, []
    while time.monotonic() < until:
        started = time.perf_counter()
        with transaction.atomic():
            Heartbeat.objects.update_or_create(role="bench", instance="1", defaults={"at": _aware()})
        waits.append((time.perf_counter() - started) * 1_000)
        time.sleep(0.02)
    print(json.dumps(waits))


def writer(seconds: float) -> "subprocess.Popen[str]":
    environment = {**os.environ, "BENCH_WRITER": str(seconds)}
    arguments = [sys.executable, "-m", "tests.benchmarks.ingest"]
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True)


def _aware():  # type: ignore[no-untyped-def]
    from django.utils import timezone

    return timezone.now()


def main() -> int:
    call_command("migrate", verbosity=0)
    raw = lines(EVENTS)
    alone, inserted = checks_alone(raw), insert_alone(raw)
    only = stored(lines(EVENTS // 4, seed=3, skills=1.0))
    whole = stored(raw)
    size = Skill.objects.count()
    again = stored(raw[: EVENTS // 2])
    more = lines(EVENTS, seed=2)
    quiet = sorted(json.loads(writer(3).communicate()[0]))
    other = writer(max(3.0, EVENTS / 2_000))
    time.sleep(1.0)
    contended = stored(more)
    waits = sorted(json.loads(other.communicate()[0]))
    p99 = waits[int(len(waits) * 0.99)]
    print(f"signature checks alone   {alone:8,.0f} events/s")
    print(f"bulk insert alone        {inserted:8,.0f} events/s")
    print(f"ingest, everything       {whole:8,.0f} events/s = {whole / alone:.2f} of checks alone ({size:,} skills)")
    print(f"ingest of skills alone   {only:8,.0f} events/s = {only / alone:.2f} of checks alone")
    print(f"ingest of duplicates     {again:8,.0f} events/s")
    p50 = waits[len(waits) // 2]
    print(f"ingest beside a writer   {contended:8,.0f} events/s; its p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    print(f"that writer by itself    p99 {quiet[int(len(quiet) * 0.99)]:.1f} ms")
    print(f"resident memory          {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8,.0f} MB at most")
    return int(whole < SHARE * alone or p99 > MOST_WAIT)


if __name__ == "__main__":
    if "BENCH_WRITER" in os.environ:
        small_writes(float(os.environ["BENCH_WRITER"]))
        sys.exit()
    try:
        code = main()
    finally:
        shutil.rmtree(os.environ["JOURNEYMAN_VAR"], ignore_errors=True)
    sys.exit(code)
