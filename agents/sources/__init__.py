"""Where an agent's skills on demand come from, merged into one list."""

from agents.sources.listing import (
    Listing,
    Merged,
    Report,
    SkillNotFoundError,
    SkillsError,
    SkillSource,
)

__all__ = ["Listing", "Merged", "Report", "SkillNotFoundError", "SkillSource", "SkillsError"]
