"""Bar charts as SVG geometry, drawn by the server: no script is needed, a table with the figures stands beside."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

WIDTH, HEIGHT = 720, 200  # user units; the picture scales with its page
LEFT, BOTTOM, TOP = 64, 24, 8
MOST_LABELS = 8  # below the bars
LEAST_BAR = 1.5  # so that what is not nothing can be seen
UNKNOWN_BAR = 10  # height of the mark for a cost nobody knows


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    label: str  # below the bar, "" where there is no room
    words: str  # what the bar says, for a pointer that rests on it
    unknown: bool  # some of it is not known: marked on top

    @property
    def mark_y(self) -> float:
        return round(self.y - UNKNOWN_BAR, 2)


@dataclass(frozen=True, slots=True)
class Line:
    y: float
    value: Decimal


@dataclass(frozen=True, slots=True)
class Chart:
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    base: int = HEIGHT - BOTTOM
    mark: int = UNKNOWN_BAR


def bars(values: Sequence[tuple[str, Decimal, int, str]]) -> Chart:
    """(label, amount, how many are unknown, words) from left to right. All zero is a flat line, never a division."""
    top = ceiling(max((amount for _, amount, _, _ in values), default=Decimal(0)))
    room = HEIGHT - BOTTOM - TOP - UNKNOWN_BAR
    base = HEIGHT - BOTTOM
    step = (WIDTH - LEFT) / max(1, len(values))
    every = -(-len(values) // MOST_LABELS) if values else 1
    drawn = []
    for at, (label, amount, unknown, words) in enumerate(values):
        height = max(LEAST_BAR, float(amount / top) * room) if top and amount > 0 else 0.0
        drawn.append(
            Bar(
                x=round(LEFT + at * step + step * 0.1, 2),
                y=round(base - height, 2),
                width=round(min(step * 0.8, 64), 2),
                height=round(height, 2),
                label=label if at % every == 0 else "",
                words=words,
                unknown=unknown > 0,
            )
        )
    grid = tuple(Line(round(base - float(part) * room, 2), top * part) for part in _PARTS) if top else ()
    return Chart(tuple(drawn), grid)


_PARTS = (Decimal("0.5"), Decimal(1))


def ceiling(value: Decimal) -> Decimal:
    """The next 1, 2 or 5 times a power of ten, so that the scale can be read."""
    if value <= 0:
        return Decimal(0)
    power = Decimal(1).scaleb(value.adjusted())
    return next(power * step for step in (1, 2, 5, 10) if power * step >= value)
