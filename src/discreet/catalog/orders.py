"""Columns whose values rise, as the owner declares them: who was admitted was discharged on the same day or later; and
the column by which rows of a person follow one another."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet.catalog.impossible import RuleReader
from discreet.catalog.model import Orders, PublicTotal, Rules
from discreet.trusted.ring_a.table import Column, Type, Value

_ALIKE = "declare both alike, or leave it out"
_FIX = 'write for example orders = [["admitted", "discharged"]]'


def orders(reader: RuleReader, where: str, raw: Any, columns: tuple[Column, ...]) -> Orders:
    """The declared orders: in each list, no value is larger than the next. Pairs, the smaller first."""
    listed = isinstance(raw, list | tuple) and all(isinstance(one, list | tuple) and len(one) > 1 for one in raw)
    if not listed or not all(isinstance(name, str) for one in raw for name in one):
        reader.fault(where, "not a valid list of lists of columns", _FIX)
        return ()
    places = {column.name: place for place, column in enumerate(columns)}
    after: list[set[int]] = [set() for _ in columns]  # the places of those that are no smaller
    for number, one in enumerate(raw):
        named = [_column(reader, f"{where}[{number}]", name, columns) for name in one]
        known = [places[column.name] for column in named if column is not None]
        if len(known) == len(one):
            for low, high in itertools.pairwise(known):
                after[low].add(high)
    for middle, highs in enumerate(after):  # with those that follow from two others (Warshall 1962)
        for lows in after:
            if middle in lows:
                lows |= highs
    pairs = [(columns[low], columns[high]) for low, highs in enumerate(after) for high in sorted(highs)]
    for smaller, larger in pairs:
        words = f"{smaller.name} is before itself" if smaller == larger else apart(smaller, larger)
        if words:
            fix = "take one of these orders out: they lead in a circle" if smaller == larger else _ALIKE
            reader.fault(where, words, fix)
            return ()
    return tuple((smaller.name, larger.name) for smaller, larger in pairs)


def time(reader: RuleReader, where: str, raw: Any, columns: tuple[Column, ...], orders: Orders) -> str | None:
    """The declared column by which the rows of a person stand in time. Its made-up values are set by those of the
    person's other rows, so no other column of a row can be at most as large."""
    if not isinstance(raw, str):
        reader.fault(where, "not a column", 'write for example time = "admitted"')
        return None
    named = next((one for one in columns if one.name.casefold() == raw.casefold()), None)
    if named is not None and (named.values is not None or named.type in (Type.BOOLEAN, Type.TEXT)):
        words = f"{named.name} is no date, time or number with bounds"
        reader.fault(where, words, "name a column with min and max in place of it")
        return None
    column = _column(reader, where, raw, columns)
    if column is None:
        return None
    if any(high == column.name for _, high in orders):
        reader.fault(where, f"{column.name} is larger than another column, by orders", "leave one of them out")
    return column.name


def apart(low: Column, high: Column) -> str:
    """Why the values of these columns cannot be in order; nothing where they can."""
    ends = [low.minimum, low.maximum, high.minimum, high.maximum]
    if low.type is not high.type or len({_kind(end) for end in ends}) > 1 or low.step != high.step:
        return f"{low.name} and {high.name} have not one type and step"
    unit: Any = 1_000_000 if low.type is Type.TIMESTAMP else low.step
    first, second = place_of(low.minimum), place_of(high.minimum)
    if unit is not None and (first - second) % unit:
        return f"the bounds of {low.name} and {high.name} are not whole steps apart"
    if place_of(low.minimum) > place_of(high.maximum):
        return f"no value of {low.name} is at most one of {high.name}, by their bounds"
    return ""


def _column(reader: RuleReader, where: str, name: str, columns: Sequence[Column]) -> Column | None:
    column = next((one for one in columns if one.name.casefold() == name.casefold()), None)
    if column is None:
        reader.fault(where, f"the column {name} is not declared", "declare it, or leave it out")
    elif column.minimum is None or column.maximum is None:
        reader.fault(where, f"the bounds of {name} are not declared", "declare its min and max, or leave it out")
        return None
    return column


def beside_totals(orders: Orders, totals: Sequence[PublicTotal], rules: Rules) -> str | None:
    """A column in order whose values rules tie to columns with totals: where these are met, its value may change."""
    bound = {name for one in totals for name in one.columns}
    while more := {one.column for rule in rules if bound & {c.column for c in rule} for one in rule} - bound:
        bound |= more
    return next((name for pair in orders for name in pair if name in bound), None)


def _kind(value: Value | None) -> type:
    return Fraction if isinstance(value, int) else type(value)


def place_of(value: Value | None) -> Fraction:
    """Where a value stands among those of its type: days since the year 1, microseconds since 1970, or the number."""
    if isinstance(value, datetime.datetime):
        return Fraction((value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return Fraction(value.toordinal())
    assert isinstance(value, int | Fraction)
    return Fraction(value)
