"""The ranked page at 100,000 skills and 1,000,000 adoptions, against 1,000 skills and an empty Django view.

Run as a script: `python -m tests.benchmarks.ranked_page`. Exits with 1 where a promise is broken.
"""

import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SKILLS, ADOPTIONS, FEW = 100_000, 1_000_000, 1_000
REQUESTS = 3_000
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.bench_settings"
VAR = os.environ["JOURNEYMAN_VAR"] = tempfile.mkdtemp(prefix="journeyman-bench-")
os.environ["JOURNEYMAN_LOG_LEVEL"] = "ERROR"

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, reset_queries, transaction  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from marketplace.models import Adoption, Author, CatalogueVersion, Skill  # noqa: E402
from marketplace.views import kept  # noqa: E402

KINDS = ("", "", "", "nostr-subscription", "nostr-subscription", "cron")


def fill(skills: int, adoptions: int) -> None:
    """Rows as ingest writes them: popularity falls off steeply, as it does in any catalogue."""
    chance = random.Random(7)
    keys = [f"{chance.getrandbits(256):064x}" for _ in range(max(skills // 10, 10))]
    counts = [0] * skills
    pairs = set[tuple[int, int]]()
    while len(pairs) < adoptions:
        pairs.add((min(int(chance.paretovariate(0.6)) - 1, skills - 1), chance.randrange(len(keys) * 2)))
        if len(pairs) > adoptions // 2:
            pairs.add((chance.randrange(skills), chance.randrange(len(keys) * 2)))
    for skill, _ in pairs:
        counts[skill] += 1
    with transaction.atomic():
        Author.objects.bulk_create([Author(pubkey=key, name=f"author {at}") for at, key in enumerate(keys)])
        rows = [_skill(at, keys[at % len(keys)], counts[at], chance) for at in range(skills)]
        Skill.objects.bulk_create(rows, batch_size=2_000)
        table, columns = Adoption._meta.db_table, "adopter, address, position, event_id, listed_at, counted"
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} ({columns}) VALUES (%s, %s, %s, %s, %s, %s)",
                [
                    (f"{adopter:064x}", rows[skill].address, at % 100, "e" * 64, 1, True)
                    for at, (skill, adopter) in enumerate(pairs)
                ],
            )
            cursor.execute("ANALYZE")
    CatalogueVersion.bump()


def _skill(at: int, pubkey: str, adopters: int, chance: random.Random) -> Skill:
    born = 1_700_000_000 + chance.randrange(50_000_000)
    return Skill(
        kind=31123,
        pubkey=pubkey,
        d=f"skill-{at}",
        event_id=f"{chance.getrandbits(256):064x}",
        created_at=born,
        first_published=born,
        description=f"Does the useful thing number {at} for whoever asks it politely and waits",
        llm=chance.choice(("", "openai/gpt-4o-mini, cheap", "fast")),
        trigger_kind=chance.choice(KINDS),
        search_text=f"skill-{at} does the useful thing number {at}",
        adopters=adopters,
    )


def cold(path: str) -> tuple[float, int]:
    """Milliseconds for a page that is rendered anew (the best of 15), and its queries."""
    client, best, count = Client(HTTP_HOST="127.0.0.1"), float("inf"), 0
    for _ in range(15):
        kept.shelf.clear()
        reset_queries()
        with CaptureQueriesContext(connection) as queries:
            started = time.perf_counter()
            response = client.get(path, HTTP_ACCEPT_ENCODING="gzip")
            best = min(best, time.perf_counter() - started)
        assert response.status_code == 200, path
        count = len(queries)
    return best * 1_000, count


def serve(port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "gunicorn", "marketplace.wsgi", "-k", "gthread", "--threads", "4"]
    server = subprocess.Popen([*command, "-b", f"127.0.0.1:{port}", "--log-level", "error", "--keep-alive", "60"])
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield server
    finally:
        server.terminate()
        server.wait(10)


def hammer(port: int, path: str, pid: int) -> tuple[float, float, int]:
    """Requests a second over one kept connection, the server's CPU milliseconds for each, bytes of a body."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port)) as link:
        size = [_ask(link, request) for _ in range(50)][-1]
        cpu, started = _cpu(pid), time.perf_counter()
        for _ in range(REQUESTS):
            _ask(link, request)
        wall = time.perf_counter() - started
        return REQUESTS / wall, (_cpu(pid) - cpu) * 1_000 / REQUESTS, size


def _ask(link: socket.socket, request: bytes) -> int:
    link.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        data += link.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    size = int(re.search(rb"(?i)content-length: (\d+)", head).group(1))  # type: ignore[union-attr]
    received = len(body)
    while received < size:
        received += len(link.recv(65_536))
    return size


def _cpu(pid: int) -> float:
    """Seconds of CPU that the server and its workers have used."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in (str(pid), *children)]
    return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    fill(FEW, FEW * 10)
    paths = {"first page": "/", "newest": "/?sort=newest", "with a trigger": "/?trigger=any"}
    few = {name: cold(path) for name, path in paths.items()}
    call_command("flush", verbosity=0, interactive=False)
    started = time.perf_counter()
    fill(SKILLS, ADOPTIONS)
    print(f"{SKILLS:,} skills, {ADOPTIONS:,} adoptions in {time.perf_counter() - started:.0f} s")
    broken = []
    for name, path in paths.items():
        (small, _), (large, queries) = few[name], cold(path)
        print(f"{name}: rendered in {large:.1f} ms with {queries} queries, {large / small:.2f}x of {FEW:,} skills")
        broken += [name] if large > 1.2 * small or queries > 8 else []
    for server in serve(port := 23_900):
        rate, cost, _ = hammer(port, "/empty/", server.pid)
        page_rate, page_cost, size = hammer(port, "/", server.pid)
        print(f"empty view: {rate:.0f}/s, {cost:.2f} ms CPU; ranked page: {page_rate:.0f}/s, {page_cost:.2f} ms CPU")
        print(f"ranked page / empty view: {page_rate / rate:.2f} of the throughput; {size:,} bytes sent")
        broken += ["throughput"] if page_rate < rate / 3 else []
    if broken:
        print("broken:", ", ".join(broken))
    return bool(broken)


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        shutil.rmtree(VAR, ignore_errors=True)
