"""Noisy vectors to the numbers of an answer, each with two intervals, and what may be said before anything is paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.intervals import joint, sums
from discreet.intervals.expected import ends, grid_of, half_width_of, share_of, size_output
from discreet.intervals.moments import moments
from discreet.intervals.noise import CONFIDENCE, mean_interval, mean_quantile
from discreet.intervals.thresholds import shown_intervals
from discreet.mechanisms import Ball, Gaussian, Laplace, Threshold
from discreet.plan.left_out import unit
from discreet.plan.measurement import Measurement, Plan
from discreet.plan.outputs import Output, OutputKind
from discreet.release.content import Cost, ReleaseContent
from discreet.release.formula import computed
from discreet.release.left_out import left_out
from discreet.release.order_statistic_columns import (
    described_ranges,
    reported,
    special_type,
    special_values,
)
from discreet.release.rows import arranged
from discreet.release.values import plain
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.measurement import Measured
from discreet.trusted.ring_a.nodes import PartKind
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.jointly import axis_of
from discreet.trusted.ring_b.questions import Noisy

Interval = tuple[float, float]


def answer(
    priced: Measurement,
    noisy: Noisy,
    table: Table,
    asked: Plan | None = None,
    *,
    together: int = 1,
    share: float | None = None,
) -> ReleaseContent:
    """The content of a release. It follows from the question and what was measured for it; where that
    was measured for another question, `asked` is the plan of this one. The simultaneous intervals hold together with
    those of so many answers like it. Where the question was asked after the noise was drawn, each number has this
    `share` of the failures (`intervals.chosen`), and both kinds of intervals are those that hold whatever is asked."""
    measurement = priced.settled(noisy.found)
    plan = measurement.plan
    visible = [output for output in plan.outputs if not output.hidden]
    groups = len(noisy.keys)
    cells = max(1, groups * sum(output.kind is not OutputKind.KEY for output in visible))
    rows: list[dict[str, Any]] = [{} for _ in range(groups)]
    columns = Columns(measurement, noisy)
    single: list[dict[str, Interval]] = [{} for _ in range(groups)]
    joint: list[dict[str, Interval]] = [{} for _ in range(groups)]
    types: dict[str, str] = {}
    for output in visible:
        if output.kind is OutputKind.KEY:
            types[output.name] = str(output.type_of(plan.keys[output.index]))
            for row, key in zip(rows, noisy.keys, strict=True):
                row[output.name] = plain(output.shown(key[output.index]))
            continue
        miss = 1 - CONFIDENCE
        values, first = columns.of(output, miss if share is None else miss * share)
        _, second = columns.of(output, miss / (cells * together) if share is None else miss * share)
        if first is None or second is None:
            made = output.kind is OutputKind.FORMULA
            types[output.name] = "number" if made else special_type(measurement.specials[output.index], output.moment)
        for index in range(groups):
            rows[index][output.name] = values[index]
            if first is not None and second is not None:
                single[index][output.name] = first[index]
                joint[index][output.name] = second[index]
    order = arranged(plan, noisy.keys, rows)
    # picking groups by their noisy values makes the single intervals false: the joint ones hold for whatever is picked
    picked = plan.having is not None or plan.limit is not None
    shown = joint if picked else single
    for output in visible:
        if output.report:
            types[output.name] = "text"
            for row, one, other in zip(rows, single, joint, strict=True):
                row[output.name] = reported(row[output.name], (other if picked else one).pop(output.name, None))
                (one if picked else other).pop(output.name, None)
    remarks = left_out(priced, measurement, noisy, table, columns.of, asked)
    return ReleaseContent(
        columns=[output.name for output in visible],
        types=types,
        keys=[output.name for output in visible if output.kind is OutputKind.KEY],
        rows=[rows[index] for index in order],
        intervals=[shown[index] for index in order],
        simultaneous=[joint[index] for index in order],
        cost=cost(priced),
        mechanisms=[*described_ranges(priced), *mechanisms(measurement)],
        bounds=[one.line for one in remarks],
        left_out=remarks,
        unit=unit(table),
    )


@dataclass
class Columns:
    """The columns of an answer, each as values and intervals that fail with a given probability in one cell."""

    measurement: Measurement
    noisy: Noisy

    def of(self, output: Output, miss: float) -> tuple[list[Any], list[Interval] | None]:
        """A column's values and intervals; None where there are none."""
        if output.kind is OutputKind.SPECIAL:
            special, noisy = self.measurement.specials[output.index], self.noisy.specials[output.index]
            return special_values(special, noisy, miss, output.moment)
        if output.kind is OutputKind.FORMULA:
            outputs = [self.measurement.plan.outputs[place] for place in output.of]
            columns = {one.name: self.of(one, miss / len(outputs)) for one in outputs}
            return computed(output.formula, columns, len(self.noisy.keys))
        if output.of:
            share = share_of(output, miss)
            parts = [self.of(self.measurement.plan.outputs[place], share) for place in output.of]
            sizes = self._sizes(self.measurement.plan.outputs[output.of[0]], share) if output.sample else None
            return moments(output, [(values, intervals or []) for values, intervals in parts], sizes)
        measured = self.measurement.parts[output.index]
        return _column(output, measured, self.noisy.parts[output.index], miss)

    def _sizes(self, mean: Output, miss: float) -> tuple[list[float], list[Interval]]:
        """How many rows a mean is over, in each group."""
        measured = self.measurement.parts[mean.index]
        return _column(size_output(mean, measured), measured, self.noisy.parts[mean.index], miss)


