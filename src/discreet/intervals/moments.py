"""Variance, standard deviation, covariance and correlation, from noisy means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet.plan.outputs import Output, OutputKind
from discreet.trusted.ring_a.lattice import Lattice

Interval = tuple[float, float]


Column = tuple[list[float], list[Interval]]


def moments(output: Output, parts: Sequence[Column], sizes: Column | None = None) -> Column:
    """The values of a column made of means, and intervals. With `sizes`, n − 1 divides where n does.

    The means' intervals, and that of n, hold together with the probability that was asked for (each with its share of
    the failures: the union bound), so whatever the formula gives for means and n inside all of them holds the truth as
    often at least. Of less than two rows there is no such truth, so n is taken as 2 or more.
    """
    values, intervals = [], []
    for place, cell in enumerate(zip(*(list(zip(*part, strict=True)) for part in parts), strict=True)):
        centre = [value for value, _ in cell]
        box = [interval for _, interval in cell]
        low, high = _range(output.kind, box)
        value = min(max(_value(output.kind, centre), low), high)
        if sizes is not None:
            size, (fewest, most) = sizes[0][place], sizes[1][place]
            least, factor, largest = (_factor(output.kind, n) for n in (most, size, fewest))
            value *= factor
            low, high = min(low * least, low * largest), max(high * least, high * largest)
        values.append(value)
        intervals.append((low, high))
    return values, intervals


def _factor(kind: OutputKind, size: float) -> float:
    """What n − 1 instead of n makes of a column."""
    size = max(2.0, size)
    factor = size / (size - 1)
    return math.sqrt(factor) if kind is OutputKind.DEVIATION else factor


def _value(kind: OutputKind, means: Sequence[float]) -> float:
    if kind in (OutputKind.VARIANCE, OutputKind.DEVIATION):
        variance = max(0.0, means[1] - means[0] ** 2)
        return variance if kind is OutputKind.VARIANCE else math.sqrt(variance)
    covariance = means[2] - means[0] * means[1]
    if kind is OutputKind.COVARIANCE:
        return covariance
    spread = math.sqrt(max(0.0, means[3] - means[0] ** 2) * max(0.0, means[4] - means[1] ** 2))
    return max(-1.0, min(1.0, covariance / spread)) if spread > 0 else 0.0


def _range(kind: OutputKind, box: Sequence[Interval]) -> Interval:
    if kind in (OutputKind.VARIANCE, OutputKind.DEVIATION):
        low, high = _variance(box[0], box[1])
        return (low, high) if kind is OutputKind.VARIANCE else (math.sqrt(low), math.sqrt(high))
    products = [a * b for a in box[0] for b in box[1]]
    low, high = box[2][0] - max(products), box[2][1] - min(products)
    if kind is OutputKind.COVARIANCE:
        return low, high
    spreads = [math.sqrt(a * b) for a, b in zip(_variance(box[0], box[3]), _variance(box[1], box[4]), strict=True)]
    if spreads[0] <= 0:
        return -1.0, 1.0
    ends = [end / spread for end in (low, high) for spread in spreads]
    return max(-1.0, min(ends)), min(1.0, max(ends))


def _variance(mean: Interval, square: Interval) -> Interval:
    """Where E[y²] − E[y]² lies."""
    low, high = mean
    least = 0.0 if low <= 0 <= high else min(low**2, high**2)
    return max(0.0, square[0] - max(low**2, high**2)), max(0.0, square[1] - least)


def moment_error(
    output: Output, errors: Sequence[float], grids: Sequence[Lattice], size: Interval | None = None
) -> float:
    """How far off a column may be: of a variance or covariance at worst; of a deviation or correlation where the values
    are spread as if half of them stood at either end. With `size`, where n lies, n − 1 divides."""
    error = _moment_error(output, errors, grids)
    if size is None:
        return error
    half = [float(grid.step) * max(abs(grid.low), abs(grid.high)) for grid in grids]
    most = {
        OutputKind.VARIANCE: half[0] ** 2,
        OutputKind.DEVIATION: half[0],
        OutputKind.COVARIANCE: half[0] * half[min(1, len(half) - 1)],
    }
    low, high = (_factor(output.kind, n) for n in reversed(size))
    return error * high + most[output.kind] * (high - low)


def _moment_error(output: Output, errors: Sequence[float], grids: Sequence[Lattice]) -> float:
    half = [float(grid.step) * max(abs(grid.low), abs(grid.high)) for grid in grids]
    if output.kind in (OutputKind.VARIANCE, OutputKind.DEVIATION):
        error = errors[1] + 2 * half[0] * errors[0]
        return error if output.kind is OutputKind.VARIANCE else error / max(half[0], 1e-300)
    error = errors[2] + half[0] * errors[1] + half[1] * errors[0]
    return error if output.kind is OutputKind.COVARIANCE else min(2.0, error / max(half[0] * half[1], 1e-300))
