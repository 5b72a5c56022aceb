"""What a relay says, frame by frame, and our own checks of it: pure, so that every oddity can be tested."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marketplace.protocol import checks
from marketplace.protocol.checks import Refused
from marketplace.protocol.events import Event, event_id
from marketplace.protocol.filters import Filter, read_filter

MAX_TEXT = checks.MAX_BYTES * 6 + 1_000  # an event at its limit, every byte escaped
REMEMBERED = 20_000  # verified ids; 64 bytes of text each and as much again for the table


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: `verb` is EVENT EOSE CLOSED NOTICE OK AUTH, or "" for garbage with its reason in `text`."""

    verb: str
    name: str = ""  # subscription, or the event id of an OK
    text: str = ""
    ok: bool = False
    body: Any = None


def read(raw: str | bytes) -> Frame:
    """Never raises."""
    if isinstance(raw, bytes):
        return Frame("", text="binary")
    if len(raw) > MAX_TEXT:
        return Frame("", text="size")
    try:
        row = checks.strict_json(raw)
    except Refused as refused:
        return Frame("", text=refused.reason)
    if not isinstance(row, list) or not row or not isinstance(row[0], str):
        return Frame("", text="frame")
    texts = [value if isinstance(value, str) else "" for value in row[1:4]] + ["", "", ""]
    match row[0]:
        case "EVENT" if len(row) == 3 and isinstance(row[1], str):
            return Frame("EVENT", row[1], body=row[2])
        case "EOSE" if len(row) > 1:
            return Frame("EOSE", texts[0])
        case "CLOSED" if len(row) > 1:
            return Frame("CLOSED", texts[0], texts[1][:300])
        case "OK" if len(row) > 2:
            return Frame("OK", texts[0], texts[2][:300], row[2] is True)
        case "NOTICE" | "AUTH" if len(row) > 1:
            return Frame(row[0], text=texts[0][:300])
    return Frame("", text="frame")


class Verified:
    """Ids whose signature was right, so that ten relays cost one check; bounded, oldest out first."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self.most = most
        self._ids: OrderedDict[str, None] = OrderedDict()

    def check(self, event: Event) -> None:
        """Raises Refused unless id and signature are right."""
        if event.id in self._ids and _hash(event) == event.id:
            return
        checks.verify(event)
        self._ids[event.id] = None
        if len(self._ids) > self.most:
            self._ids.popitem(last=False)


def admit(frame: Frame, asked: Mapping[str, Sequence[Filter]], verified: Verified) -> Event:
    """The event of an EVENT frame, fit to be handed on. Raises Refused.

    `asked`: subscription -> the filters sent with it.
    """
    filters = asked.get(frame.name)
    if filters is None:
        raise Refused("unknown-subscription")
    if not isinstance(frame.body, dict):
        raise Refused("shape")
    event = checks.parse(frame.body)
    if not any(wanted.matches(event) for wanted in filters):
        raise Refused("filter", "The event does not fit the filter we sent.")
    verified.check(event)
    return event


def as_filters(given: Iterable[Filter | dict[str, Any]]) -> list[Filter]:
    """Raises ValueError with what is wrong with a filter."""
    found = []
    for item in given:
        if isinstance(item, Filter):
            found.append(item)
            continue
        wanted, problems = read_filter(item)
        if wanted is None:
            raise ValueError(" ".join(problems))
        found.append(wanted)
    return found


def _hash(event: Event) -> str:
    try:
        return event_id(event.pubkey, event.created_at, event.kind, event.tags, event.content)
    except UnicodeEncodeError:
        return ""
