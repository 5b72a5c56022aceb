"""`make up MODEL=local`: a run through a real, small language model on this machine."""

import importlib.util
import json
import os
from pathlib import Path

import pytest

from tests.stack import Stack, eventually

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(not os.environ.get("TEST_LOCAL_MODEL"), reason="TEST_LOCAL_MODEL is not set"),
]

START = """
from django.utils import timezone
from agents.models import Agent
from agents import dispatch
run = dispatch.manual(Agent.objects.get(slug="demo"), "", "", "Say hello.", {}, {"max_tokens": 24}, timezone.now(), "t")
print(run.pk)
"""
READ = """
import json
from agents.models import Run
run = Run.objects.get(pk="%s")
found = [run.status, run.output, run.model, run.output_tokens, str(run.cost), run.unknown_costs, run.reason_words]
print(json.dumps(found))
"""


def test_a_real_model_answers_a_run(tmp_path: Path) -> None:
    assert importlib.util.find_spec("xllamacpp"), "the extra local-model is not installed"
    with Stack(tmp_path, MODEL="local") as stack:
        eventually(60, stack.healthy, "everything is ok")
        run = stack.manage("shell", "-v0", "-c", START).split()[-1]

        def ended() -> list[object]:
            found = json.loads(stack.manage("shell", "-v0", "-c", READ % run).splitlines()[-1])
            return found if found[0] not in {"queued", "running"} else []

        status, output, model, tokens, cost, unknown, words = eventually(120, ended, "the run ended")
        assert status in {"succeeded", "failed"}, words
        # It may run into its limit; either way the tokens are real and cost nothing.
        assert status == "succeeded" or "cut off" in str(words)
        assert int(str(tokens)) > 0
        assert (float(str(cost)), unknown) == (0.0, 0)
        assert "echo" not in str(model)
        print(f"{model} said {output!r} with {tokens} tokens")
