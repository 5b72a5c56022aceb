"""An agent with many adopted skills and a model server, for the benchmarks of what its requests hold."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests import fakes

if TYPE_CHECKING:
    from agents.models import Agent, Run

WORDS = 260  # of a skill's instructions, about what published skills have
STEPS = (
    "Read what was given from its beginning to its end before you write a word of your own.",
    "Say first what you found, then what you would change, and why it matters to the reader.",
    "Quote the passage that you speak of, so that nobody has to look for it.",
    "Where something is not known, say so, and name who could know it.",
    "Keep names, numbers and addresses exactly as they stand in the source.",
)
SOUL = (
    "system:\nYou are a helpful agent on Nostr. You work for your admin and for nobody else. You say what you did, you"
    " never claim to have done what you did not do, and you ask before anything that cannot be undone.\n"
)


@contextmanager
def world() -> Iterator[fakes.ModelServer]:
    """The product on a database of its own, asking a model server on loopback."""
    with tempfile.TemporaryDirectory(prefix="journeyman-bench-") as folder, fakes.ModelServer() as server:
        os.environ |= {
            "JOURNEYMAN_VAR": folder,
            "JOURNEYMAN_LOG_LEVEL": "ERROR",
            "JOURNEYMAN_LLM_BASE_URL": server.url,
            "JOURNEYMAN_LLM_API_KEY": "bench",
            "DJANGO_SETTINGS_MODULE": "marketplace.settings",
        }
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield server


def instructions(number: int) -> str:
    text = f"You know topic {number}. " + " ".join(STEPS[at % len(STEPS)] for at in range(20))
    return " ".join(text.split()[:WORDS])


def agent(count: int, on_demand: int) -> "Agent":
    """With `count` adopted skills, the last `on_demand` of them on demand."""
    from agents.models import AdoptedSkill
    from tests.agents import rows

    made = rows.agent(rows.owner(f"owner-{count}-{on_demand}"), soul=SOUL, grants=["read_skill_file", "skill"])
    for number in range(count):
        content = {
            "description": f"Works on topic {number}. Use it when somebody asks about topic {number} or its parts.",
            "template": instructions(number),
        }
        row = rows.adopt(made, rows.skill(content, d=f"topic-{number}"), number)
        AdoptedSkill.objects.filter(pk=row.pk).update(on_demand=number >= count - on_demand)
    return made


def carried_out(run: "Run") -> "Run":
    from tests.agents import rows

    done = rows.carried_out(run)
    if done.status != "succeeded":
        raise SystemExit(f"a run ended {done.status}: {done.reason_words}")
    return done


def sent(server: fakes.ModelServer, at: int = -1) -> str:
    """A request as providers read it for their caches: tools first, then messages."""
    body: dict[str, Any] = server.asked[at]
    return json.dumps([body.get("tools", []), body["messages"]], ensure_ascii=False)
