"""Tokens of a request with many adopted skills: all of them always on, against all of them on demand.

Run as a script: `python -m tests.benchmarks.skills_on_demand`. Exits with 1 where a line of the catalogue costs more
than a hundred tokens, or a request on demand is no smaller.
"""

import sys

from tests import fakes
from tests.benchmarks import adopted

COUNTS = (5, 20, 50)
MOST_A_LINE = 100  # tokens that a skill on demand may cost each request


def requests(server: fakes.ModelServer, count: int, on_demand: int) -> tuple[int, int]:
    """Tokens of the first request, and of the second after one skill was loaded (0 where none is)."""
    from agents import llm
    from tests.agents import rows

    before = len(server.asked)
    if on_demand:
        server.script(fakes.calls(("a", "skill", {"name": f"topic-{count - 1}"})))
    adopted.carried_out(rows.run(adopted.agent(count, on_demand), input={"message": "What do you know of it?"}))
    tokens = [llm.count(adopted.sent(server, at)) for at in range(before, len(server.asked))]
    return tokens[0], tokens[1] if len(tokens) > 1 else 0


def main() -> None:
    failed = False
    with adopted.world() as server:
        from agents import llm

        size = llm.count(adopted.instructions(0))
        print(f"Tokens per request (tools and messages as sent); each skill has {size} tokens of instructions:")
        print(
            f"  {'adopted':>7}  {'always on':>10}  {'on demand':>10}  {'saved':>6}  {'a line':>6}  {'after loading one':>18}"
        )
        nothing, _ = requests(server, 0, 0)
        for count in COUNTS:
            always, _ = requests(server, count, 0)
            demand, loaded = requests(server, count, count)
            line = (demand - nothing) / count
            print(f"  {count:>7}  {always:>10}  {demand:>10}  {1 - demand / always:>6.0%}  {line:>6.0f}  {loaded:>18}")
            failed |= line > MOST_A_LINE or demand >= always
    sys.exit(failed)


if __name__ == "__main__":
    main()
