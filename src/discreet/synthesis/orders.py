"""Columns in order, in a synthetic table: of each pair, no row has a larger value in the first than in the second.

Cells of the two between which no values are in order are impossible, as the owner's rules are: the model has none.
Where the cells of a row overlap, a value that is not in order is drawn again, inside its cell: from the smallest column
on, at least as large as the values below it, and no larger than its own cell and those above it allow. There is always
room: orders are all pairs that follow from one another, so a value that was drawn before is no larger than what any
column above it allows. Which cell a row is in never changes, so no count of cells does.

All follows from declarations and from what was released.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.catalog.model import Orders
from discreet.synthesis.cells import NoisyHistogram, NumberLine, weights
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_c.coding import Binned, Coding

Codes = NDArray[np.int64]
_DIGITS = 5  # so many of a column's range are drawn, where it has no step
_EVENLY = 1e-6  # the share of values that is spread evenly over a cell, so that none is out of reach


def order_zeros(orders: Orders, coding: Coding, lines: Mapping[str, NumberLine]) -> dict[tuple[str, ...], Any]:
    """The pairs of cells whose values cannot be in order, in the coding's order. NULL is in order with everything."""
    found: dict[tuple[str, ...], Any] = {}
    known = {one.column.name: one for one in coding.columns}
    for low, high in orders:
        if low not in known or high not in known:
            continue
        first, second = (_BinRanges.of(known[name], lines[name]) for name in (low, high))
        empty = np.zeros((known[low].size, known[high].size), bool)
        inside = np.array(first.lows, dtype=object)[:, None] > np.array(second.highs, dtype=object)[None, :]
        touching = np.array(first.lows, dtype=object)[:, None] == np.array(second.highs, dtype=object)[None, :]
        inside |= touching & ~np.array(second.closed)[None, :]
        empty[: inside.shape[0], : inside.shape[1]] = inside.astype(bool)
        turned = coding.names.index(low) > coding.names.index(high)
        clique = (high, low) if turned else (low, high)
        found[clique] = found.get(clique, False) | (empty.T if turned else empty)
    return found


@dataclass(frozen=True)
class _BinRanges:
    """The first and the last place of each bin of a column; an end that is not `closed` is not in it."""

    lows: list[Fraction]
    highs: list[Fraction]
    closed: list[bool]

    @staticmethod
    def of(one: Any, along: NumberLine) -> _BinRanges:
        assert isinstance(one, Binned)
        lows = [along.low, *(along.place(cut) for cut in one.cuts)]
        unit = along.unit or Fraction(0)
        highs = [*(low - unit for low in lows[1:]), along.high]
        return _BinRanges(lows, highs, [*(along.unit is not None for _ in one.cuts), True])


@dataclass(frozen=True)
class Drawn:
    """A column of rows whose values were drawn: its cells, the cell of each row, and the value there; and the fine look
    by which they were."""

    cells: Binned
    line: NumberLine
    codes: Codes
    values: NDArray[Any]
    look: NoisyHistogram | None = None


def in_order(orders: Orders, columns: Mapping[str, Drawn], generator: np.random.Generator) -> None:
    """Draws values again, where they are not in order, inside their cells."""
    pairs = [pair for pair in orders if set(pair) <= columns.keys()]
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for low, high in pairs:
        above.setdefault(low, []).append(high)
        below.setdefault(high, []).append(low)
    rising = list(TopologicalSorter(below).static_order())
    ends = {name: _ends(columns[name]) for name in rising}
    for name in rising:
        one = columns[name]
        caps = [_where_any(ends[other][1], columns[other], np.inf) for other in above.get(name, ())]
        floors = [_where_any(columns[other].values, columns[other], -np.inf) for other in below.get(name, ())]
        least, most = np.maximum.reduce([ends[name][0], *floors]), np.minimum.reduce([ends[name][1], *caps])
        wrong = ((one.values > most) | (one.values < least)) & ~none(one)
        one.values[wrong] = _drawn_again(one, np.flatnonzero(wrong), least[wrong], most[wrong], generator)


def none(one: Drawn) -> NDArray[np.bool_]:
    """The rows that have no value."""
    missing: NDArray[np.bool_] = one.codes == (one.cells.size - 1 if one.cells.null else -1)
    return missing


def _ends(one: Drawn) -> tuple[NDArray[Any], NDArray[Any]]:
    """The smallest and the largest value that each row may have in its cell."""
    cells = _BinRanges.of(one.cells, one.line)
    places = np.minimum(one.codes, len(cells.lows) - 1)
    if one.values.dtype.kind == "i":
        return np.array([int(low) for low in cells.lows])[places], np.array([int(high) for high in cells.highs])[places]
    highs = [
        float(high) if closed else np.nextafter(float(high), -np.inf)
        for high, closed in zip(cells.highs, cells.closed, strict=True)
    ]
    return np.array([float(low) for low in cells.lows])[places], np.array(highs)[places]


def _where_any(ends: NDArray[Any], one: Drawn, otherwise: float) -> NDArray[Any]:
    """What a column allows others: everything, in rows where it has no value."""
    whole = np.iinfo(np.int64)
    free: Any = otherwise if ends.dtype.kind == "f" else whole.max if otherwise > 0 else whole.min
    return np.where(none(one), free, ends)


def _drawn_again(
    one: Drawn, rows: Codes, least: NDArray[Any], most: NDArray[Any], generator: np.random.Generator
) -> NDArray[Any]:
    """Values of these rows, each in its cell and between these ends: spread as a fine look saw the cell, and evenly
    where it saw nothing."""
    line, found = one.line, np.empty(len(rows), one.values.dtype)
    bounds = [line.low, *(line.place(cut) for cut in one.cells.cuts), line.end()]
    unit = float(line.unit or 0)
    for cell in np.unique(one.codes[rows]).tolist():
        inside = one.codes[rows] == cell
        low, high = bounds[cell], bounds[cell + 1]
        parts, shares = ([low, high], np.ones(1)) if one.look is None else weights(one.look, low, high)
        ends = np.array([float(part) for part in parts])
        if ends[-1] <= ends[0]:
            found[inside] = least[inside]
            continue
        even = (ends - ends[0]) / (ends[-1] - ends[0])
        sums = (1 - _EVENLY) * np.concatenate([[0.0], np.cumsum(shares)]) + _EVENLY * even
        start, stop = np.interp(least[inside], ends, sums), np.interp(most[inside] + unit, ends, sums)
        places = np.interp(start + generator.random(len(start)) * (stop - start), sums, ends)
        found[inside] = np.clip(_as_values(line, places), least[inside], most[inside])
    return found


def _as_values(along: NumberLine, places: NDArray[np.float64]) -> NDArray[Any]:
    """Places as values of the column: whole steps, or with so many digits."""
    if along.unit is None:
        width = float(along.high - along.low)
        digits = _DIGITS - int(np.floor(np.log10(width))) if width > 0 else 0
        return np.round(places, min(15, max(-15, digits)))
    low, unit = along.low, along.unit
    steps, inverse = np.unique(np.floor((places - float(low)) / float(unit) + 1e-9), return_inverse=True)
    exact = [low + unit * int(step) for step in steps.tolist()]
    whole = along.column.type is not Type.NUMBER
    return np.array([int(value) if whole else float(value) for value in exact])[inverse]
