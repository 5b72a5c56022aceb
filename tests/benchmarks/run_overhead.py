"""What a durable run adds to each model call: beside the bare HTTP call, and beside another agent library.

Run as a script: `python -m tests.benchmarks.run_overhead [python of a venv with pydantic-ai-slim[openai]]`. The task is
the same for all: the model calls one tool, then another, then answers; its server is a process apart and answers at
once. The other library keeps nothing; here each step is a row before it has an effect.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests import fakes

RUNS, BEFORE, CALLS = 60, 5, 3  # runs measured, runs before them, model calls in each
TOOLS = (("tool_list", {}), ("skill_search", {"query": "spell"}))
QUESTION = "Which tools are there, and is there a skill for spelling? " * 5
LIMIT = 10  # ms a run may add to each model call

OTHER = """
import json, sys, time
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
url, question, runs, before = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
agent = Agent(OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(base_url=url, api_key="bench")))
@agent.tool_plain
def tool_list() -> str:
    "List the tools that this run may call."
    return "tool_list, skill_search"
@agent.tool_plain
def skill_search(query: str) -> str:
    "Find skills by words."
    return "No skill was found."
took = []
for number in range(runs + before):
    wall, cpu = time.perf_counter(), time.process_time()
    assert agent.run_sync(question).output == "It is done."
    took.append((time.perf_counter() - wall, time.process_time() - cpu))
print(json.dumps(took[before:]))
"""

Took = list[tuple[float, float]]  # seconds by the clock and of the processor


class TwoTools(fakes.ModelServer):
    """Wants one tool, then the other, then says that it is done."""

    def next(self, body: dict[str, Any], key: str) -> fakes.Scripted:
        done = sum(message["role"] == "tool" for message in body["messages"])
        return fakes.text("It is done.") if done == len(TOOLS) else fakes.calls((f"call-{done}", *TOOLS[done]))


def serve() -> None:
    """Until standard input ends."""
    with TwoTools() as model:
        print(model.url, flush=True)
        sys.stdin.read()


def timed(work: Callable[[], object]) -> Took:
    took: Took = []
    for _ in range(RUNS + BEFORE):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        took.append((time.perf_counter() - wall, time.process_time() - cpu))
    return took[BEFORE:]


def bare(url: str, request: dict[str, Any]) -> Took:
    """The same three bodies posted by httpx alone, streamed as a run asks for it."""
    messages, bodies = list(request["messages"]), []
    same = {"model": "gpt-4o-mini", "tools": request["tools"], "stream": True}
    for number, (name, arguments) in enumerate(TOOLS):
        bodies.append({**same, "messages": list(messages)})
        messages += [fakes.calls((f"call-{number}", name, arguments)).body["choices"][0]["message"]]
        messages += [{"role": "tool", "tool_call_id": f"call-{number}", "content": "tool_list, skill_search"}]
    bodies.append({**same, "messages": messages})
    with httpx.Client() as client:

        def calls() -> None:
            for body in bodies:
                client.post(f"{url}/chat/completions", json=body).raise_for_status()

        return timed(calls)


def ours(folder: Path, url: str) -> tuple[Took, dict[str, Any]]:
    """Runs carried out as a worker does, and the request of one."""
    settings = {
        "JOURNEYMAN_VAR": str(folder),
        "JOURNEYMAN_PROCESS": "worker",
        "JOURNEYMAN_LLM_BASE_URL": url,
        "JOURNEYMAN_LLM_API_KEY": "bench",
        "JOURNEYMAN_DEFAULT_LLM": "openai/gpt-4o-mini",
        "JOURNEYMAN_LOG_LEVEL": "ERROR",
        "DJANGO_SETTINGS_MODULE": "marketplace.settings",
    }
    os.environ.update(settings)
    import django
    from django.core.management import call_command
    from django.utils import timezone

    django.setup()
    call_command("migrate", verbosity=0)
    from agents import llm, runner
    from agents.models import Run
    from tests.agents.world import make_agent

    llm.warm_up()
    agent = make_agent(soul="You answer in one sentence.", grants=[name for name, _ in TOOLS])
    said = {"agent": agent, "trigger_kind": "webhook", "input": {"message": QUESTION}, "created_at": timezone.now()}
    made = [Run.objects.create(occasion_key=str(number), **said).pk for number in range(RUNS + BEFORE)]
    waiting = iter(made)
    took = timed(lambda: runner.execute(next(waiting)))
    assert set(Run.objects.values_list("status", "output")) == {("succeeded", "It is done.")}
    return took, Run.objects.get(pk=made[0]).request


def other(python: str, url: str) -> Took:
    command = [python, "-c", OTHER, url, QUESTION, str(RUNS), str(BEFORE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The other library did not work:\n{done.stderr[-2000:]}")
    return [(wall, cpu) for wall, cpu in json.loads(done.stdout)]


def row(words: str, took: Took, floor: Took) -> float:
    """Prints milliseconds per model call, and gives what is beyond the bare calls."""
    wall, cpu = (statistics.median(one[at] for one in took) / CALLS * 1_000 for at in (0, 1))
    beyond = wall - statistics.median(one[0] for one in floor) / CALLS * 1_000
    print(f"  {words:<28} {wall:6.1f} ms   processor {cpu:6.1f} ms   adds {beyond:6.1f} ms")
    return beyond


def main() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.run_overhead", "serve"]
    with (
        tempfile.TemporaryDirectory(prefix="journeyman-bench-") as folder,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            took, request = ours(Path(folder), url)
            floor = bare(url, request)
            others = other(sys.argv[1], url) if len(sys.argv) > 1 else None
        finally:
            server.stdin.close()
    print(f"{RUNS} runs of {CALLS} model calls and two tools; for each model call, at the median:")
    row("httpx alone", floor, floor)
    beyond = row("a run here", took, floor)
    if others:
        theirs = row("pydantic-ai", others, floor)
        print(f"  a run here adds {beyond / theirs:.1f} times what pydantic-ai adds")
    else:
        print("  pydantic-ai: not measured; name the python of a venv that has pydantic-ai-slim[openai]")
    print(f"  a run adds {beyond:.1f} of {LIMIT} ms to each model call")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
