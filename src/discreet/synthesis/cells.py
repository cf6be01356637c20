"""Maps ordered values to a number line, and chooses the bins of columns with bounds."""

from __future__ import annotations

import datetime
import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.catalog.orders import place_of
from discreet.trusted.ring_a.table import Column, Type, Value
from discreet.trusted.ring_c.coding import Binned

COARSE = 16
"""So many cells a column with bounds is first looked at in."""
FINE = 1024
"""No later cell is narrower than such a part of the column, but where many rows share one."""
SUBDIVIDED = 128
"""So many cells one that many rows share is looked at in again."""
_MOMENT = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NumberLine:
    """A column with bounds as a line from `low` to `high`: whole numbers, days since the year 1, microseconds since
    1970, or numbers. `unit` is the least distance of two values, None where there is none."""

    column: Column
    low: Fraction
    high: Fraction
    unit: Fraction | None

    def value(self, place: Fraction) -> Value:
        """The value at a place, of the column's type."""
        if self.column.type is Type.NUMBER:
            return place
        whole = math.floor(place)
        if self.column.type is Type.DATE:
            return datetime.date.fromordinal(whole)
        return _EPOCH + whole * _MOMENT if self.column.type is Type.TIMESTAMP else whole

    def place(self, value: Value) -> Fraction:
        """The place of a value."""
        return place_of(value)

    def binned(self, cuts: Sequence[Fraction]) -> Binned:
        """The cells between these places."""
        return Binned(self.column, tuple(self.value(cut) for cut in cuts), self.column.nulls)

    def divided(self, low: Fraction, high: Fraction, cells: int) -> list[Fraction]:
        """Where [low, high) is cut into at most so many cells of about one width, none narrower than a unit."""
        if self.unit is None:
            return [low + (high - low) * part / cells for part in range(1, cells)]
        units = max(1, math.ceil((high - low) / self.unit))
        cells = min(cells, units)
        return [low + self.unit * (units * part // cells) for part in range(1, cells)]

    def end(self) -> Fraction:
        """Where the last cell ends: whole units above the low, so that no cut lies above the high."""
        if self.unit is None:
            return self.high
        return self.low + self.unit * (math.floor((self.high - self.low) / self.unit) + 1)

    @property
    def least(self) -> Fraction:
        """The width of a cell of one value: a unit; where there is none, about a billionth of the column, or the least
        that numbers of 64 bits tell apart there."""
        if self.unit is not None or self.high == self.low:
            return self.unit or Fraction(0)
        width = self.high - self.low
        digits = (width.numerator.bit_length() - width.denominator.bit_length()) * 3 // 10 - 9
        return max(Fraction(10) ** digits, Fraction(math.ulp(max(abs(float(self.low)), abs(float(self.high))))))


def line(column: Column) -> NumberLine | None:
    """The line of a column with bounds; None where it has none. Of numbers that are read as multiples of a step it goes
    from the lowest to the highest multiple within the bounds, as loaded rows do."""
    if column.type is None or column.minimum is None or column.maximum is None:
        return None
    unit = Fraction(1_000_000 if column.type is Type.TIMESTAMP else 1)  # whole seconds
    if column.type is not Type.NUMBER:
        return NumberLine(column, place_of(column.minimum), place_of(column.maximum), unit)
    if column.step is None or column.steps is None:
        return NumberLine(column, place_of(column.minimum), place_of(column.maximum), None)
    fewest, most = column.steps
    return NumberLine(column, fewest * column.step, most * column.step, column.step)


@dataclass(frozen=True)
class NoisyHistogram:
    """Noisy counts of the cells between cuts, from the line's low to its end, each with noise of deviation `sigma`."""

    line: NumberLine
    cuts: tuple[Fraction, ...]
    counts: tuple[int, ...]
    sigma: float

    @property
    def ends(self) -> list[Fraction]:
        """The ends of the cells, from the line's low to its end: one more than there are cells."""
        return [self.line.low, *self.cuts, self.line.end()]


def refined(histogram: NoisyHistogram, parts: int) -> tuple[Fraction, ...]:
    """The cuts of the next look: a cell that seems to hold more than noise is divided, so finely that a part may still
    be told from noise. One that seems to hold more than 1/parts of all rows may have parts narrower than 1/FINE."""
    ends, total = histogram.ends, max(1, sum(histogram.counts))
    share, clear = total / parts, 4 * histogram.sigma
    width = (histogram.line.end() - histogram.line.low) / FINE
    cuts: list[Fraction] = []
    for (low, high), count in zip(itertools.pairwise(ends), histogram.counts, strict=True):
        cuts.append(low)
        most = SUBDIVIDED if count > max(share, clear) else math.ceil((high - low) / width)
        cells = min(most, int(count / clear))
        cuts += histogram.line.divided(low, high, max(1, cells))
    return tuple(cuts[1:])


def gathered(histogram: NoisyHistogram, parts: int) -> list[Fraction]:
    """At most about 2·parts cuts between the histogram's, such that each bin seems to hold about 1/parts of the rows,
    and a cell that holds more by itself is a bin by itself. A bin is closed only where its noisy count is also 4 times
    its noise: where there is nothing but noise, there is one wide bin."""
    ends, counts = histogram.ends, histogram.counts
    share = max(1, sum(counts)) / parts
    cuts: list[Fraction] = []
    held = cells = 0
    for place, count in enumerate(counts):
        heavy = count >= max(share, 4 * histogram.sigma)
        if heavy and cells:
            cuts.append(ends[place])
            held = cells = 0
        held, cells = held + count, cells + 1
        if held >= max(share, 4 * histogram.sigma * math.sqrt(cells)):
            cuts.append(ends[place + 1])
            held = cells = 0
    if cuts and cuts[-1] == ends[-1]:
        cuts.pop()
    return sorted(set(cuts))


def weights(histogram: NoisyHistogram, low: Fraction, high: Fraction) -> tuple[list[Fraction], Floats]:
    """The cells of a histogram, or what of them lies in a bin, by their ends, and how the bin's rows are spread over
    them. A cell that reaches beyond the bin brings its share by width.

    A cell whose count is not 2 times its noise counts as what is left, spread evenly by width."""
    ends = histogram.ends
    inside = range(max(0, bisect_right(ends, low) - 1), min(len(ends) - 1, bisect_left(ends, high)))
    parts = [low, *(ends[place] for place in inside[1:]), high]
    lengths = [after - before for before, after in itertools.pairwise(parts)]
    widths = np.array([float(one / (high - low)) for one in lengths])  # of the bin: none is lost, however small it is
    held = [float(one / (ends[place + 1] - ends[place])) for one, place in zip(lengths, inside, strict=True)]
    counts = np.array([histogram.counts[place] for place in inside], float)
    clear = counts > 2 * histogram.sigma
    counts = counts * np.array(held)
    rest = max(0.0, float(counts[~clear].sum()))
    spread = np.where(clear, counts, 0.0)
    if not clear.all():
        spread = spread + np.where(clear, 0.0, rest * widths / widths[~clear].sum())
    if spread.sum() <= 0:
        spread = widths
    return parts, spread / spread.sum()
