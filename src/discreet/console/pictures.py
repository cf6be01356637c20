"""Pictures drawn on the server as SVG, each with words for those who do not see it. The table stands beside them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from discreet.look.pictures import WIDE, Picture, Point, bars, line, svg
from discreet.release import Release
from discreet.release.render import estimate
from discreet.release.values import FAR
from discreet.texts import visible

MOST_PICTURES = 3
LEAST_OF_A_LINE = 3
_ORDERED = ("integer", "number", "date", "timestamp")


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
        ordered = len(keys) == 1 and types[keys[0]] in _ORDERED
        points = _points(release, keys, name, ordered)
        if len(points) < 2:
            continue
        if ordered and len(points) >= LEAST_OF_A_LINE and len({point.at for point in points}) == len(points):
            made.append(line(sorted(points, key=lambda point: point.at), name, keys[0]))
        else:
            made.append(bars(points, name, len(release.rows)))
    return made


def _points(release: Release, keys: Sequence[str], name: str, ordered: bool) -> list[Point]:
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
            Point(
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


def meter(used: float, words: str = "") -> Markup:
    """How much of a budget is used, in percent, as a bar."""
    part = max(0.0, min(100.0, used))
    told = words or f"{part:.3g} % of the budget is used"
    wide = part * (WIDE / 100)
    return svg(
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
    return svg(drawn, 18, words)


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
    return svg(drawn, 58, words)
