"""The expected error of each estimate, before anything is paid: prices are found by it, and it is said with them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.intervals import combined, joint, sums, watched
from discreet.intervals.moments import moment_error
from discreet.intervals.noise import CONFIDENCE, half_width
from discreet.mechanisms import Ball, Gaussian, Laplace, Threshold
from discreet.plan.measurement import Measurement
from discreet.plan.outputs import Output, OutputKind
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.measurement import Measured
from discreet.trusted.ring_a.nodes import Part
from discreet.trusted.ring_b.jointly import axis_of, count_of, ends_of
from discreet.trusted.ring_b.order_statistics import MeasuredSpecial

GROUP_FOR_MEANS = 1_000
"""A mean's error depends on the size of its group, which is private: it is stated for a group of this many rows."""


def expected_errors(
    measurement: Measurement, miss: float = 1 - CONFIDENCE, group: float = GROUP_FOR_MEANS
) -> dict[str, float]:
    """The half width of the interval of each estimate that fails with probability `miss`, before anything is paid. For
    a mean: in a group of `group` rows with a value, at the worst position of the mean."""
    errors: dict[str, float] = {}
    outputs = measurement.plan.outputs
    for output in outputs:
        if output.kind in (OutputKind.KEY, OutputKind.FORMULA) or output.hidden:
            continue
        if measurement.ranges and depends_on_bounds(output):
            continue  # known only with the bounds
        if output.kind is OutputKind.SPECIAL:
            error = special_error(measurement.specials[output.index], miss)
            if error is not None:
                errors[output.name] = error
        elif output.of:
            of = [outputs[place] for place in output.of]
            share = share_of(output, miss)
            wide = [error_of(one, measurement.parts[one.index], share, group) for one in of]
            size = None
            if output.sample:
                first = measurement.parts[of[0].index]
                reach = half_width_of(size_output(of[0], first), first, share)
                size = (group - reach, group + reach)
            grids = [grid_of(one, measurement.parts[one.index]) for one in of]
            errors[output.name] = moment_error(output, wide, grids, size)
        else:
            errors[output.name] = error_of(output, measurement.parts[output.index], miss, group)
    return errors


def by_size(measurement: Measurement) -> tuple[str, ...]:
    """The columns whose expected error depends on the size of a group: means, and what is made of means."""
    outputs = [
        output for output in measurement.plan.outputs if not output.hidden and output.kind is not OutputKind.FORMULA
    ]
    return tuple(output.name for output in outputs if output.kind is OutputKind.MEAN or output.of)


def error_of(output: Output, measured: Measured, miss: float, group: float) -> float:
    """The half width of one estimate's interval, a mean's in a group of `group` rows."""
    if output.kind is not OutputKind.MEAN:
        return half_width_of(output, measured, miss)
    grid = grid_of(output, measured)
    return min(_widest_mean(output, measured, miss) / group, float(grid.width)) * float(grid.step)


def half_width_of(output: Output, measured: Measured, miss: float) -> float:
    """How far a count or a sum may lie from the truth. A count that decides whether its group is shown: in a group far
    above the threshold."""
    mechanism = measured.mechanism
    if isinstance(mechanism, Threshold):
        return half_width(mechanism.noise, [1.0], miss)
    if isinstance(mechanism, sums.Summed):
        return sums.half_width(mechanism, output.weights, miss)
    if isinstance(mechanism, combined.Combined):
        return combined.half_width(mechanism, miss)
    if isinstance(mechanism, watched.Watched):
        return watched.half_width(mechanism, output.weights, miss)
    if measured.part.axes:
        assert isinstance(mechanism, Ball | Gaussian)
        return joint.half_width(mechanism, output.weights, miss)
    assert isinstance(mechanism, Laplace | Gaussian)
    return half_width(mechanism, floats(output.weights), miss)


def _widest_mean(output: Output, measured: Measured, miss: float) -> float:
    """The quantile of the noise of a mean at its worst position, in steps, for one row."""
    mechanism, part = measured.mechanism, measured.part
    if isinstance(mechanism, sums.Summed):
        places = np.linspace(0.0, 1.0, joint.PLACES)
        return float(sums.spread(mechanism, *ends(part, output), miss)(places).max())
    if part.axes:
        assert isinstance(mechanism, Ball | Gaussian)
        return joint.widest(mechanism, part, axis_of(part, output.weights), miss)
    assert isinstance(mechanism, Laplace | Gaussian)
    return half_width(mechanism, [1.0], miss)


def ends(part: Part, mean: Output) -> tuple[Sequence[Fraction], Sequence[Fraction]]:
    """The weights that make, of the vectors of a mean, the distances of its values from both ends of their lattice."""
    if part.axes:
        return ends_of(part, axis_of(part, mean.weights))
    above, below = ([Fraction(int(place == end)) for place in range(len(part.vectors))] for end in (0, 1))
    return above, below


def size_output(mean: Output, measured: Measured) -> Output:
    """The number of rows that a mean is over, as a column."""
    return Output(mean.name, OutputKind.COUNT, mean.index, size_of(measured.part, mean))


def share_of(output: Output, miss: float) -> float:
    """The part of the failures that each mean has of which a column is made, and the number of rows where that is used
    too."""
    return miss / (len(output.of) + output.sample)


def size_of(part: Part, mean: Output) -> tuple[Fraction, ...]:
    """The weights that make the number of its values of the vectors of a mean: A + B = w·n, or the joint count."""
    if part.axes:
        return count_of(part, axis_of(part, mean.weights))
    assert part.lattice is not None
    return tuple(Fraction(int(place < 2), part.lattice.width) for place in range(len(part.vectors)))


def grid_of(output: Output, measured: Measured) -> Lattice:
    """The lattice of a sum or a mean."""
    part = measured.part
    grid = axis_of(part, output.weights).lattice if part.axes else part.lattice
    assert grid is not None
    return grid


def special_error(one: MeasuredSpecial, miss: float) -> float | None:
    """The half width of a number of values; None for the others, whose error is one of ranks or of counts."""
    return half_width(one.mechanism, [1.0], miss) if isinstance(one.mechanism, Laplace) else None


def depends_on_bounds(output: Output) -> bool:
    """Whether an error is known only once bounds are found: of sums, means, and what is made of them."""
    return output.kind in (OutputKind.SUM, OutputKind.MEAN) or bool(output.of)


def floats(weights: Sequence[Fraction]) -> list[float]:
    return [float(weight) for weight in weights]
