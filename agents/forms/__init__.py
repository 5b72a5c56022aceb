"""What owners type about agents, runs and accounts: checked here, saved elsewhere."""

from agents.forms.accounts import TimeZoneForm, TokenForm
from agents.forms.agents import AgentForm, AgentNewForm, ProviderKeyForm
from agents.forms.runs import RunStartForm

__all__ = ["AgentForm", "AgentNewForm", "ProviderKeyForm", "RunStartForm", "TimeZoneForm", "TokenForm"]
