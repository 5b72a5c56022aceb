"""How the agent's relays are doing: each is asked a small question."""

import time
from concurrent.futures import ThreadPoolExecutor

from agents.tools.calls import ToolContext
from agents.tools.publishing import distinct, own_relays, read_relays
from marketplace import relays
from marketplace.protocol import kinds
from marketplace.protocol.filters import Filter

MOST_SECONDS = 5.0


def nostr_relay_status(ctx: ToolContext) -> str:
    """Ask each of this agent's relays whether it answers, and how fast."""
    writes, reads = own_relays(ctx), read_relays(ctx)
    urls = distinct([*writes, *reads])
    if not urls:
        return "There are no relays."
    seconds = min(MOST_SECONDS, ctx.left)
    wanted = Filter(kinds=frozenset({kinds.PROFILE}), authors=frozenset({ctx.agent.identity.pubkey}), limit=1)
    with ThreadPoolExecutor(len(urls)) as pool:
        answers = list(pool.map(lambda url: _asked(url, wanted, seconds), urls))
    rows = []
    for url, answer in zip(urls, answers, strict=True):
        use = " and ".join(word for word, some in (("reads", reads), ("writes", writes)) if url in some)
        rows.append(f"{url} ({use}): {answer}")
    return "\n".join(rows)


def _asked(url: str, wanted: Filter, seconds: float) -> str:
    start = time.monotonic()
    fetched = relays.fetch(url, [wanted], seconds)
    if fetched.finished.get(url):
        return f"answers, in {(time.monotonic() - start) * 1000:.0f} ms"
    return f"does not answer: {' '.join(fetched.problems.get(url, 'no word').split())[:200]}"
