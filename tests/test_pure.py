"""The pure core runs in a bare interpreter: importing it brings no framework, queue or network client."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KEPT_OUT = ("django", "celery", "ninja", "litellm", "httpx")
PROGRAM = """
import importlib, sys
for name in sys.argv[1].split(","):
    importlib.import_module(name)
print(",".join(name for name in sys.argv[2].split(",") if name in sys.modules))
"""


def modules(*places: str) -> list[str]:
    found = []
    for place in places:
        path = ROOT / place
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        found += [file.relative_to(ROOT).with_suffix("") for file in files if file.exists()]
    return [".".join(file.parts).removesuffix(".__init__") for file in found]


def dragged_in(names: list[str]) -> str:
    command = [sys.executable, "-c", PROGRAM, ",".join(names), ",".join(KEPT_OUT)]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_core_drags_nothing_in() -> None:
    names = modules("marketplace/protocol", "marketplace/scoring", "agents/engine")
    assert len(names) > 15
    assert dragged_in(names) == ""


@pytest.mark.parametrize("name", ["django", "httpx"])
def test_the_check_itself_would_notice(name: str) -> None:
    assert dragged_in(["marketplace.protocol", name]) == name
