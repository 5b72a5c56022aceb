"""The history of what was changed about an agent, by its owner or by itself: only ever added to, without secrets."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models

from agents.models.agents import Agent
from agents.models.runs import Run
from marketplace.models import User
from marketplace.protocol import nip19
from marketplace.protocol.storable import storable

LONGEST = 2_000  # characters kept of one text
MOST_ITEMS = 200  # of one list or object
# Fields of an agent whose former value a click brings back.
UNDOABLE = frozenset({"grants", "llm", "dm_recipients", "model_choices", "public_skills", "self_change"})


class ChangeQuerySet(models.QuerySet["Change"]):
    def of(self, user: User) -> "ChangeQuerySet":
        return self.filter(owner=user)

    def page(self, before: int | None, limit: int) -> tuple[list["Change"], int | None]:
        """The newest changes older than `before`, and where the next page begins."""
        found = self.order_by("-pk") if before is None else self.order_by("-pk").filter(pk__lt=before)
        rows = list(found[: limit + 1])
        return rows[:limit], rows[limit - 1].pk if len(rows) > limit else None


class Change(models.Model):
    """One change: who did what to which thing, as it was and as it is since."""

    class Actor(models.TextChoices):
        OWNER = "owner", "you"
        AGENT = "agent", "the agent"

    at = models.DateTimeField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="changes")
    agent = models.ForeignKey(Agent, models.SET_NULL, null=True, related_name="changes")
    actor = models.CharField(max_length=5, choices=Actor)
    run = models.ForeignKey(Run, models.SET_NULL, null=True, related_name="changes")  # in which the agent did it
    what = models.CharField(max_length=40)  # the agent's field, or: trigger, skill, adoption, budget, provider key
    object = models.CharField(max_length=300, default="")  # its name, where the agent has several
    before = models.JSONField(null=True)  # None: it was not there
    after = models.JSONField(null=True)  # None: it is gone

    objects = ChangeQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["agent", "-id"], name="changes_of_agent")]

    @classmethod
    def record(
        cls, agent: Agent, what: str, object: str, before: Any, after: Any, now: datetime, run: Run | None = None
    ) -> "Change | None":
        """Keep that it changed; nothing where it did not. `run`: the agent did it there, else its owner did."""
        before, after = kept(before), kept(after)
        if before == after:
            return None
        return cls.objects.create(
            at=now,
            owner_id=agent.owner_id,
            agent=agent,
            actor=cls.Actor.AGENT if run else cls.Actor.OWNER,
            run=run,
            what=what,
            object=str(kept(object))[:300],
            before=before,
            after=after,
        )

    @classmethod
    def record_fields(cls, before: Agent, after: Agent, names: Iterable[str], now: datetime) -> None:
        """An entry for each of these fields that its owner gave another value."""
        for name in names:
            cls.record(after, name, "", getattr(before, name), getattr(after, name), now)

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("History is added to, never rewritten.")
        super().save(*args, **kwargs)

    @property
    def undoable(self) -> bool:
        return self.what in UNDOABLE and not self.object and self.agent_id is not None

    def undo(self, now: datetime) -> "Change | None":
        """Give the agent's field its former value; None where it has it already. It is one more change."""
        if not self.undoable or self.agent is None:
            return None
        current = getattr(self.agent, self.what)
        setattr(self.agent, self.what, self.before)
        self.agent.save(update_fields=[self.what])
        return Change.record(self.agent, self.what, "", current, self.before, now)

    @property
    def words(self) -> list[str]:
        """What is different, a line for each part."""
        return differences(self.before, self.after)


def kept(value: Any) -> Any:
    """The value as it may stand in the history: bounded, storable, and without a secret key."""
    if isinstance(value, str):
        return nip19.without_nsec(storable(value))[:LONGEST]
    if isinstance(value, dict):
        return {str(kept(str(key))): kept(item) for key, item in list(value.items())[:MOST_ITEMS]}
    if isinstance(value, list | tuple | set | frozenset):
        return [kept(item) for item in list(value)[:MOST_ITEMS]]
    return value if value is None or isinstance(value, bool | int | float) else str(value)[:LONGEST]


def differences(before: Any, after: Any) -> list[str]:
    """In words: what a list gained and lost, each field of an object, else from one value to the other."""
    if isinstance(before, list) and isinstance(after, list):
        gained = [str(item) for item in after if item not in before]
        lost = [str(item) for item in before if item not in after]
        found = [f"added {', '.join(gained)}"] * bool(gained) + [f"removed {', '.join(lost)}"] * bool(lost)
        return found or ["in another order"]
    if isinstance(before, dict | None) and isinstance(after, dict | None) and (before or after):
        old, new = before or {}, after or {}
        names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        return [f"{name}: {_one(old.get(name), new.get(name))}" for name in names]
    return [_one(before, after)]


def _one(before: Any, after: Any) -> str:
    if before is None or before == "" or before == []:
        return _said(after)
    return f"{_said(before)} → {_said(after)}"


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "" or value == []:
        return "nothing"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
