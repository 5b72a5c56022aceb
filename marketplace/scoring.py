"""The arithmetic of trust: who counts as inside the site's web of trust, from follows and mutes."""

from collections.abc import Collection, Mapping

DAMPING = 0.85
ROUNDS = 20
STEPS = 2  # follows of follows; further out, anybody can be reached
LEAST = 1e-6  # a share below this is noise of a key that follows everybody


def trust(seeds: Collection[str], follows: Mapping[str, Collection[str]], rounds: int = ROUNDS) -> dict[str, float]:
    """TrustRank: shares of one unit of trust that starts at the seeds and flows along follows.

    Each key passes on 85 % of its share, evenly; the rest and what dead ends hold goes back to the seeds.
    """
    if not seeds:
        return {}
    start = dict.fromkeys(seeds, 1 / len(seeds))
    ranks = dict(start)
    for _ in range(rounds):
        passed: dict[str, float] = {}
        kept = 0.0
        for key, rank in ranks.items():
            followed = set(follows.get(key, ())) - {key}
            if not followed:
                kept += rank * DAMPING
                continue
            share = rank * DAMPING / len(followed)
            for other in followed:
                passed[other] = passed.get(other, 0.0) + share
        for key, share in start.items():
            passed[key] = passed.get(key, 0.0) + share * (1 - DAMPING + kept)
        ranks = passed
    return ranks


def trusted(
    seeds: Collection[str], follows: Mapping[str, Collection[str]], mutes: Mapping[str, Collection[str]]
) -> frozenset[str]:
    """Seeds, and keys that trust reaches unless the trust of those who mute them outweighs their followers'."""
    ranks = trust(seeds, follows)
    against: dict[str, float] = {}
    for key, muted in mutes.items():
        for other in set(muted):
            against[other] = against.get(other, 0.0) + ranks.get(key, 0.0)
    favour: dict[str, float] = {}
    for key, followed in follows.items():
        for other in set(followed) - {key}:
            favour[other] = favour.get(other, 0.0) + ranks.get(key, 0.0)
    inside = {key for key, rank in ranks.items() if rank >= LEAST and against.get(key, 0.0) <= favour.get(key, 0.0)}
    return frozenset(inside | set(seeds))
