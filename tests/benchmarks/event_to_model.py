"""From an event sent to a relay to the model being asked for it, and what a run adds to each call of a model.

Run as a script: `python -m tests.benchmarks.event_to_model [events]`.
"""

import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from websockets.sync.client import ClientConnection, connect

from tests import armed
from tests.caller import ToolCaller
from tests.stack import Stack, eventually

EVENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
TURNS, RUNS = 10, 5  # tool calls in a long run, and such runs
PAUSE = 0.3  # seconds between two events: each finds an idle site
ENVIRONMENT = {
    "JOURNEYMAN_LLM_API_KEY": "bench",
    "JOURNEYMAN_DEFAULT_LLM": "openai/gpt-4o-mini",
    "JOURNEYMAN_TRIGGER_COOLDOWN": "0",
    "JOURNEYMAN_MAX_CONCURRENT_TRIGGERS": "10000",
    "JOURNEYMAN_LLM_ACTIONS_PER_MINUTE": "100000",
    "JOURNEYMAN_LOG_LEVEL": "ERROR",
}

# Model attempts as the history has them, in milliseconds from their row's start to its end.
ATTEMPTS = """
import json
from agents.models import Step
rows = Step.objects.filter(kind="model", state="done").values_list("started_at", "finished_at")
print(json.dumps([(end - start).total_seconds() * 1000 for start, end in rows]))
"""


def waited(model: ToolCaller, more: int, work: Callable[[], None]) -> list[float]:
    """When each of the next requests arrived, after `work`."""
    before = len(model.arrived)
    work()
    eventually(30, lambda: len(model.arrived) >= before + more, "the model is asked")
    return model.arrived[before:]


def latencies(model: ToolCaller, socket: ClientConnection) -> list[float]:
    """Milliseconds from sending each event to its request's arrival at the model."""
    found = []
    for number in range(EVENTS + 2):
        event = armed.call(f"occasion-{number}")
        sent = time.time()
        arrived = waited(model, 1, lambda event=event: armed.send(socket, event))  # type: ignore[misc]
        found.append((arrived[0] - sent) * 1000)
        time.sleep(PAUSE)
    return found[2:]  # each of the two worker processes has its first call behind it


def rounds(model: ToolCaller, socket: ClientConnection) -> list[float]:
    """Milliseconds from one request of a run to its next: answer, records, a tool call, records, request."""
    model.turns, found = TURNS, list[float]()
    for number in range(RUNS):
        event = armed.call(f"occasion-{number} again")
        arrived = waited(model, TURNS + 1, lambda event=event: armed.send(socket, event))  # type: ignore[misc]
        found += [(after - before) * 1000 for before, after in itertools.pairwise(arrived)]
        time.sleep(PAUSE)
    return found


def bare(model: ToolCaller) -> list[float]:
    """Milliseconds from one request to the next where the same bodies are posted by httpx alone."""
    bodies, before = model.asked[-(TURNS + 1) :] * RUNS, len(model.arrived)
    with httpx.Client() as client:
        for body in bodies:
            client.post(
                f"{model.url}/chat/completions", json=body
            ).raise_for_status()  # read to its end, streamed or not
    arrived = model.arrived[before:]
    return [(after - before) * 1000 for before, after in itertools.pairwise(arrived)]


def row(words: str, found: list[float]) -> None:
    ordered = sorted(found)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    print(f"  {words:<46} median {statistics.median(found):7.1f} ms   p99 {p99:7.1f} ms")


def main() -> None:
    folder = tempfile.TemporaryDirectory(prefix="journeyman-bench-")
    with folder, ToolCaller("tool_list", turns=0) as model:
        with Stack(Path(folder.name), JOURNEYMAN_LLM_BASE_URL=model.url, **ENVIRONMENT) as stack:
            eventually(60, stack.healthy, "everything is ok")
            armed.arm(stack, "tool_list")
            with connect(stack.relay) as socket:
                events = latencies(model, socket)
                in_runs = rounds(model, socket)
            eventually(20, lambda: {run["status"] for run in armed.runs(stack)} == {"succeeded"}, "all runs succeed")
            attempts: list[float] = json.loads(armed.shell(stack, ATTEMPTS))
        alone = bare(model)
    print(f"{EVENTS} events one after the other, then {RUNS} runs of {TURNS} tool calls; the model answers at once:")
    row("event sent -> model asked", events)
    row("model attempt on record", attempts)
    row("model call, tool call and their records", in_runs)
    row("model call by httpx alone", alone)
    added = statistics.median(in_runs) - statistics.median(alone)
    print(f"  a run adds {added:.1f} ms to each round of model and tool")


if __name__ == "__main__":
    main()
