"""One skill before one agent: what it asks for, what would fire, and what adopting it would cost."""

import json
from dataclasses import dataclass

from agents import arming
from agents.engine import disclosure
from agents.forms.adopting import AdoptForm
from agents.models import AdoptedSkill, Agent, Trigger
from agents.sources import sources_for
from agents.sources.adopted import entry_of
from agents.sources.carrying import Carried, catalogue
from agents.sources.disclosing import TOOL, description_length
from agents.tools import TOOLS, Tool
from agents.views.agent_skills import cost_of
from marketplace import publish
from marketplace.models import Skill
from marketplace.protocol import nip19
from marketplace.protocol.events import Address
from marketplace.protocol.filters import KEY_PLACEHOLDERS, fill_placeholders
from marketplace.protocol.skills import SkillSpec
from marketplace.protocol.templates import read_action
from marketplace.protocol.triggers.subscription import Subscription, to_tags


@dataclass
class Offer:
    """One skill before one agent: what it asks for, and what adopting it would do."""

    skill: Skill
    agent: Agent | None
    spec: SkillSpec | None = None
    row: AdoptedSkill | None = None
    trigger: Trigger | None = None
    form: AdoptForm | None = None

    @property
    def address(self) -> Address:
        return Address(self.skill.kind, self.skill.pubkey, self.skill.d)

    @property
    def naddr(self) -> str:
        return nip19.encode_naddr(self.address)

    @property
    def tools(self) -> list[tuple[Tool, bool]]:
        """The tools it names (all, where it does not say), and whether the agent grants them already."""
        granted = set(self.agent.grants) if self.agent else set()
        return [(TOOLS[name], name in granted) for name in sorted(self._asked() & TOOLS.keys())]

    def _asked(self) -> set[str]:
        if self.spec is None:
            return set()
        if self.spec.action == "template":
            return set(arming.writing_tools(self.agent, self.spec)) if self.agent else set()
        if self.spec.tools is True:  # what is granted already, nothing more
            return set(self.agent.grants) if self.agent else set()
        return set(self.spec.tools or ())

    @property
    def asks_all(self) -> bool:
        return self.spec is not None and self.spec.tools is True and self.spec.action != "template"

    @property
    def unknown_tools(self) -> list[str]:
        return sorted(self._asked() - TOOLS.keys())

    @property
    def writes(self) -> bool:
        return any(tool.risk != "reads" for tool, _ in self.tools)

    @property
    def action(self) -> str:
        """What a template action does, in a word."""
        if self.spec is None or self.spec.action != "template":
            return ""
        try:
            return read_action(self.spec.template).kind
        except ValueError:
            return ""

    @property
    def cost(self) -> Carried:
        """What carrying it costs in every request, always on or on demand."""
        if self.agent is None or self.spec is None:
            return Carried()
        return cost_of(self.agent, self.spec, self._name)

    @property
    def frame(self) -> int:
        """Tokens that come once with the list of skills on demand, where this would be the first on it."""
        if self.agent is None or self.spec is None or not self.cost.line:
            return 0
        listed, entry = sources_for(self.agent).list_skills().entries, entry_of(self._name, self.spec)
        rules, length = self.agent.usage_rules, description_length(self.agent)
        now = catalogue(listed, rules, length) if TOOL in self.agent.grants else 0
        return max(0, catalogue([*listed, entry], rules, length) - now - self.cost.line - 1)

    @property
    def _name(self) -> str:
        return disclosure.names([(self.skill.d, self.skill.pubkey)])[0]

    @property
    def relays(self) -> list[str]:
        return publish.write_relays(self.agent.identity) if self.agent else []

    @property
    def arms(self) -> bool:
        """Whether adopting it makes something fire."""
        return self.spec is not None and self.spec.trigger is not None and self.spec.trigger.usable

    @property
    def _subscription(self) -> Subscription | None:
        data = self.spec.trigger.data if self.spec and self.spec.trigger else None
        return data if isinstance(data, Subscription) else None

    @property
    def placeholders(self) -> frozenset[str]:
        """Those of the filter: the words say "you" and "the agent" for them."""
        found = self._subscription
        return frozenset().union(*(one.unfilled for one in found.filters)) & KEY_PLACEHOLDERS if found else frozenset()

    @property
    def names_admin(self) -> bool:
        return "<admin_pubkey>" in self.placeholders

    @property
    def names_agent(self) -> bool:
        return "<agent_pubkey>" in self.placeholders

    @property
    def filter_text(self) -> str:
        """The filter as it will be armed, the agent's keys in it; "" for other triggers."""
        found = self._subscription
        if found is None or self.agent is None:
            return ""
        filled = fill_placeholders(found.filters, self.agent.admin_pubkey, self.agent.identity.pubkey)
        return json.dumps(json.loads(to_tags(Subscription(filled))[0][1]), ensure_ascii=False, indent=1)
