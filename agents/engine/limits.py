"""Whether an occasion may start a run now, or the reason why not; counting is the caller's."""

from dataclasses import dataclass

MAX_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the site, or as an owner set them for one agent."""

    concurrent: int = 16  # triggered runs open at once
    cooldown: int = 60  # seconds per skill
    llm_per_minute: int = 10
    template_per_minute: int = 60
    depth: int = MAX_DEPTH

    def adjusted(self, own: dict[str, object]) -> "Limits":
        """With an agent's own numbers; anything that is not a whole number is passed over."""
        names = self.__slots__
        values = {name: own[name] for name in names if type(own.get(name)) is int and int(str(own[name])) >= 0}
        return Limits(**{**{name: getattr(self, name) for name in names}, **values})


@dataclass(frozen=True, slots=True)
class Situation:
    """What is the case at the moment of decision."""

    action: str = "llm"
    enabled: bool = True  # trigger, agent and site
    usable: bool = True
    duplicate: bool = False
    own_event: bool = False
    expired: bool = False
    depth: int = 0
    since_last: float | None = None  # seconds since this skill's last run began; None: never
    open_runs: int = 0  # triggered, of the scope of `concurrent`
    llm_last_minute: int = 0
    template_last_minute: int = 0
    over_budget: str = ""  # which budget is used up, in words


@dataclass(frozen=True, slots=True)
class Refusal:
    reason: str  # the short word kept with the run
    words: str  # what its owner reads


def decide(case: Situation, limits: Limits) -> Refusal | None:
    """None: go. The first reason that holds, in the order in which an owner would ask."""
    if case.duplicate:
        return Refusal("duplicate", "This occasion already made a run.")
    if not case.enabled:
        return Refusal("disabled", "The trigger is off or resting, or its agent or the site is off.")
    if not case.usable:
        return Refusal("unusable", "The trigger cannot be used as it is.")
    if case.expired:
        return Refusal("expired", "The event had expired.")
    if case.own_event:
        return Refusal("loop", "An agent's own events never start it.")
    if case.depth > limits.depth:
        return Refusal("loop", f"The chain is longer than {limits.depth} steps.")
    if case.since_last is not None and case.since_last < limits.cooldown:
        rest = limits.cooldown - case.since_last
        return Refusal("cooldown", f"This skill ran {case.since_last:.0f} s ago; it rests for {rest:.0f} s more.")
    rate = limits.template_per_minute if case.action == "template" else limits.llm_per_minute
    done = case.template_last_minute if case.action == "template" else case.llm_last_minute
    if done >= rate:
        return Refusal("rate", f"{done} {case.action} actions in the last minute; the limit is {rate}.")
    if case.open_runs >= limits.concurrent:
        return Refusal("concurrency", f"{case.open_runs} triggered runs are open; the limit is {limits.concurrent}.")
    if case.over_budget:
        return Refusal("budget", case.over_budget)
    return None