def cost(measurement: Measurement) -> Cost:
    """The price of a measurement."""
    return Cost(epsilon=float(measurement.price.epsilon), delta=float(measurement.price.delta))


def mechanisms(measurement: Measurement) -> list[dict[str, str]]:
    """The mechanism of each part, as analysts may see it: no path, no salt, no engine SQL."""
    described = []
    for index, measured in enumerate(measurement.parts):
        outputs = measurement.plan.outputs
        own = {
            place
            for place, one in enumerate(outputs)
            if one.kind not in (OutputKind.KEY, OutputKind.SPECIAL) and one.index == index
        }
        using = [one for place, one in enumerate(outputs) if place in own or own & set(one.of)]
        names = [one.name for one in using if not one.hidden]
        shown = ["which groups are shown"] if measured.part.kind is PartKind.KEYS else []
        unit = measured.part.lattice.step if measured.part.lattice else Fraction(1)
        described.append(
            {
                "columns": ", ".join([*names, *shown]),
                "mechanism": measured.mechanism.describe(),
                "unit": f"{show(unit)} a step" if unit != 1 else "1 a step",
                "sensitivity": f"{measured.sensitivity.l1} steps in all, {measured.sensitivity.cells} groups",
            }
        )
    for place, special in enumerate(measurement.specials):
        names = [one.name for one in measurement.plan.outputs if one.kind is OutputKind.SPECIAL and one.index == place]
        described.append(
            {
                "columns": ", ".join(names),
                "mechanism": special.mechanism.describe(),
                "unit": "1 a step",
                "sensitivity": "see the mechanism",
            }
        )
    return described


def _column(
    output: Output, measured: Measured, vectors: Sequence[Sequence[int]], miss: float
) -> tuple[list[float], list[Interval]]:
    if output.kind is OutputKind.MEAN:
        return _means(output, measured, vectors, miss)
    if isinstance(measured.mechanism, Threshold):
        near = shown_intervals(measured.mechanism, vectors[0], miss)
        return list(vectors[0]), list(near)
    wide = half_width_of(output, measured, miss)
    whole = output.kind is OutputKind.COUNT or grid_of(output, measured).step == 1
    values: list[float] = []
    intervals: list[Interval] = []
    for cell in zip(*vectors, strict=True):
        exact = sum((weight * value for weight, value in zip(output.weights, cell, strict=True)), Fraction(0))
        if whole:  # the truth is a whole number: within `wide` of the exact estimate, so within this of the rounded one
            value, reach = round(exact), math.floor(wide + 0.5)
            values.append(value)
            intervals.append((value - reach, value + reach))
        else:
            values.append(float(exact))
            intervals.append((float(exact) - wide, float(exact) + wide))
    return values, intervals


def _means(
    output: Output, measured: Measured, vectors: Sequence[Sequence[int]], miss: float
) -> tuple[list[float], list[Interval]]:
    grid, mechanism, part = grid_of(output, measured), measured.mechanism, measured.part
    if part.axes or isinstance(mechanism, sums.Summed):
        above, below = (_summed(weights, vectors) for weights in ends(part, output))
        if isinstance(mechanism, sums.Summed):
            quantile: Any = sums.spread(mechanism, *ends(part, output), miss)
        else:
            assert isinstance(mechanism, Ball | Gaussian)
            quantile = joint.spread(mechanism, part, axis_of(part, output.weights), miss)
    else:
        assert isinstance(mechanism, Laplace | Gaussian)
        above, below = (np.array([float(value) for value in vector]) for vector in vectors[:2])
        quantile = partial(mean_quantile, mechanism, miss=miss)
    position, low, high = mean_interval(quantile, above, below)

    def scaled(part: Any) -> list[float]:
        return [float(grid.step) * (grid.low + grid.width * float(t)) for t in part]

    return scaled(position), list(zip(scaled(low), scaled(high), strict=True))


def _summed(weights: Sequence[Fraction], vectors: Sequence[Sequence[int]]) -> Any:
    """A combination of vectors, exact until it is a floating-point number."""
    cells = zip(*vectors, strict=True)
    return np.array([float(sum(w * v for w, v in zip(weights, cell, strict=True) if w)) for cell in cells], float)
