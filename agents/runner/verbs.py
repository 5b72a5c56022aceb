"""What the runner hands its tools: the verbs of the layers above them."""

from datetime import datetime

from django.utils import timezone

from agents import arming, dispatch
from agents.models import Agent, Run, Trigger


class RunVerbs:
    """The product's own; tests of single tools may hand others."""

    def start(self, parent: Run, address: str, event_id: str, message: str, tools: list[str], key: str) -> Run:
        return dispatch.child(parent, address, event_id, message, tools, key, timezone.now())

    def pin(self, agent: Agent, address: str, event_id: str, now: datetime) -> None:
        arming.pin(agent, address, event_id, now)

    def switch(self, trigger: Trigger, enabled: bool, now: datetime) -> None:
        arming.switch(trigger, enabled, now)
