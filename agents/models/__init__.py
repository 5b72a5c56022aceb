"""Agents, what they are armed with, and every run on record."""

from agents.models.adoptions import AdoptedSkill
from agents.models.agents import Agent, ProviderKey
from agents.models.alerts import Alert, AlertRoute
from agents.models.budgets import Budget, Reservation
from agents.models.changes import Change
from agents.models.comparisons import Comparison
from agents.models.conversations import Conversation, IgnoredMessage
from agents.models.halts import Halt
from agents.models.hooks import Delivery, Hook, UnknownCall
from agents.models.memory import Memory
from agents.models.notices import Notice
from agents.models.prices import OwnModel
from agents.models.repricing import Repricing
from agents.models.runs import HeldBack, Run
from agents.models.steps import Step
from agents.models.triggers import Trigger
from agents.models.uploads import SkillUpload

__all__ = [
    "AdoptedSkill",
    "Agent",
    "Alert",
    "AlertRoute",
    "Budget",
    "Change",
    "Comparison",
    "Conversation",
    "Delivery",
    "Halt",
    "HeldBack",
    "Hook",
    "IgnoredMessage",
    "Memory",
    "Notice",
    "OwnModel",
    "ProviderKey",
    "Repricing",
    "Reservation",
    "Run",
    "SkillUpload",
    "Step",
    "Trigger",
    "UnknownCall",
]
