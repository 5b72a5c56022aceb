"""Asking from the command line: the answer as it comes, how it went as the exit code, why on standard error."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from agents import runner
from agents.management.commands import ask as command
from agents.models import Agent, Run
from tests import fakes
from tests.agents import rows
from tests.agents.test_listen import Site
from tests.real_relay import LocalRelay
from tests.stack import ROOT, eventually

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def worker(helper: Agent) -> Iterator[None]:
    """Carries out whatever is queued, as a worker would."""
    done = threading.Event()

    def work() -> None:
        try:
            while not done.wait(0.05):
                for pk in list(Run.objects.filter(status="queued").values_list("pk", flat=True)):
                    runner.execute(pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    done.set()
    thread.join(10)


def ask(*arguments: str, **options: Any) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("ask", *arguments, stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_the_answer_is_written_and_the_turn_is_on_record(models: fakes.ModelServer, worker: None) -> None:
    models.script(fakes.text("Forty-two."))
    assert ask("helper", "what is it?") == ("Forty-two.\n", "")
    run = Run.objects.get()
    assert run.conversation is not None and run.conversation.channel == "cli" and run.trigger_kind == "manual"


def test_it_goes_on_where_it_was(models: fakes.ModelServer, worker: None) -> None:
    ask("helper", "one")
    ask("helper", "two", "--go-on")
    ask("helper", "three")
    said = [[message["content"] for message in body["messages"]] for body in models.asked]
    assert said == [["one"], ["one", "It is done.", "two"], ["three"]]


def test_as_json_it_says_everything_at_the_end(models: fakes.ModelServer, worker: None) -> None:
    out, _ = ask("helper", "hi", "--json", "--model", "openai/gpt-4o-mini")
    found = json.loads(out)
    assert (found["status"], found["answer"], found["turn"]) == ("succeeded", "It is done.", 1)
    assert found["cost"].startswith("0.0000") and found["unknown_costs"] == 0
    assert Run.objects.get().overrides == {"llm": "openai/gpt-4o-mini"}


def test_a_failure_is_an_error_with_its_reason(models: fakes.ModelServer, worker: None) -> None:
    models.script(fakes.text(None, finish="content_filter"))
    with pytest.raises(CommandError, match=r"failed: The provider's content filter.*run 0"):
        ask("helper", "hi")


def test_a_skill_is_run_by_its_name_and_one_on_demand_is_called(
    models: fakes.ModelServer, worker: None, helper: Agent
) -> None:
    rows.adopt(helper, rows.skill({"template": "system:\nFix.\nuser:\n{{message}}!"}, d="fix"))
    ask("helper", "helo", "--skill", "fix")
    assert models.asked[-1]["messages"][-1]["content"] == "helo!"
    with pytest.raises(CommandError, match="has no skill “nope”"):
        ask("helper", "helo", "--skill", "nope")


@pytest.mark.parametrize(
    ("agent", "message", "words"),
    [
        ("nobody", "hi", "There is no agent “nobody”. There is: helper"),
        ("helper", "  ", "Say something"),
        ("helper", "x" * 100_001, "Say something"),
        ("helper", "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5", "secret key"),
        ("helper", "a\ud800", "not text"),
    ],
)
def test_what_cannot_be_asked_is_said_in_words(helper: Agent, agent: str, message: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        ask(agent, message)
    assert not Run.objects.exists()


def test_it_says_so_when_no_worker_answers(models: fakes.ModelServer, helper: Agent) -> None:
    def late() -> None:
        eventually(20, lambda: "No worker has taken run" in err.getvalue(), "it says so")
        runner.execute(Run.objects.get().pk)
        connection.close()

    out, err = StringIO(), StringIO()
    thread = threading.Thread(target=late)
    thread.start()
    call_command("ask", "helper", "hi", "--worker-within", "0.1", stdout=out, stderr=err)
    thread.join(10)
    assert out.getvalue() == "It is done.\n" and err.getvalue().count("No worker") == 1


def test_what_another_attempt_wrote_begins_on_its_own_line() -> None:
    out = StringIO()
    of = command.Command(stdout=out)
    shown = ""
    for answer in ("Once", "Once upon", "", "Better: no", "Better: no."):
        shown = of._write(answer, shown)
    assert out.getvalue() == "Once upon\nBetter: no."


@pytest.fixture
def site(tmp_path: Path, relay: LocalRelay, models: fakes.ModelServer) -> Iterator[Site]:
    running = Site(tmp_path, relay)
    running.environment |= {"JOURNEYMAN_LLM_BASE_URL": models.url, "JOURNEYMAN_DEFAULT_LLM": "openai/gpt-4o-mini"}
    yield running
    for name in list(running.processes):
        running.end(name, signal.SIGKILL)


def start(site: Site, *arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    whole = [sys.executable, "-u", "manage.py", "ask", *arguments]
    return subprocess.Popen(whole, cwd=ROOT, env=site.environment, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.stack
def test_beside_a_running_worker_text_comes_before_the_end_and_ctrl_c_stops_the_run(
    site: Site, models: fakes.ModelServer
) -> None:
    site.manage("shell", "-v0", "--no-imports", "-c", "from tests.agents.world import make_agent; make_agent()")
    site.work()
    site.until(60, lambda: site.beats("worker"), "the worker is alive")
    long = fakes.text("One two three four five six.")
    long.pieces, long.pause = 6, 1.0
    models.script(long)
    process = start(site, "bot", "count")
    assert process.stdout is not None
    first = process.stdout.read(3)
    assert site.rows("SELECT 1 FROM agents_run WHERE status = 'running'") and process.poll() is None
    assert f"{first}{process.stdout.read()}" == "One two three four five six.\n"
    assert (process.communicate(timeout=40)[1], process.returncode) == ("", 0)
    slow = fakes.text("never")
    slow.delay = 30
    models.script(slow)
    process = start(site, "bot", "wait")
    query = "SELECT 1 FROM agents_run WHERE status = ?"
    site.until(40, lambda: site.rows(query, "running"), "it runs")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=20)
    assert process.returncode == 130 and "Stopped" in errors and out == ""
    assert site.rows(query, "cancelled")
