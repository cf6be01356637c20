"""Columns from order statistics: quantiles, the most frequent values, the number of distinct values."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from discreet.intervals.noise import CONFIDENCE, half_width, three_digits
from discreet.mechanisms import Laplace, Quantiles
from discreet.plan.measurement import Measurement
from discreet.plan.outputs import OutputKind
from discreet.release.values import plain
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.nodes import project_of
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_b.order_statistics import MeasuredSpecial, SpecialKind

Interval = tuple[float, float]


def special_type(one: MeasuredSpecial, moment: Type | None = None) -> str:
    """The type of a column that has no intervals."""
    if one.special.many:
        return f"list of {moment}" if moment else "list"
    if moment:
        return str(moment)
    return "number" if one.special.kind is SpecialKind.QUANTILES else "value"


def special_values(
    one: MeasuredSpecial, noisy: Sequence[tuple[int, ...]], miss: float, moment: Type | None = None
) -> tuple[list[Any], list[Interval] | None]:
    """A column's values, and intervals where there are some."""
    special = one.special
    if isinstance(one.mechanism, Laplace):
        wide = math.floor(half_width(one.mechanism, [1.0], miss) + 0.5)
        values = [cell[0] for cell in noisy]
        return list(values), [(value - wide, value + wide) for value in values]
    if isinstance(one.mechanism, Quantiles):
        grid = special.lattice
        assert grid is not None
        made = partial(_number, one) if moment is None else partial(_moment, one, moment)
        listed = [[made(grid.low + place) for place in cell] for cell in noisy]
        return [cell if special.many else cell[0] for cell in listed], None
    names = [[plain(special.values[place]) for place in cell] for cell in noisy]
    return [cell if special.many else cell[0] for cell in names], None


def _number(one: MeasuredSpecial, place: int) -> int | float:
    """Whole where the values are, whatever the place and the lattice: the kind of a number says nothing."""
    grid = one.special.lattice
    assert grid is not None
    whole = project_of(one.special.root).quantities[0].expression.type is Type.INTEGER
    return int(grid.step * place) if whole else float(grid.step * place)


_EPOCH = datetime.datetime(1970, 1, 1)
_ENDS = [(end - _EPOCH) // datetime.timedelta(seconds=1) for end in (datetime.datetime.min, datetime.datetime.max)]


def _moment(one: MeasuredSpecial, moment: Type, place: int) -> str:
    """A date or timestamp as JSON can hold it, in the years 1 to 9999: a step may begin before and end after them."""
    assert one.special.lattice is not None
    seconds = int(one.special.lattice.step * place) * (86_400 if moment is Type.DATE else 1)
    found = _EPOCH + datetime.timedelta(seconds=min(max(seconds, _ENDS[0]), _ENDS[1]))
    return (found.date() if moment is Type.DATE else found).isoformat()


def special_words(measurement: Measurement) -> list[tuple[str, str, str]]:
    """How far off ranks and winners may be: which of the two, the column, and the words."""
    words = []
    for place, one in enumerate(measurement.specials):
        output = next(o for o in measurement.plan.outputs if o.kind is OutputKind.SPECIAL and o.index == place)
        name = output.name
        if isinstance(one.mechanism, Quantiles):
            if measurement.ranges:
                words.append(("ranks", name, f"{name}: the error in ranks is known once the bounds are found"))
                continue
            rank = one.mechanism.half_width(CONFIDENCE)
            said = f"{name}: off by at most {three_digits(rank)} ranks at 95 % confidence,"
            said += " by any number in a group of fewer rows"
            said += f"; a lattice of {_step(one, output.moment)}"
            words.append(("ranks", name, said))
            if parts := one.mechanism.kept_off():
                most = " or ".join(f"{float(part) * 100:.3g} %" for part in parts)
                said = f"{name}: the target ranks stay {float(one.mechanism.margin):,.3g} away from the ends, or {most}"
                words.append(("ranks", name, f"{said} of the rows where these are fewer"))
        elif not isinstance(one.mechanism, Laplace):
            far = one.mechanism.half_width(CONFIDENCE, len(one.special.values))
            said = (
                f"{name}: at 95 % confidence no omitted value has more than {three_digits(far)} rows above a listed one"
            )
            words.append(("choice", name, said))
    return words


def _step(one: MeasuredSpecial, moment: Type | None) -> str:
    assert one.special.lattice is not None
    step = one.special.lattice.step
    if moment is None:
        return f"steps of {show(step)}"
    seconds = int(step) * (86_400 if moment is Type.DATE else 1)
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    return f"steps of {seconds // size:,} {unit}{'s' * (seconds > size)}"


_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def described_ranges(priced: Measurement) -> list[dict[str, str]]:
    """How bounds were found."""
    return [
        {
            "columns": "bounds",
            "mechanism": mechanism.describe(),
            "unit": "1 a step",
            "sensitivity": f"{mechanism.sensitivity} steps in all",
        }
        for mechanism in priced.ranges
    ]


def reported(value: Any, interval: Interval | None) -> str:
    """A value as GoogleSQL's report_format => "JSON" writes it."""
    content: dict[str, Any] = {"value": value}
    if interval is not None:
        low, high = interval
        content["noise_confidence_interval"] = {
            "lower_bound": low,
            "upper_bound": high,
            "confidence_level": CONFIDENCE,
        }
    return json.dumps({"result": content}, ensure_ascii=False)


def to_be_found(priced: Measurement) -> list[str]:
    """What has no declared bounds, in words, before anything is paid."""
    names = [getattr(one.expression, "name", "an expression") for one in priced.plan.ranges]
    return [
        f"bounds of {name} are found first, at a fifth of the price; declared bounds cost nothing" for name in names
    ]
