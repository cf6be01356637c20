"""The types of an answer's columns, before anything is measured."""

from __future__ import annotations

from discreet.intervals.expected import grid_of
from discreet.plan.measurement import Measurement
from discreet.plan.outputs import Output, OutputKind
from discreet.release.order_statistic_columns import special_type

ESTIMATE = "estimate of "
"""Before the type of a column that has intervals."""


def column_types(measurement: Measurement) -> dict[str, str]:
    """The columns of an answer to a question, as `answer` makes them of whatever is measured."""
    plan = measurement.plan
    types = {}
    for output in plan.outputs:
        if output.hidden:
            continue
        if output.report:
            types[output.name] = "text"
        elif output.kind is OutputKind.KEY:
            types[output.name] = str(output.type_of(plan.keys[output.index]))
        elif output.kind is OutputKind.SPECIAL:
            types[output.name] = special_type(measurement.specials[output.index], output.moment)
        else:
            types[output.name] = ESTIMATE + ("integer" if _whole(output, measurement) else "number")
    return types


def _whole(output: Output, measurement: Measurement) -> bool:
    """Whether an estimate is a whole number, whatever bounds are found."""
    if output.kind is OutputKind.COUNT:
        return True
    known = output.kind is OutputKind.SUM and not output.of and measurement.plan.request is None
    return known and grid_of(output, measurement.parts[output.index]).step == 1
