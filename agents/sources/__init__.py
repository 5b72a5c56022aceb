"""Where an agent's skills on demand come from, merged into one list, and what a request tells of them."""

from agents.sources.disclosing import NOTHING, Disclosed, disclose
from agents.sources.listing import (
    Listing,
    Merged,
    Report,
    SkillNotFoundError,
    SkillsError,
    SkillSource,
)
from agents.sources.merging import sources_for

__all__ = [
    "NOTHING",
    "Disclosed",
    "Listing",
    "Merged",
    "Report",
    "SkillNotFoundError",
    "SkillSource",
    "SkillsError",
    "disclose",
    "sources_for",
]
