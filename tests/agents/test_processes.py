"""Each process of the product loads what it needs, and no more."""

import os
import subprocess
import sys
from pathlib import Path

from tests.stack import ROOT


def loaded(tmp_path: Path, process: str, code: str, wanted: str) -> list[str]:
    """Which of the wanted modules a process of this kind has loaded after this code."""
    program = f"import sys, django; django.setup(); {code}; print(*[n for n in {wanted.split()} if sys.modules.get(n)])"
    settings = {"DJANGO_SETTINGS_MODULE": "marketplace.settings", "JOURNEYMAN_PROCESS": process}
    environment = {**os.environ, **settings, "JOURNEYMAN_VAR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_serves_no_pages_loads_no_api(tmp_path: Path) -> None:
    code = "import agents.management.commands.listen, agents.management.commands.tick, agents.tasks"
    assert loaded(tmp_path, "worker", code, "agents ninja litellm rich nostr_sdk marketplace.urls") == ["agents"]


def test_it_finds_the_address_of_a_page_all_the_same(tmp_path: Path) -> None:
    code = "from django.urls import reverse; assert reverse('account_login')"
    assert loaded(tmp_path, "worker", code, "marketplace.urls") == ["marketplace.urls"]


def test_the_relay_loads_neither_agents_nor_broker(tmp_path: Path) -> None:
    code = "import marketplace.management.commands.relay"
    assert loaded(tmp_path, "relay", code, "nostr_sdk agents celery httpx allauth") == ["nostr_sdk"]


def test_pages_load_no_model_library(tmp_path: Path) -> None:
    """Though they count tokens and know prices."""
    code = "import marketplace.wsgi, marketplace.urls; from agents import llm; llm.count('x'); llm.sizes_of('gpt-4o')"
    assert loaded(tmp_path, "web", code, "ninja litellm openai rich jinja2 nostr_sdk") == ["ninja"]
