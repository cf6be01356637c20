"""Cells back to values: what a synthetic row says in each column."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.release.values import plain
from discreet.synthesis.cells import FINE, NoisyHistogram, NumberLine, weights
from discreet.synthesis.packed import pack, unpack
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_c.coding import Binned, ListedCells

Codes = NDArray[np.int64]
_EPOCH = datetime.datetime(1970, 1, 1)
OTHER = "(other)"


def stored(one: ListedCells | Binned, codes: Codes, drawn: NDArray[Any] | None) -> dict[str, Any]:
    """A column of synthetic rows as JSON can hold it: texts and the like by their places among the values; whole
    numbers, days and microseconds as integers; numbers as doubles, as they were drawn. `none` says which rows have no
    value."""
    none = codes == one.size - 1 if one.null else np.zeros(len(codes), bool)
    if isinstance(one, ListedCells):
        other: list[Any] = [OTHER if one.column.type is Type.TEXT else None] * one.other
        values = [*(plain(value) for value in one.listed), *other]
        return {"values": values, "places": pack(np.where(none, len(values), codes))}
    assert drawn is not None
    return {"whole" if drawn.dtype.kind == "i" else "numbers": pack(drawn), "none": pack(none)}


def drawn_values(
    one: Binned, codes: Codes, along: NumberLine, look: NoisyHistogram | None, generator: np.random.Generator
) -> NDArray[Any]:
    """A value for each row of a column with bounds: whole numbers, days and microseconds as integers, numbers as
    doubles; where a row has none, any."""
    none = codes == one.size - 1 if one.null else np.zeros(len(codes), bool)
    whole = along.unit is not None and along.column.type is not Type.NUMBER
    drawn = np.full(len(codes), int(along.low) if whole else float(along.low))
    ends = [along.low, *(along.place(cut) for cut in one.cuts), along.end()]
    for cell in np.unique(codes[~none]).tolist():
        inside = codes == cell
        low, high = ends[cell], ends[cell + 1]
        drawn[inside] = _within(along, low, high, look, int(inside.sum()), generator)
    return drawn


def _within(
    along: NumberLine,
    low: Fraction,
    high: Fraction,
    look: NoisyHistogram | None,
    count: int,
    generator: np.random.Generator,
) -> NDArray[np.float64] | Codes:
    """Values in a bin: spread over its parts as a fine look saw them, evenly within each part."""
    parts, shares = ([low, high], np.ones(1)) if look is None else weights(look, low, high)
    chosen = generator.choice(len(shares), size=count, p=shares)
    if along.unit is not None and along.column.type is not Type.NUMBER:
        return _whole(along, parts, chosen, generator)
    starts = np.array([float(part) for part in parts])
    if along.unit is None:
        places = starts[chosen] + generator.random(count) * np.diff(starts)[chosen]
        places = np.clip(_rounded(places, float(high - low)), starts[chosen], np.nextafter(starts[1:][chosen], -np.inf))
    else:
        steps, which = np.unique(_steps(along.unit, along.low, parts, chosen, generator), return_inverse=True)
        places = np.array([float(along.low + along.unit * step) for step in steps.tolist()], float)[which]
    for part in np.flatnonzero(np.diff(starts) < float(along.high - along.low) / (8 * FINE)):
        places[chosen == part] = _one_value(along, parts[part], parts[part + 1])  # so much in so little
    return np.clip(places, float(along.low), float(along.high))


def _one_value(along: NumberLine, low: Fraction, high: Fraction) -> float:
    """The value of few digits in a part; where there are steps, the nearest multiple to it that the part has."""
    found = shortest(float(low), float(high))
    if along.unit is None:
        return found
    first, end = (math.ceil((one - along.low) / along.unit) for one in (low, high))
    step = min(max(round((Fraction(found) - along.low) / along.unit), first), max(first, end - 1))
    return float(along.low + along.unit * step)


def _whole(along: NumberLine, parts: Sequence[Fraction], chosen: Codes, generator: np.random.Generator) -> Codes:
    """Whole numbers, days or microseconds in the chosen parts: exact, as doubles are not beyond 2^53."""
    assert along.unit is not None
    first, unit = int(along.low), int(along.unit)
    places = (first + unit * _steps(along.unit, along.low, parts, chosen, generator)).astype(np.int64)
    if along.column.type is Type.INTEGER:
        for part, (start, end) in enumerate(itertools.pairwise(parts)):
            if end - start < (along.high - along.low) / (8 * FINE):
                found = math.ceil(shortest(float(start), float(end)))
                places[chosen == part] = found if start <= found < end else int(start)
    return np.minimum(places, int(along.high))


def _steps(
    unit: Fraction, low: Fraction, parts: Sequence[Fraction], chosen: Codes, generator: np.random.Generator
) -> NDArray[Any]:
    """How many units above `low` each drawn value lies, evenly within its part: of immense ranges as Python's numbers,
    which are exact."""
    firsts = [math.ceil((part - low) / unit) for part in parts]
    lengths = [after - before for before, after in itertools.pairwise(firsts)]
    shares: NDArray[np.float64] = generator.random(len(chosen))
    if unit * firsts[-1] < 1 << 53 and abs(low) < 1 << 62:
        within: Codes = np.floor(shares * np.array(lengths, float)[chosen]).astype(np.int64)
        return np.array(firsts, np.int64)[chosen] + within
    pairs = zip(shares.tolist(), chosen.tolist(), strict=True)
    return np.array([firsts[place] + int(Fraction(share) * lengths[place]) for share, place in pairs], object)


def shortest(low: float, high: float) -> float:
    """The number with the fewest digits that is at least `low` and below `high`."""
    for digits in range(-18, 18):
        step = 10.0**-digits
        if not math.isfinite(low / step):
            break
        place = round(math.ceil(low / step - 1e-12) * step, max(0, digits))
        if low <= place < high:
            return place
    return low


def _rounded(values: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """To a thousandth of the bin's width, so that no digit says more than is known."""
    digits = 3 - int(np.floor(np.log10(width))) if width > 0 else 0
    return np.round(values, min(15, max(-15, digits)))


