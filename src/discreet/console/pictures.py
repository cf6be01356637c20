"""Pictures drawn on the server as SVG, each with words for those who do not see it. The table stands beside them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from discreet.release import Release
from discreet.release.render import estimate
from discreet.release.values import FAR
from discreet.texts import visible

WIDE, ROW, LABEL = 520, 24, 150
MOST_GROUPS = 40
MOST_PICTURES = 3
LEAST_OF_A_LINE = 3
_ORDERED = ("integer", "number", "date", "timestamp")


@dataclass(frozen=True)
class Picture:
    """A picture, its caption, and what of the answer it leaves out."""

    svg: Markup
    caption: str


@dataclass(frozen=True)
class _Point:
    label: str
    at: float
    value: float
    low: float
    high: float
    words: str


def chart(release: Release) -> list[Picture]:
    """A picture of each of the first estimates: a line with its band along dates and numbers, else a mark with its
    error bar for each group. None where there are fewer than two groups."""
    types = release.holds.types
    keys = [name for name in release.columns if name in types]
    names = [name for name in release.columns if name not in types]
    if len(release.rows) < 2:
        return []
    made = []
    for name in names[:MOST_PICTURES]:
        line = len(keys) == 1 and types[keys[0]] in _ORDERED
        points = _points(release, keys, name, line)
        if len(points) < 2:
            continue
        if line and len(points) >= LEAST_OF_A_LINE and len({point.at for point in points}) == len(points):
            made.append(_line(sorted(points, key=lambda point: point.at), name, keys[0]))
        else:
            made.append(_bars(points, name, len(release.rows)))
    return made


def _points(release: Release, keys: Sequence[str], name: str, ordered: bool) -> list[_Point]:
    found = []
    for place, (row, ends) in enumerate(zip(release.rows, release.intervals, strict=True)):
        value, interval = row[name], ends.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or (ordered and row[keys[0]] is None):
            continue
        low, high = interval or (value, value)
        known = low > -FAR and high < FAR
        words = ", ".join("NULL" if row[key] is None else str(row[key]) for key in keys) or f"row {place + 1}"
        at = _place(row[keys[0]]) if ordered else float(place)
        shown = estimate(value, (low, high)) if interval else f"{value:,}"
        found.append(
            _Point(
                visible(words), at, float(value), float(low if known else value), float(high if known else value), shown
            )
        )
    return found


def _place(value: object) -> float:
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)).total_seconds() / 86_400
    if isinstance(value, datetime.date):
        return float(value.toordinal())
    return float(value) if isinstance(value, int | float) else 0.0


def _steps(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers between two."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / count
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [step * number for number in range(first, math.floor(high / step + 1e-9) + 1)][:12]


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 or value == int(value) else f"{value:.4g}"


def _cut(text: str, most: int = 21) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _alternative(points: Sequence[_Point], name: str, what: str) -> str:
    least, most = min(points, key=lambda point: point.value), max(points, key=lambda point: point.value)
    return (
        f"{what} of {visible(name)} with 95 % intervals, {len(points)} values: the least {least.words} ({least.label}),"
        f" the largest {most.words} ({most.label})"
    )


def _bars(points: Sequence[_Point], name: str, rows: int) -> Picture:
    shown = points[:MOST_GROUPS]
    low, high = min(0.0, *(point.low for point in shown)), max(0.0, *(point.high for point in shown))
    high = high if high > low else low + 1
    tall = ROW * len(shown) + 28

    def x(value: float) -> float:
        return LABEL + 8 + (value - low) / (high - low) * (WIDE - LABEL - 28)

    parts = [_grid(x(step), step, tall) for step in _steps(low, high)]
    for place, point in enumerate(shown):
        y = place * ROW + ROW / 2 + 2
        left, right = sorted((x(0), x(point.value)))
        parts.append(
            Markup(
                '<g><title>{}: {}</title><text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
                '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="14"/>'
                '<path class="whisker" d="M{:.1f} {:.1f}H{:.1f}m0-4v8M{:.1f} {:.1f}v8"/>'
                '<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="3.5"/></g>'
            ).format(
                *(point.label, point.words, LABEL, y + 4, _cut(point.label)),
                *(left, y - 7, right - left),
                *(x(point.low), y, x(point.high), x(point.low), y - 4),
                *(x(point.value), y),
            )
        )
    parts.append(Markup('<path class="axis" d="M{:.1f} 0V{}"/>').format(x(0), tall - 24))
    caption = f"{visible(name)} with 95 % intervals"
    if len(shown) < rows:
        caption += f"; the first {len(shown)} of {rows:,} rows: all are in the table"
    return Picture(_svg(parts, tall, _alternative(shown, name, "Bars")), caption)


def _grid(x: float, value: float, tall: int) -> Markup:
    return Markup(
        '<path class="grid" d="M{:.1f} 0V{}"/><text class="soft" x="{:.1f}" y="{}" text-anchor="middle">{}</text>'
    ).format(x, tall - 24, x, tall - 6, _short(value))


def _line(points: Sequence[_Point], name: str, key: str) -> Picture:
    tall, left, right, bottom = 260, 62, WIDE - 18, 226
    low, high = min(point.low for point in points), max(point.high for point in points)
    low, high = (min(0.0, low), high) if low < 0.6 * high else (low, high)
    high = high if high > low else low + 1
    first, last = points[0].at, points[-1].at

    def x(value: float) -> float:
        return left + (value - first) / (last - first) * (right - left)

    def y(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - 14)

    parts = [
        Markup(
            '<path class="grid" d="M{} {:.1f}H{}"/><text class="soft" x="{}" y="{:.1f}" text-anchor="end">{}</text>'
        ).format(left, y(step), right, left - 6, y(step) + 4, _short(step))
        for step in _steps(low, high)
    ]
    there = " ".join(f"{x(point.at):.1f},{y(point.high):.1f}" for point in points)
    back = " ".join(f"{x(point.at):.1f},{y(point.low):.1f}" for point in reversed(points))
    along = " ".join(f"{x(point.at):.1f},{y(point.value):.1f}" for point in points)
    parts.append(Markup('<polygon class="band" points="{} {}"/>').format(there, back))
    parts.append(Markup('<polyline class="curve" points="{}"/>').format(along))
    if len(points) <= 80:
        parts += [
            Markup('<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="3"><title>{}: {}</title></circle>').format(
                x(point.at), y(point.value), point.label, point.words
            )
            for point in points
        ]
    for point, anchor in ((points[0], "start"), (points[len(points) // 2], "middle"), (points[-1], "end")):
        parts.append(
            Markup('<text class="soft" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                x(point.at), bottom + 20, anchor, _cut(point.label)
            )
        )
    return Picture(
        _svg(parts, tall, _alternative(points, name, "A line")),
        f"{visible(name)} along {visible(key)}; the band holds 95 % intervals",
    )


def meter(used: float, words: str = "") -> Markup:
    """How much of a budget is used, in percent, as a bar."""
    part = max(0.0, min(100.0, used))
    told = words or f"{part:.3g} % of the budget is used"
    wide = part * (WIDE / 100)
    return _svg(
        [
            Markup('<rect class="left" width="{}" height="18" rx="4"/>').format(WIDE),
            Markup('<rect class="spent" width="{:.1f}" height="18" rx="{}"/>').format(wide, min(4.0, wide / 2)),
        ],
        18,
        told,
    )


def parts(budget: Mapping[str, Any], words: str) -> Markup:
    """What of a budget is spent, reserved, set apart and left, each in percent, as one bar."""
    drawn, at = [Markup('<rect class="left" width="{}" height="18" rx="4"/>').format(WIDE)], 0.0
    for name in ("spent", "reserved", "apart"):
        wide = max(0.0, min(WIDE - at, budget[name] * (WIDE / 100)))
        if wide:
            drawn.append(
                Markup('<rect class="{}" x="{:.1f}" width="{:.1f}" height="18"/>').format(name, at, max(wide, 1.0))
            )
        at += wide
    return _svg(drawn, 18, words)


def between(now: float, whole: float, words: str) -> Markup:
    """Where two probabilities lie between a coin and certainty."""
    drawn = [Markup('<rect class="left" y="24" width="{}" height="12" rx="4"/>').format(WIDE)]
    for name, value, height in (("now", now, 14), ("whole budget", whole, 52)):
        at = (WIDE - 8) * max(0.0, min(1.0, 2 * value - 1)) + 4
        side = "start" if at < WIDE / 2 else "end"
        drawn.append(Markup('<rect class="mark" x="{:.1f}" y="20" width="3" height="20"/>').format(at - 1.5))
        drawn.append(
            Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}: {} %</text>').format(
                at, height, side, name, math.ceil(1000 * min(1.0, value) - 1e-9) / 10
            )
        )
    return _svg(drawn, 58, words)


def _svg(drawn: Sequence[Markup], tall: int, words: str) -> Markup:
    return Markup('<svg role="img" aria-label="{}" width="{}" height="{}" viewBox="0 0 {} {}">{}</svg>').format(
        words, WIDE, tall, WIDE, tall, Markup("").join(drawn)
    )
