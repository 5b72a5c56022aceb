"""Ten adopted skills, eight on demand: the model loads the one it needs, and a killed worker changes nothing of it."""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import armed, fakes
from tests.journeys.test_kills import PASS_TIME
from tests.stack import Stack, eventually

pytestmark = [pytest.mark.stack]

# One list with all of them: an adoption each would wait for another second each.
ADOPT = """
import json
from django.conf import settings
from django.utils import timezone
from agents import arming
from agents.models import AdoptedSkill, Agent
from marketplace import ingest, relays, signing
from marketplace.models import Skill
from marketplace.protocol import kinds
from marketplace.protocol.events import Draft
agent, now = Agent.objects.select_related("identity").get(slug="demo"), timezone.now()
tags = tuple(("a", skill.address) for skill in Skill.objects.public().filter(trigger_kind="").order_by("pk")[:10])
listed = Draft(agent.identity.pubkey, int(now.timestamp()), kinds.ADOPTIONS, tags, "")
event = signing.sign(agent.identity, listed)
assert all(answer.ok for answer in relays.publish(event, settings.WRITE_RELAYS, 8.0))
ingest.store([ingest.Incoming(event)], int(now.timestamp()))
arming.arm_all(now)
print(json.dumps([row.address for row in AdoptedSkill.objects.filter(agent=agent)]))
"""


class Loader(fakes.ModelServer):
    """Loads the first skill of the catalogue, thinks for a while over what it says, then answers."""

    def next(self, body: dict[str, Any], key: str) -> fakes.Scripted:
        super().next(body, key)
        if any(message["role"] == "tool" for message in body["messages"]):
            answer = fakes.text("Done as the skill says.")
            answer.delay = 3.0
            return answer
        told = next(m["content"] for m in body["messages"] if "<available_skills>" in (m["content"] or ""))
        name = re.search(r"(?m)^- `([^`]+)`: ", told)
        assert name is not None
        return fakes.calls(("call-1", "skill", {"name": name[1]}))


def carry(stack: Stack, client: httpx.Client, choice: str, address: str = "") -> None:
    """As the switch on the page of the agent's skills."""
    client.get("/agents/demo/skills/").raise_for_status()
    one = {"address": address} if address else {}
    sent = {"csrfmiddlewaretoken": client.cookies[f"csrf-{stack.port}"], "carry": choice, **one}
    client.post("/agents/demo/skills/demand/", data=sent).raise_for_status()


def test_a_killed_worker_loads_a_skill_once_and_is_told_the_same(tmp_path: Path) -> None:
    with Loader() as model:
        environment = {
            "JOURNEYMAN_LLM_BASE_URL": model.url,
            "JOURNEYMAN_LLM_API_KEY": "test",
            "JOURNEYMAN_DEFAULT_LLM": "openai/gpt-4o-mini",
        }
        with Stack(tmp_path, **environment) as stack:
            eventually(60, stack.healthy, "everything is ok")
            addresses: list[str] = json.loads(armed.shell(stack, ADOPT))
            assert len(addresses) == 10
            headers = armed.token(stack)
            with httpx.Client(base_url=stack.url, follow_redirects=True) as client:
                client.get(stack.link).raise_for_status()
                carry(stack, client, "demand")
                for address in addresses[:2]:
                    carry(stack, client, "always", address)
                run = started(stack, headers)
                eventually(30, lambda: len(model.asked) == 2, "the skill is loaded and the model asked again")
                for pid in [pid for pid, line in stack.children().items() if "-Q runs" in line]:
                    os.kill(pid, signal.SIGKILL)
                for address in addresses[2:5]:
                    carry(stack, client, "always", address)  # changes nothing for a run that was told already
                armed.shell(stack, PASS_TIME.format(cut="2999-01-01T00:00:00+00:00"))
                found = eventually(60, lambda: ended(stack, headers, run), "the run ends")
                assert isinstance(found, dict)
                page = client.get(f"/runs/{run}/").text
    assert found["output"] == "Done as the skill says."
    assert len(model.asked) == 3
    assert model.asked[2]["messages"] == model.asked[1]["messages"]
    told = found["disclosure"]
    assert len(told["listed"]) == 8 and told["catalogue_tokens"] > 100
    ((loaded),) = told["loaded"]
    assert [step["state"] for step in found["steps"] if step["kind"] == "tool"] == ["done"]
    assert f'<span class="mono">{loaded["name"]}</span>' in page and "8 skills told of" in page


def started(stack: Stack, headers: dict[str, str]) -> str:
    body = {"agent": "demo", "message": "Use what you know."}
    return str(httpx.post(f"{stack.url}/api/v1/runs", json=body, headers=headers).json()["id"])


def ended(stack: Stack, headers: dict[str, str], run: str) -> dict[str, Any] | None:
    found: dict[str, Any] = httpx.get(f"{stack.url}/api/v1/runs/{run}", headers=headers).json()
    return found if found["status"] == "succeeded" else None
