"""Carry out one run: claim it, put its request together, let model and tools take turns, end it.

Every step is a row before it has an effect. A worker that dies leaves a lease that runs out; the
next one replays finished steps from their rows and repeats nothing that must not happen twice.
"""

from agents.runner.execution import execute
from agents.runner.loading import load_skill
from agents.sources.adopted import skill_of

__all__ = ["execute", "load_skill", "skill_of"]
