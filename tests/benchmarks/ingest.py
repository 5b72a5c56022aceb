"""Ingest with archive and projections against signature checks alone and bulk insert alone, on one core.

Run as a script: `python -m tests.benchmarks.ingest [events]`. Exits with 1 where a promise is broken. Where other
programs keep the machine busy, the ratios of CPU time say more than those of the clock: both are printed.
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
from collections.abc import Callable
from typing import NamedTuple

EVENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
SHARE = 2 / 5  # of what signature checks alone reach
BATCH = 1_000  # as `manage.py ingest` hands them over
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


def lines(count: int, seed: int = 1, skills: float = 0.67, edits: bool = False) -> list[str]:
    """What a relay of skills holds: two thirds skills, a quarter lists, profiles, some deletions.

    Each list names other skills than the one before, which is the most work there can be; with `edits` it is the
    one before with a skill more, and now and then one less, as people make them.
    """
    chance = random.Random(seed)
    keys = [Key(f"bench{number}") for number in range(max(20, count // 20))]
    addresses: list[str] = []
    adopted: dict[str, list[str]] = {}
    found = []
    for number in range(count):
        key, roll = chance.choice(keys), chance.random()
        if roll < skills or len(addresses) < 30:
            event = _skill(key, f"skill-{number}", T0 + number, chance)
            addresses.append(str(event.address))
        elif roll < 0.92:
            named = chance.sample(addresses[-3_000:], chance.randint(3, 20))
            if edits:
                before = adopted.get(key.name)
                named = [*before[chance.random() < 0.2 :], *set(named[:1]).difference(before)] if before else named
                adopted[key.name] = named
            event = key.adopts(*named, at=T0 + number)
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


class Rate(NamedTuple):
    """Events a second, by the clock and by the CPU time of this process."""

    clock: float
    cpu: float

    def of(self, other: "Rate") -> str:
        return f"{self.clock / other.clock:.2f} of checks alone ({self.cpu / other.cpu:.2f} by CPU time)"


def rate(count: int, work: Callable[[], object]) -> Rate:
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return Rate(count / (time.perf_counter() - started), count / (time.process_time() - cpu))


def checks_alone(raw: list[str]) -> Rate:
    return rate(len(raw), lambda: [checks.check(line) and None for line in raw])


def insert_alone(raw: list[str]) -> Rate:
    events = [checks.parse(line) for line in raw]

    def insert() -> None:
        for start in range(0, len(events), BATCH):
            with transaction.atomic():
                archive.write(events[start : start + BATCH], {}, NOW)

    found = rate(len(raw), insert)
    ArchivedEvent.objects.all().delete()
    return found


def stored(raw: list[str]) -> Rate:
    def store() -> None:
        for start in range(0, len(raw), BATCH):
            ingest.store([Incoming(line) for line in raw[start : start + BATCH]], NOW)

    return rate(len(raw), store)


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
    before, inserted = checks_alone(raw), insert_alone(raw)
    only = stored(lines(EVENTS // 4, seed=3, skills=1.0))
    edited = stored(lines(EVENTS // 2, seed=4, edits=True))
    known = Skill.objects.count()
    whole = stored(raw)
    after = checks_alone(raw)  # the machine may have become slower meanwhile
    alone = Rate((before.clock + after.clock) / 2, (before.cpu + after.cpu) / 2)
    size = Skill.objects.count() - known
    again = stored(raw[: EVENTS // 2])
    more = lines(EVENTS, seed=2)
    quiet = sorted(json.loads(writer(3).communicate()[0]))
    other = writer(max(3.0, EVENTS / 2_000))
    time.sleep(1.0)
    contended = stored(more)
    waits = sorted(json.loads(other.communicate()[0]))
    p50, p99 = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    print(f"signature checks alone   {alone.clock:8,.0f} events/s, {alone.cpu:8,.0f} by CPU time")
    print(f"bulk insert alone        {inserted.clock:8,.0f} events/s = {inserted.of(alone)}")
    print(f"ingest, everything       {whole.clock:8,.0f} events/s = {whole.of(alone)}; {size:,} skills")
    print(f"  with lists as edited   {edited.clock:8,.0f} events/s = {edited.of(alone)}")
    print(f"  of skills alone        {only.clock:8,.0f} events/s = {only.of(alone)}")
    print(f"  of duplicates          {again.clock:8,.0f} events/s = {again.of(alone)}")
    print(f"ingest beside a writer   {contended.clock:8,.0f} events/s; its p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    print(f"that writer by itself    p99 {quiet[int(len(quiet) * 0.99)]:.1f} ms")
    print(f"resident memory          {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8,.0f} MB at most")
    return int(whole.clock < SHARE * alone.clock or p99 > MOST_WAIT)


if __name__ == "__main__":
    if "BENCH_WRITER" in os.environ:
        small_writes(float(os.environ["BENCH_WRITER"]))
        sys.exit()
    try:
        code = main()
    finally:
        shutil.rmtree(os.environ["JOURNEYMAN_VAR"], ignore_errors=True)
    sys.exit(code)
