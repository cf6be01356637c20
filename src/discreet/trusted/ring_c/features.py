"""Encoding of rows as feature vectors of integers, from declarations alone.

A feature is a whole number of units with 2^14 units to one, at most 2^14 in size, so that sums of products with weights
are exact in doubles, in whatever order a processor takes them: a row's part never depends on where it stands.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.ring_a.table import Column, Type, Value

UNIT = 1 << 14
"""Units to one."""

MOST_FEATURES = 1000
"""So many features times the largest product of a feature and a weight are below 2^53."""

_ORIGIN = datetime.date(1970, 1, 1)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scaled:
    """A column with bounds: low is −1, high is 1, what lies outside is clamped, NULL is 0, the middle.

    Rounded to the nearest unit. The arithmetic is elementwise in doubles, each operation rounded as IEEE 754 says, so
    equal values are equal features wherever they stand.
    """

    column: Column

    @property
    def names(self) -> tuple[str, ...]:
        """The one feature's name, that of the column."""
        return (self.column.name,)

    @property
    def bounds(self) -> tuple[float, float]:
        """The declared bounds, as numbers."""
        assert self.column.minimum is not None
        assert self.column.maximum is not None
        return as_number(self.column.minimum), as_number(self.column.maximum)

    def units(self, values: NDArray[Any], known: NDArray[np.bool_]) -> Floats:
        """The feature in units, as whole numbers in doubles: rows × 1. What is not `known` is 0, NaN is low."""
        low, high = self.bounds
        plain = np.where(known, values, low).astype(np.float64)
        inside = np.minimum(np.maximum(np.nan_to_num(plain, nan=low, posinf=high, neginf=low), low), high)
        place = np.rint((inside - low) / ((high - low) or 1.0) * (2 * UNIT)) - UNIT
        return np.where(known, place, 0.0)[:, None]


@dataclass(frozen=True)
class OneHot:
    """A column with declared values: a feature for each of them, 1 where the row has it, else 0; NULL and what is not
    declared have none."""

    column: Column
    values: tuple[Value, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each declared value: `column=value`."""
        return tuple(f"{self.column.name}={_word(value)}" for value in self.values)

    def units(self, values: NDArray[Any], known: NDArray[np.bool_]) -> Floats:
        """The features in units, as whole numbers in doubles: rows × declared values. `values` are places among these;
        a place that there is not, or that is not `known`, gives a row of 0."""
        place = np.where(known, values, -1).astype(np.int64)
        chosen: Floats = (place[:, None] == np.arange(len(self.values))).astype(np.float64)
        return chosen * UNIT


@dataclass(frozen=True)
class Features:
    """All features of a model in their order; the last is 1 for every row, the intercept."""

    parts: tuple[Scaled | OneHot, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, in order, without the intercept."""
        return tuple(name for part in self.parts for name in part.names)

    def units(self, values: Mapping[str, NDArray[Any]], known: Mapping[str, NDArray[np.bool_]], rows: int) -> Floats:
        """The rows' features in units, the intercept last: whole numbers as doubles, rows × (features + 1)."""
        columns = [part.units(values[part.column.name], known[part.column.name]) for part in self.parts]
        return np.ascontiguousarray(np.hstack([*columns, np.full((rows, 1), float(UNIT))]))


def feature(column: Column) -> Scaled | OneHot | None:
    """How a column enters a model; None where its declaration gives neither values nor bounds."""
    if column.values is not None:
        return OneHot(column, column.values)
    if column.type is Type.BOOLEAN:
        return OneHot(column, (False, True))
    if column.type is Type.TEXT or column.minimum is None or column.maximum is None:
        return None
    return Scaled(column)


def as_number(value: Value) -> float:
    """A bound as the engine's vectors hold it: dates in days since 1970, timestamps in microseconds."""
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return float((value - _ORIGIN).days)
    assert isinstance(value, int | Fraction)
    return float(value)


def _word(value: Value) -> str:
    if isinstance(value, Fraction):
        return f"{float(value):g}"
    return str(value)
