"""The share of a request that two consecutive runs of one agent have in common as a prefix: what caches bill less for.

Run as a script: `python -m tests.benchmarks.shared_prefix`. Exits with 1 where it is not over nine tenths and another
order would have made it more: a small request with a large event has little to share.
"""

import json
import sys
from typing import Any

from tests import fakes
from tests.benchmarks import adopted

SKILLS = 20
LEAST = 0.9  # of a request
NEARLY = 0.99  # of all that it could share; the brackets between two messages are the rest
MESSAGES = ("Could you look at the note of this morning?", "And what did they answer to it?")
NOTE = "A note that somebody wrote about something, long enough to be one that people write. " * 4


def runs(agent: Any, kind: str) -> list[Any]:
    """Two of them, as they would follow each other."""
    from django.utils import timezone

    from agents.models import Conversation
    from tests.agents import rows

    if kind == "by hand":
        return [rows.run(agent, input={"message": message}) for message in MESSAGES]
    if kind == "a conversation":
        now = timezone.now()
        talk = Conversation.objects.create(agent=agent, created_at=now, updated_at=now)
        turns = enumerate(MESSAGES, 1)
        return [rows.run(agent, input={"message": said}, conversation=talk, turn=turn) for turn, said in turns]
    skill = rows.skill({"template": adopted.instructions(99), **({"context_mode": kind} if kind != "compose" else {})})
    events = [{"id": f"{at}" * 64, "pubkey": "a" * 64, "kind": 1, "content": f"{at}: {NOTE}"} for at in (1, 2)]
    return [rows.run(agent, skill, input={"event": event}, trigger_kind="nostr-subscription") for event in events]


def prefix(one: str, other: str) -> str:
    end = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
    return one[:end]


def shared(server: fakes.ModelServer, on_demand: int, kind: str) -> tuple[int, int, int]:
    """Tokens of the second request, of what the first began with alike, and of all that both hold, in any order."""
    from agents import llm
    from agents.models import Agent

    agent = Agent.objects.filter(owner__username=f"owner-{SKILLS}-{on_demand}").first()
    for run in runs(agent or adopted.agent(SKILLS, on_demand), kind):
        adopted.carried_out(run)
    first, second = server.asked[-2], server.asked[-1]
    both = [message for message in second["messages"] if message in first["messages"]]
    possible = json.dumps([second.get("tools", []), both], ensure_ascii=False)
    one, other = adopted.sent(server, -2), adopted.sent(server)
    return llm.count(other), llm.count(prefix(one, other)), llm.count(possible)


def main() -> None:
    failed = False
    with adopted.world() as server:
        print(f"Share of the second request that equals the first one's beginning; {SKILLS} adopted skills:")
        for on_demand in (0, SKILLS // 2, SKILLS):
            for kind in ("by hand", "a conversation", "compose", "inject", "override"):
                tokens, common, possible = shared(server, on_demand, kind)
                started = kind if kind in {"by hand", "a conversation"} else f"an event, rule {kind}"
                low = common < LEAST * tokens and common < NEARLY * possible
                failed |= low
                words = f"{SKILLS - on_demand} always on, {on_demand} on demand, {started}"
                part = f"{common / tokens:>6.1%}   of what both hold {min(1.0, common / possible):>6.1%}"
                print(f"  {words:<56} {tokens:>6} tokens {part}{'  too low' if low else ''}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
