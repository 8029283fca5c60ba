"""Plot lag and rebalances of groups over time as an SVG with two panels. Pure.

Laws
    The same series give the same bytes; the SVG refers to no external fonts, scripts or images.
    An unknown lag is a gap in the line, never 0.
    A group has the same colour in both panels. Of more than GROUPS_MAX groups, those with the highest lag are drawn,
    and the legend has the number of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final
from xml.sax.saxutils import escape

Points = list[tuple[float, float | None]]  # seconds since the epoch and a value, in order of time
Series = Mapping[str, Points]  # by group

GROUPS_MAX: Final = 8
COLOURS: Final = ("#3366cc", "#dc3912", "#ff9900", "#109618", "#990099", "#0099c6", "#dd4477", "#66aa00")
WIDTH: Final = 860
LEFT: Final = 64
RIGHT: Final = 20
TOP: Final = 56
LAG_HEIGHT: Final = 200
GAP: Final = 44
BARS_HEIGHT: Final = 100
BOTTOM: Final = 34
TICKS: Final = 5
HEIGHT: Final = TOP + LAG_HEIGHT + GAP + BARS_HEIGHT + BOTTOM


def svg(lag: Series, rebalances: Series, *, window_s: float, title: str = "Consumer groups") -> str:
    """`lag` at the end of each window and `rebalances`, the number of new generations in it, both by group."""
    groups, left_out = chosen(lag, rebalances)
    times = [at for series in (lag, rebalances) for points in series.values() for at, _ in points]
    axis = Axis(min(times, default=0.0) - window_s / 2, max(times, default=1.0) + window_s / 2)
    colours = dict(zip(groups, COLOURS, strict=False))
    shape = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" role="img" aria-label="{_attribute(title)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 18, title, size=14, bold=True),
        *_legend(colours, left_out),
        *_lag_panel({group: lag.get(group, []) for group in groups}, axis, colours),
        *_bar_panel({group: rebalances.get(group, []) for group in groups}, axis, colours, window_s),
        *_times(axis),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def chosen(lag: Series, rebalances: Series) -> tuple[list[str], int]:
    """The groups to draw, those with the highest lag, and the number of the others."""

    def most(group: str) -> float:
        return max((value for _, value in lag.get(group, []) if value is not None), default=0.0)

    names = sorted({*lag, *rebalances}, key=lambda group: (-most(group), group))
    return sorted(names[:GROUPS_MAX]), max(0, len(names) - GROUPS_MAX)


class Axis:
    """The horizontal time axis."""

    def __init__(self, first: float, last: float) -> None:
        self.first, self.last = first, max(last, first + 1e-3)

    def x(self, at: float) -> float:
        """The horizontal position of a time."""
        return LEFT + (at - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)


def ceiling(value: float) -> float:
    """A round number that is at least `value` and at least 1."""
    power: float = 10.0 ** math.floor(math.log10(max(value, 1.0)))
    return next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * power >= max(value, 1.0))


def _lag_panel(lag: Series, axis: Axis, colours: Mapping[str, str]) -> Iterator[str]:
    top = ceiling(max((value for points in lag.values() for _, value in points if value is not None), default=1.0))
    yield from _frame(TOP, LAG_HEIGHT, top, "lag, records")
    for group, points in lag.items():
        for run in _runs(points):
            place = [f"{axis.x(at):.1f},{TOP + LAG_HEIGHT * (1 - value / top):.1f}" for at, value in run]
            if len(place) == 1:
                x, y = place[0].split(",")
                yield f'<circle cx="{x}" cy="{y}" r="2" fill="{colours[group]}"/>'
            else:
                yield f'<polyline points="{" ".join(place)}" fill="none" stroke="{colours[group]}" stroke-width="1.6"/>'


def _runs(points: Points) -> Iterator[list[tuple[float, float]]]:
    """The parts of a line between gaps."""
    run: list[tuple[float, float]] = []
    for at, value in points:
        if value is None:
            if run:
                yield run
            run = []
        else:
            run.append((at, value))
    if run:
        yield run


def _bar_panel(counts: Series, axis: Axis, colours: Mapping[str, str], window_s: float) -> Iterator[str]:
    """Stacked bars, one stack for each window."""
    at_time: dict[float, list[tuple[str, float]]] = {}
    for group, points in counts.items():
        for at, value in points:
            if value:
                at_time.setdefault(at, []).append((group, value))
    top = ceiling(max((sum(value for _, value in bars) for bars in at_time.values()), default=1.0))
    base = TOP + LAG_HEIGHT + GAP + BARS_HEIGHT
    yield from _frame(base - BARS_HEIGHT, BARS_HEIGHT, top, "rebalances")
    wide = max(2.0, (axis.x(axis.first + window_s) - axis.x(axis.first)) * 0.8)
    for at in sorted(at_time):
        y = float(base)
        for group, value in at_time[at]:
            high = BARS_HEIGHT * value / top
            y -= high
            yield (
                f'<rect x="{axis.x(at) - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" '
                f'fill="{colours[group]}"/>'
            )


def _frame(y: float, height: float, top: float, name: str) -> Iterator[str]:
    yield _text(LEFT, y - 8, name, colour="#555555")
    for part in range(3):
        at = y + height * (1 - part / 2)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>'
        yield _text(LEFT - 6, at + 4, f"{top * part / 2:g}", anchor="end", colour="#555555")


def _times(axis: Axis) -> Iterator[str]:
    shape = "%H:%M:%S" if axis.last - axis.first < 3600 else "%m-%d %H:%M"
    for part in range(TICKS):
        at = axis.first + (axis.last - axis.first) * part / (TICKS - 1)
        anchor = "start" if part == 0 else "end" if part == TICKS - 1 else "middle"
        label = datetime.fromtimestamp(at, UTC).strftime(shape)
        yield _text(axis.x(at), HEIGHT - BOTTOM + 18, label, anchor=anchor, colour="#555555")


def _legend(colours: Mapping[str, str], left_out: int) -> Iterator[str]:
    x = float(WIDTH - RIGHT)
    entries = [*colours.items()] + ([(f"and {left_out} more", "none")] if left_out else [])
    for name, colour in reversed(entries):
        yield _text(x, 18, name, anchor="end")
        x -= 7.0 * len(name) + 14
        yield f'<rect x="{x:.1f}" y="9" width="10" height="10" fill="{colour}"/>'
        x -= 12


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 11, bold: bool = False, colour: str = "#222222"
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"{weight}>'
        f"{escape(text)}</text>"
    )


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
