"""What an adopted skill costs in every request: its whole text when always on, one catalogue line on demand."""

from collections.abc import Iterable
from dataclasses import dataclass

from agents import llm
from agents.engine import disclosure
from agents.engine.context import SKILL_TOKENS
from agents.engine.disclosure import DESCRIPTION_LENGTH, Entry
from agents.sources.adopted import entry_of
from marketplace.protocol import templates
from marketplace.protocol.skills import SkillSpec

OWN_MODE = "its context mode is {rule}: it adds nothing to other runs, always on or not"
TEMPLATE = "it fills in a text without a model: no request carries it"
NO_SYSTEM = "it has no system section: it adds nothing to other runs while it is always on"
BY_NAME = "on demand, only you may ask for it, by its /name"
CUT = "its text is cut at {most:,} tokens"


@dataclass(frozen=True, slots=True)
class Carried:
    """Tokens per request either way, what a load adds, and why a figure is not what one would expect."""

    always: int = 0
    line: int = 0
    load: int = 0
    note: str = ""

    @property
    def saved(self) -> int:
        return self.always - self.line


def carried(spec: SkillSpec, name: str, most: int = SKILL_TOKENS, length: int = DESCRIPTION_LENGTH) -> Carried:
    """`name`: the one it goes by here; `most`: of the agent for one skill; `length`: of a catalogue line."""
    if spec.action == "template":
        return Carried(note=TEMPLATE)
    entry = entry_of(name, spec)
    line = llm.count(disclosure.line(entry, length) + "\n") if entry.by_model else 0
    load = llm.count(disclosure.render(entry))
    if spec.rule in {"full", "override"}:
        return Carried(0, line, load, OWN_MODE.format(rule=spec.rule))
    texts = [section.text for section in templates.sections(spec.template) if section.role == "system"]
    whole = sum(map(llm.count, texts))
    notes = [CUT.format(most=most)] * (whole > most) + [NO_SYSTEM] * (not whole) + [BY_NAME] * (not entry.by_model)
    return Carried(min(whole, most), line, load, "; ".join(notes))


def catalogue(entries: Iterable[Entry], rules: str | None = None, length: int = DESCRIPTION_LENGTH) -> int:
    """Tokens of the whole catalogue message; 0 where there is nothing to tell."""
    told = disclosure.update(entries, last=None, usage_rules=rules, length=length)
    return llm.count(told.text) if told else 0
