"""Estimates with their intervals as pictures, SVG drawn on the server, with words for those who do not see them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from discreet.texts import visible

WIDE, ROW, LABEL = 520, 24, 150
MOST_GROUPS = 40


@dataclass(frozen=True)
class Picture:
    """A picture, its caption, and what of the answer it leaves out."""

    svg: Markup
    caption: str


@dataclass(frozen=True)
class Point:
    """One estimate: what it is about, its place where there is an order, and the number in words."""

    label: str
    at: float
    value: float
    low: float
    high: float
    words: str


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


def _alternative(points: Sequence[Point], name: str, what: str, sure: str) -> str:
    least, most = min(points, key=lambda point: point.value), max(points, key=lambda point: point.value)
    return (
        f"{what} of {visible(name)} with {sure} intervals, {len(points)} values: the least {least.words} "
        f"({least.label}), the largest {most.words} ({most.label})"
    )


def bars(points: Sequence[Point], name: str, rows: int, sure: str = "95 %") -> Picture:
    """A mark with its error bar for each of the first points, one below the other."""
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
    caption = f"{visible(name)} with {sure} intervals"
    if len(shown) < rows:
        caption += f"; the first {len(shown)} of {rows:,} rows: all are in the table"
    return Picture(svg(parts, tall, _alternative(shown, name, "Bars", sure)), caption)


def _grid(x: float, value: float, tall: int) -> Markup:
    return Markup(
        '<path class="grid" d="M{:.1f} 0V{}"/><text class="soft" x="{:.1f}" y="{}" text-anchor="middle">{}</text>'
    ).format(x, tall - 24, x, tall - 6, _short(value))


def line(points: Sequence[Point], name: str, key: str, sure: str = "95 %") -> Picture:
    """A line with its band through points that lie at different places, from left to right."""
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
        svg(parts, tall, _alternative(points, name, "A line", sure)),
        f"{visible(name)} along {visible(key)}; the band holds {sure} intervals",
    )


def svg(drawn: Sequence[Markup], tall: int, words: str) -> Markup:
    """A picture of these parts, so high, with what it shows in words."""
    return Markup('<svg role="img" aria-label="{}" width="{}" height="{}" viewBox="0 0 {} {}">{}</svg>').format(
        words, WIDE, tall, WIDE, tall, Markup("").join(drawn)
    )
