"""What a tool is, what it is handed, and the one way to call it.

ToolError                 words for the model, never with a secret
    ToolRefused           nothing was tried: unknown tool, not granted, wrong arguments
        SecretFound       nothing was sent: the text holds a key this site knows
    ToolFailed            it was tried and did not work; `unknown` when it may have worked
ToolWaits                 no error: it goes on later, and is called again with what it remembered
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agents.engine.fences import fence
from agents.tools.schemas import documentation, problem, schema_of

if TYPE_CHECKING:
    from agents.models import Agent, Run, Trigger

Risk = Literal["reads", "writes", "spends"]
LONGEST_REPLY = 100_000  # characters handed back to a model


class ToolError(Exception):
    """Base of what a tool raises; its text may be shown to the model and the owner."""


class ToolRefused(ToolError):
    """Nothing was tried."""


class SecretFound(ToolRefused):
    """Outgoing text holds a known secret; the run is to be flagged."""


class ToolFailed(ToolError):
    """Tried, and did not work."""

    def __init__(self, words: str, unknown: bool = False) -> None:
        super().__init__(words)
        self.unknown = unknown  # True: it may have had its effect all the same


class ToolWaits(Exception):
    """Nothing may wait in a worker: the run waits in its row, and the call is made again."""


@dataclass(frozen=True)
class Tool:
    """One thing an agent can do. Risk: reads, writes (others see it), spends (costs money)."""

    name: str
    function: Callable[..., str]
    risk: Risk
    # Whether a call whose outcome is unknown may be made again: reads, and publications, which send the same id.
    repeatable: bool
    # It changes what the agent is or does: its owner is asked also where the run may act by itself.
    asks: bool = False
    # What the call would do, in words for its owner; takes the tool's arguments, raises ToolRefused as the tool would.
    foresee: Callable[..., str] | None = None

    @cached_property
    def description(self) -> str:
        return documentation(self.function)[0]

    @cached_property
    def parameters(self) -> dict[str, Any]:
        return schema_of(self.function)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The form that chat completion APIs take."""
        said = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": said}


class Verbs(Protocol):
    """What layers above the tools do for them; the runner hands it over."""

    def start(self, parent: "Run", address: str, event_id: str, message: str, tools: list[str], key: str) -> "Run":
        """A run of this skill version that `parent` started; the same key gives the same run."""

    def pin(self, agent: "Agent", address: str, event_id: str, now: datetime) -> None:
        """This version runs from now on, and its trigger is armed."""

    def switch(self, trigger: "Trigger", enabled: bool, now: datetime) -> None:
        """The trigger's switch."""


@dataclass
class ToolContext:
    """What a call is allowed and where it keeps its intent; made anew by the runner for each call.

    `recalled` is what an earlier attempt of this very call gave to `remember`: {} the first time. A tool with a side
    effect hands its intent to `remember`, which must have stored it when it returns, and repeats exactly that.
    """

    agent: "Agent"
    now: datetime
    granted: frozenset[str]  # names this run may call: the owner's grants, narrowed by the skill
    run: "Run | None" = None
    recalled: Mapping[str, Any] = field(default_factory=dict)
    remember: Callable[[dict[str, Any]], None] = lambda intent: None
    flag: Callable[[str], None] = lambda words: None  # marks the run for its owner
    fence: Callable[[str, str], str] | None = None  # (source, text) -> the text between the run's unguessable marks
    seconds: float = 20.0  # how long the call may take
    key: str = ""  # names this call among all calls there ever were; the same in every attempt
    approved: bool = False  # whether the owner said yes to this very call
    verbs: Verbs | None = None

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Seconds left for this call."""
        return max(0.1, self.until - time.monotonic())

    @property
    def site(self) -> Verbs:
        """The verbs, for tools that make no sense outside a run."""
        if self.verbs is None:
            raise ToolRefused("This tool works within a run only.")
        return self.verbs

    def fenced(self, source: str, text: str) -> str:
        """What others wrote, marked as such."""
        return self.fence(source, text) if self.fence else fence(source, text, secrets.token_hex(8))


Guard = Callable[..., None]  # (ctx, *texts), raises SecretFound


def call(tools: Mapping[str, Tool], ctx: ToolContext, name: str, arguments: dict[str, Any], guard: Guard) -> str:
    """The tool's answer. Raises ToolRefused, ToolFailed or ToolWaits, and nothing else that a tool may cause.

    `guard` sees every text of the arguments first: also what only asks sends them to a relay or a page.
    """
    tool, given = _allowed(tools, ctx, name, arguments)
    try:
        guard(ctx, *_texts(given))
        answer = tool.function(ctx, **given)
    except SecretFound as found:
        ctx.flag(str(found))
        raise
    if len(answer) > LONGEST_REPLY:
        cut = len(answer) - LONGEST_REPLY
        answer = f"{answer[:LONGEST_REPLY]}\n[{cut} characters left out]"
    return answer


def foresee(tools: Mapping[str, Tool], ctx: ToolContext, name: str, arguments: dict[str, Any], guard: Guard) -> str:
    """What the call would do, for the owner to decide on. Raises ToolRefused where there is nothing to decide."""
    tool, given = _allowed(tools, ctx, name, arguments)
    try:
        guard(ctx, *_texts(given))
        return tool.foresee(ctx, **given) if tool.foresee else ""
    except SecretFound as found:
        ctx.flag(str(found))
        raise


def _texts(value: Any) -> Iterator[str]:
    """Every text in it, names included, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _allowed(
    tools: Mapping[str, Tool], ctx: ToolContext, name: str, arguments: dict[str, Any]
) -> tuple[Tool, dict[str, Any]]:
    """The tool, and the arguments that were given."""
    tool = tools.get(name)
    if tool is None:
        raise ToolRefused(f'There is no tool "{name[:80]}".')
    if name not in ctx.granted:
        raise ToolRefused(f'The tool "{name}" is not granted to this run.')
    needed = tool.parameters["required"]
    # Many models send null for what they leave out.
    given = {key: value for key, value in arguments.items() if value is not None or key in needed}
    wrong = problem(tool.parameters, given)
    if wrong:
        raise ToolRefused(f"{name}: {wrong}.")
    return tool, given