@dataclass(frozen=True)
class SyntheticColumn:
    """A column of synthetic rows: its type, and its values with None where there is none."""

    type: Type
    values: NDArray[Any]

    def plain(self, some: slice = slice(None)) -> list[Any]:
        """As Python's own values, of all rows or of some."""
        values = self.values[some]
        return list(values.tolist()) if self.type not in (Type.DATE, Type.TIMESTAMP) else list(values)


def read(kind: Type, column: Mapping[str, Any]) -> SyntheticColumn:
    """A column as it was stored; of made-up keys their numbers, in the column's type."""
    if "keys" in column:
        numbers = unpack(column["keys"]).tolist()
        made = np.empty(len(numbers), object)
        made[:] = [str(one) if kind is Type.TEXT else float(one) if kind is Type.NUMBER else one for one in numbers]
        return SyntheticColumn(kind, made)
    if "values" in column:
        known = np.empty(len(column["values"]) + 1, object)
        known[:] = [*(_typed(value, kind) for value in column["values"]), None]
        return SyntheticColumn(kind, known[unpack(column["places"])])
    none = unpack(column["none"])
    if "numbers" in column:
        return SyntheticColumn(kind, _with(unpack(column["numbers"]), none))
    whole = unpack(column["whole"])
    if kind is Type.INTEGER:
        return SyntheticColumn(kind, _with(whole, none))
    distinct, places = np.unique(whole, return_inverse=True)
    known = np.empty(len(distinct), object)
    known[:] = [_moment(place, kind) for place in distinct.tolist()]
    values = known[places]
    values[none] = None
    return SyntheticColumn(kind, values)


def _with(values: NDArray[Any], none: NDArray[np.bool_]) -> NDArray[Any]:
    """The values, as Python's own where some of them are None."""
    if none.any():
        values = values.astype(object)
        values[none] = None
    return values


def _typed(value: Any, kind: Type) -> Any:
    if value is None or kind not in (Type.DATE, Type.TIMESTAMP):
        return value
    return (datetime.date if kind is Type.DATE else datetime.datetime).fromisoformat(value)


def _moment(place: int, kind: Type) -> Any:
    if kind is Type.DATE:
        return datetime.date.fromordinal(place)
    return _EPOCH + datetime.timedelta(microseconds=place)
