"""Renders a release for a terminal and for a notebook."""

from __future__ import annotations

import html as escape
import itertools
import math
from collections.abc import Iterable
from typing import Any
from unicodedata import east_asian_width

from discreet.release.data import ReleaseData
from discreet.texts import visible
from discreet.trusted.ring_a.exact import figure, fraction
from discreet.trusted.ring_a.table import Type

MOST_ROWS = 60


def text(release: ReleaseData) -> str:
    """The answer as aligned columns; a line with the price and what is left; and a line for each thing that changes how
    the numbers may be read."""
    cells = _cells(release)
    shown = cells if len(cells) <= MOST_ROWS else cells[:MOST_ROWS]
    table = [[visible(name) for name in release.columns], *shown]
    widths = [max(_width(row[index]) for row in table) for index in range(len(release.columns))]
    right = _numbers(release)
    lines = ["  ".join(map(_padded, row, widths, right)).rstrip() for row in table]
    if len(cells) > len(shown):
        lines.append(f"… {len(cells) - len(shown)} more rows")
    if not cells:
        lines.append("(no group is shown: each has too few persons at this price, or there is none)")
    return "\n".join([*lines, footer(release), *remarks(release.bounds)])


def html(release: ReleaseData, most: int = MOST_ROWS) -> str:
    """The same for a notebook, or a page."""
    cells = _cells(release)
    sides = ["right" if number else "left" for number in _numbers(release)]
    head = "".join(map(_in_html, itertools.repeat("th"), release.columns, sides))
    body = "".join(
        "<tr>" + "".join(map(_in_html, itertools.repeat("td"), row, sides)) + "</tr>" for row in cells[:most]
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    if len(cells) > most:
        table += f"<p>… {len(cells) - most:,} more rows</p>"
    items = "".join(f"<li>{escape.escape(visible(one))}</li>" for one in release.bounds)
    return f"{table}<p>{escape.escape(footer(release))}</p><ul>{items}</ul>"


def footer(release: ReleaseData) -> str:
    """Price and budget in one line."""
    paid = str(release.cost)
    if not release.charged:
        paid += " (asked before: free)" if release.cost else " (no row about a person is read: free)"
    parts = [f"price {paid}", *used(release)]
    parts.append("no more like this" if release.more == 0 else f"about {release.more:,} more like this")
    parts.append(release.left)
    return visible(" · ".join([*parts, *release.notes]))


def remarks(bounds: Iterable[str]) -> list[str]:
    """The caveats of an answer, a line each."""
    return [f"· {visible(one)}" for one in bounds]


def used(release: ReleaseData) -> list[str]:
    """How much of the whole budget is used, and of the asker's own account."""
    parts, own = [f"{percent(release.used)} of the budget used"], release.balance.account()
    return parts if own is None else [*parts, f"{percent(own['used'])} of {own['name']}'s ε {own['epsilon']} used"]


def percent(part: float) -> str:
    """Percent, rounded up, so that the remaining budget is never overstated."""
    if part == 0:
        return "0 %"
    return f"{math.ceil(part - 1e-9)} %" if part >= 1 else f"{part:.1g} %"


def _cells(release: ReleaseData) -> list[list[str]]:
    table = []
    for row, interval in zip(release.rows, release.intervals, strict=True):
        table.append([_cell(row[name], interval.get(name)) for name in release.columns])
    return table


def _cell(value: Any, interval: tuple[float, float] | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return visible(f"[{', '.join(map(str, value))}]")
    return visible(str(value)) if interval is None else estimate(value, interval)


def estimate(value: float, interval: tuple[float, float]) -> str:
    """A number with its uncertainty, both to the digits that the uncertainty allows: 10,769 ±8."""
    wide = max(interval[1] - value, value - interval[0])
    if not wide < 1e300:
        return f"{figure(fraction(value))} ±any"
    if wide <= 0:
        return f"{value:,} ±0" if isinstance(value, int) else f"{figure(fraction(value))} ±0"
    digits = -math.floor(math.log10(wide))
    if wide * 10**digits < 3:  # a leading 1 or 2 deserves a second digit
        digits += 1
    if isinstance(value, int):
        digits = min(digits, 0)
    step = 10.0**-digits
    rounded = math.ceil(wide / step - 1e-9) * step
    if digits <= 0:
        shown = value if isinstance(value, int) else round(value / step) * step
        return f"{shown:,.0f} ±{rounded:,.0f}"
    return f"{value:,.{digits}f} ±{rounded:,.{digits}f}"


def _width(cell: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in cell)


def _padded(cell: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if right else cell + blanks


def _numbers(release: ReleaseData) -> list[bool]:
    """Of each column whether it stands at the right: estimates, and keys that are numbers."""
    types = release.holds.types
    return [types.get(name, Type.NUMBER) in (Type.INTEGER, Type.NUMBER) for name in release.columns]


def _in_html(tag: str, cell: str, side: str) -> str:
    return f'<{tag} style="text-align:{side}">{escape.escape(cell)}</{tag}>'
