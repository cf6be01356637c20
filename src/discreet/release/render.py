"""Renders a release for a terminal and for a notebook."""

from __future__ import annotations

import html as escape
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from discreet.release.data import ReleaseData
from discreet.texts import visible
from discreet.trusted.ring_a.exact import figure, fraction
from discreet.trusted.ring_a.table import Type

MOST_ROWS = 60
MOST_LETTERS = 60
"""Of a text in a table at a terminal."""


def text(release: ReleaseData, width: int | None = None, *, emphasised: bool = False) -> str:
    """The answer as aligned columns; a line with the price and what is left; and a line for each thing that changes how
    the numbers may be read. These lines are broken at words where a `width` is given; `emphasised` is for terminals."""
    known = cells(release)
    shown = known if len(known) <= MOST_ROWS else known[:MOST_ROWS]
    right = numbers(release)
    kept = [row if all(right) else list(map(_cut, row, right)) for row in shown]
    head, *lines = aligned([visible(name) for name in release.columns], kept, right)
    lines.insert(0, f"\x1b[1m{head}\x1b[0m" if emphasised else head)
    if len(known) > len(shown):
        lines.append(f"… {len(known) - len(shown):,} more rows")
    if not known:
        lines.append("(no group is shown: each has too few persons at this price, or there is none)")
    below = wrapped("\n".join([footer(release), *remarks(release.bounds)]), width)
    return "\n".join([*lines, f"\x1b[2m{below}\x1b[0m" if emphasised else below])


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """A table as lines, its columns as wide as their widest cell; those that are `right` stand at the right."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        padded = []
        for cell, width, number in zip(row, widths, right, strict=True):
            blanks = " " * (width - cell_len(cell))
            padded.append(blanks + cell if number else cell + blanks)
        lines.append("  ".join(padded).rstrip())
    return lines


def wrapped(text: str, width: int | None) -> str:
    """Long lines broken at words, where a width is given; a word that is longer than a line stays whole."""
    if width is None:
        return text
    from rich.cells import cell_len

    lines = []
    for line in text.split("\n"):
        first, *others = line.split(" ")
        made = first
        for word in others:
            if cell_len(made) + 1 + cell_len(word) <= width:
                made += f" {word}"
            else:
                lines.append(made)
                made = f"  {word}"
        lines.append(made)
    return "\n".join(lines)


def _cut(cell: str, number: bool) -> str:
    """A text that is not too long for a table at a terminal; files have all of it."""
    from rich.cells import cell_len, set_cell_size

    return cell if number or cell_len(cell) <= MOST_LETTERS else set_cell_size(cell, MOST_LETTERS - 1).rstrip() + "…"


def html(release: ReleaseData, most: int = MOST_ROWS) -> str:
    """The same for a notebook."""
    known = cells(release)
    sides = ["right" if number else "left" for number in numbers(release)]
    head = "".join(map(_in_html, itertools.repeat("th scope=col"), release.columns, sides))
    body = "".join(
        "<tr>" + "".join(map(_in_html, itertools.repeat("td"), row, sides)) + "</tr>" for row in known[:most]
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    if len(known) > most:
        table += f"<p>… {len(known) - most:,} more rows</p>"
    items = "".join(f"<li>{escape.escape(visible(one))}</li>" for one in release.bounds)
    return f"{table}<p>{escape.escape(footer(release))}</p>" + (f"<ul>{items}</ul>" if items else "")


def footer(release: ReleaseData) -> str:
    """Price and budget in one line."""
    paid = str(release.cost)
    if not release.charged:
        free = (
            " (from an earlier answer: free)" if release.holds.more.get("earlier_answers") else " (asked before: free)"
        )
        paid += free if release.cost else " (no row about a person is read: free)"
    state = release.holds.more.get("synthetic_state")
    began = f" (it began with this question: {release.charged} once)" if release.charged else ""
    parts = [f"price {paid}" if not isinstance(state, str) else f"free: {state}{began}", *used(release)]
    if not isinstance(state, str):
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


def cells(release: ReleaseData) -> list[list[str]]:
    """The table as texts: estimates with their errors."""
    ends = release.intervals or [{} for _ in release.rows]  # made-up rows have none
    return [
        [_cell(row[name], interval.get(name)) for name in release.columns]
        for row, interval in zip(release.rows, ends, strict=True)
    ]


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


def numbers(release: ReleaseData) -> list[bool]:
    """Of each column whether it stands at the right: estimates, and keys that are numbers."""
    types = release.holds.types
    return [types.get(name, Type.NUMBER) in (Type.INTEGER, Type.NUMBER) for name in release.columns]


def _in_html(tag: str, cell: str, side: str) -> str:
    return f'<{tag} style="text-align:{side}">{escape.escape(cell)}</{tag.split()[0]}>'
