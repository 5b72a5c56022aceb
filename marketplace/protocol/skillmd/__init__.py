"""SKILL.md (Agent Skills) and skills: read with what was lost said, written so that it reads back.

read_skillmd(data, folder)  -> SkillFile, with problems by line
to_spec(file)               -> the skill it describes; what the format has no place for comes from its metadata
from_spec(spec)             -> the skill as SKILL.md, which the reference validator takes
"""

from marketplace.protocol.skillmd.reading import MAX_DESCRIPTION, MAX_FILE, MAX_NAME, SkillFile, flat, read_skillmd
from marketplace.protocol.skillmd.writing import PREFIX, from_spec, others, to_spec

__all__ = [
    "MAX_DESCRIPTION",
    "MAX_FILE",
    "MAX_NAME",
    "PREFIX",
    "SkillFile",
    "flat",
    "from_spec",
    "others",
    "read_skillmd",
    "to_spec",
]
