"""SKILL.md (Agent Skills) and skills: read with what was lost said, written so that it reads back.

read_skillmd(data, folder)  -> SkillFile, with problems by line
to_spec(file)               -> the skill it describes; what the format has no place for comes from its metadata
from_spec(spec)             -> the skill as SKILL.md, which the reference validator takes
"""

from marketplace.protocol.skillmd.reading import MAX_DESCRIPTION, MAX_FILE, MAX_NAME, SkillFile, read_skillmd
from marketplace.protocol.skillmd.writing import PREFIX, from_spec, to_spec

__all__ = ["MAX_DESCRIPTION", "MAX_FILE", "MAX_NAME", "PREFIX", "SkillFile", "from_spec", "read_skillmd", "to_spec"]
