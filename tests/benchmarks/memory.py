"""Resident and proportional memory of every process of the product: at rest, then after previews and runs.

Run as a script: `python -m tests.benchmarks.memory`. Proportional memory (PSS) counts what processes share once.
"""

import re
import tempfile
import time
from pathlib import Path

import httpx
from websockets.sync.client import connect

from tests import armed
from tests.caller import ToolCaller
from tests.stack import Stack, eventually

RUNS = 4  # two for each worker process
WEB_LIMIT, WHOLE_LIMIT = 130, 700  # MB: resident for a web process, proportional for everything
PREVIEW = {"content": {"description": "x", "template": "Say {{message}}"}, "tags": [], "message": "Hello " * 500}
PAGES = ("/", "/healthz", "/accounts/login/", "/api/v1/skills", "/api/v1/docs")
ENVIRONMENT = {
    "JOURNEYMAN_LLM_API_KEY": "bench",
    "JOURNEYMAN_DEFAULT_LLM": "openai/gpt-4o-mini",
    "JOURNEYMAN_TRIGGER_COOLDOWN": "0",
    "JOURNEYMAN_LOG_LEVEL": "ERROR",
}
ROLES = {"gunicorn": "web", "-Q runs": "worker", "-Q tick": "tick", "tick": "tick", "listen": "listener"}


def role(command: str) -> str:
    """What a process is, by its command line."""
    found = [name for mark, name in ROLES.items() if mark in command]
    return found[0] if found else "relay" if "relay" in command else "supervisor"


def megabytes(pid: int) -> tuple[float, float]:
    """Resident and proportional; of what the process keeps, and of its share of what it has in common."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return tuple(int(re.search(rf"^{name}: +(\d+)", text, re.M)[1]) / 1024 for name in ("Rss", "Pss"))  # type: ignore[index,return-value]


def table(stack: Stack, words: str) -> dict[str, list[tuple[float, float]]]:
    """Prints a row per process and their sum."""
    found: dict[str, list[tuple[float, float]]] = {}
    for pid, command in {**stack.children(), stack.process.pid: "supervisor"}.items():
        found.setdefault(role(command), []).append(megabytes(pid))
    print(f"{words}, MB:")
    for name, rows in sorted(found.items()):
        for rss, pss in sorted(rows, reverse=True):
            print(f"  {name:<12} resident {rss:7.1f}   proportional {pss:7.1f}")
    print(f"  {'everything':<12} {'':16}   proportional {whole(found):7.1f}")
    return found


def whole(found: dict[str, list[tuple[float, float]]]) -> float:
    return sum(pss for rows in found.values() for _, pss in rows)


def previews(stack: Stack) -> None:
    """Pages, and what counts tokens and reads the price table in the web process."""
    with httpx.Client(base_url=stack.url, headers=armed.token(stack), timeout=30) as client:
        for path in PAGES:
            assert client.get(path).status_code < 400, path
        for _ in range(5):
            answer = client.post("/api/v1/context/preview", json=PREVIEW)
            assert answer.status_code == 200, answer.text


def runs(stack: Stack) -> None:
    armed.arm(stack, "tool_list")
    with connect(stack.relay) as socket:
        for number in range(RUNS):
            armed.send(socket, armed.call(f"occasion-{number}"))
    eventually(60, lambda: [run["status"] for run in armed.runs(stack)] == ["succeeded"] * RUNS, "all runs succeed")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="journeyman-bench-") as folder, ToolCaller("tool_list") as model:
        where = {"JOURNEYMAN_LLM_BASE_URL": model.url}
        with Stack(Path(folder), **where, **ENVIRONMENT) as stack:
            eventually(60, stack.healthy, "everything is ok")
            time.sleep(2)
            table(stack, "At rest")
            previews(stack)
            runs(stack)
            found = table(stack, f"After 5 previews and {RUNS} runs")
    web = max(rss for rss, _ in found["web"])
    print(
        f"  the largest web process has {web:.0f} of {WEB_LIMIT} MB, everything {whole(found):.0f} of {WHOLE_LIMIT} MB"
    )


if __name__ == "__main__":
    main()
