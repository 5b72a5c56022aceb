"""Which sources an agent has: its adopted skills first, then its owner's uploads and the server's folders."""

from agents.models import Agent
from agents.sources.adopted import AdoptedSource
from agents.sources.folders import folder_sources
from agents.sources.listing import Merged


def sources_for(agent: Agent) -> Merged:
    return Merged([AdoptedSource(agent), *folder_sources(agent)], hidden(agent))


def hidden(agent: Agent) -> frozenset[str]:
    """The names that its owner took out of sight."""
    own = agent.limits.get("hidden_skills") if isinstance(agent.limits, dict) else None
    return frozenset(map(str, own)) if isinstance(own, list) else frozenset()
