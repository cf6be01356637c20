"""The columns of a synthetic table and how each is discretised, as far as declarations alone say it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.catalog import Declaration
from discreet.errors import QuestionError, refused
from discreet.procedures.arguments import columns_of, table_about_people
from discreet.synthesis.cells import COARSE, FINE, NumberLine, line
from discreet.synthesis.prefixes import looks_of
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.table import Column, Table, Type
from discreet.trusted.ring_c.coding import Binned, ListedCells

BINS = 32
"""At most about so many bins a column with bounds gets."""
MOST_VALUES = 255
"""At most so many values of a column are found; the others share a cell."""


@dataclass(frozen=True)
class PublishedColumn:
    """A column of the synthetic table. `coded` is how it becomes cells, None where its values have to be found; with a
    `line` that is to be cut, `looks` says how often it is looked at before its bins stand, and of a text how often for
    prefixes of what was not found."""

    column: Column
    coded: ListedCells | Binned | None
    line: NumberLine | None = None
    looks: int = 0

    @property
    def cuts(self) -> list[Fraction]:
        """Where its bins begin, as they are declared; none where looks find them."""
        if self.line is None or self.looks or not isinstance(self.coded, Binned):
            return []
        return [self.line.place(cut) for cut in self.coded.cuts]

    @property
    def found(self) -> bool:
        """Whether the values have to be found among the rows."""
        return self.coded is None


def publishable(declaration: Declaration) -> dict[str, dict[str, Any]]:
    """Of each declared table about persons: the `columns` that can be published, those `left_out` and why; or why
    nothing of it can, `why`."""
    found: dict[str, dict[str, Any]] = {}
    for name, table in declaration.tables.items():
        if table.public:
            continue
        try:
            kept, left_out = wanted(table_about_people(declaration, name), None, {}, referred(declaration, name))
        except QuestionError as error:
            found[name] = {"columns": [], "left_out": {}, "why": f"{error.message}; {error.fix}"}
        else:
            found[name] = {"columns": [one.column.name for one in kept], "left_out": left_out, "why": ""}
    return found


def referred(declaration: Declaration, name: str) -> dict[str, str]:
    """The columns of a table by which rows of others find their person, and which others: each value is one person's,
    as a person is, so none is shared by enough."""
    paths = {one.path: one.name for one in declaration.tables.values() if one.path is not None and not one.shared}
    return {column: other for (table, column), other in paths.items() if table == name}


def wanted(
    table: Table, names: Sequence[str] | None, bins: Mapping[str, Any], keys: Mapping[str, str]
) -> tuple[tuple[PublishedColumn, ...], dict[str, str]]:
    """The columns of the synthetic table, and those that are left out, with the reason. `keys` are columns that rows of
    other tables refer to, and which tables these are.

    Raises QuestionError where a named column cannot be had, or nothing is left.
    """
    if not isinstance(bins, Mapping):
        raise refused("bins", "bins must name columns", "bins", 'write bins={"age": 20}')
    for name in bins:
        columns_of(table, [name], "bins")
    kept, left_out = [], {}
    for column in columns_of(table, names, "columns"):
        one = None if column.name == table.person else published(column, _bins_of(column, bins))
        alone = one is not None and one.found and column.name in keys
        if one is not None and not alone:
            kept.append(one)
            continue
        reason, fix = "its bounds are not declared", f"declare min and max of {column.name}"
        if column.name == table.person:
            reason, fix = "it names the person", "leave it out"
            if table.path is not None:
                reason = f"it refers to {table.path[0]}, by which the person is found"
        elif alone:
            reason = f"it is a key that rows of {keys[column.name]} refer to, each value of it one person's"
            fix = "leave it out; tables that are published together, by a list of their names, have keys that fit"
        if names is not None:
            raise refused("columns", f"{column.name} cannot be published: {reason}", "columns", fix)
        left_out[column.name] = reason
    if not kept:
        why = "".join(f"; {name}: {reason}" for name, reason in left_out.items())
        fix = "declare values or bounds for some columns"
        raise refused("columns", f"no column can be published{why}", "columns", fix)
    return tuple(kept), left_out


def _bins_of(column: Column, bins: Mapping[str, Any]) -> Any:
    return next((value for name, value in bins.items() if name.casefold() == column.name.casefold()), None)


def published(column: Column, bins: Any = None) -> PublishedColumn | None:
    """How a column becomes cells; None where nothing declared says how. Raises QuestionError on bins that are none."""
    if column.values is not None or column.type is Type.BOOLEAN:
        if bins is not None:
            raise refused("bins", f"{column.name} has declared values", "bins", "leave it out of bins")
        return PublishedColumn(column, ListedCells(column, column.keys() or (), null=column.nulls))
    along = line(column)
    if along is None:
        if bins is not None and column.type is Type.TEXT:
            message = f"{column.name} is a text, and bins are for numbers, dates and times"
            raise refused("bins", message, "bins", "leave it out of bins")
        if bins is not None:
            raise refused(
                "bins", f"{column.name} has no declared bounds", "bins", f"declare min and max of {column.name}"
            )
        found = PublishedColumn(column, None, looks=looks_of(column))
        return found if column.type in (Type.TEXT, Type.INTEGER) else None
    if bins is not None:
        return PublishedColumn(column, along.binned(_cuts(along, bins)), along)
    if along.end() <= along.low:
        return PublishedColumn(column, along.binned([]), along)
    units = math.inf if along.unit is None else (along.end() - along.low) / along.unit
    first = along.divided(along.low, along.end(), BINS if units <= BINS else COARSE)
    looks = 0 if units <= BINS else 2 + (units > FINE) + (units > FINE**2)
    return PublishedColumn(column, along.binned(first), along, looks)


def _cuts(along: NumberLine, bins: Any) -> list[Fraction]:
    """Declared bins: how many of one width, or where they begin."""
    name = along.column.name
    if isinstance(bins, int) and not isinstance(bins, bool):
        if not 1 <= bins <= FINE:
            raise refused("bins", f"{name} can have 1 to {FINE:,} bins", "bins", f'write bins={{"{name}": 20}}')
        return along.divided(along.low, along.end(), bins) if along.end() > along.low else []
    fix = (
        f'write bins={{"{name}": 20}}, or where they begin, in ascending order: bins={{"{name}": [{_example(along)}]}}'
    )
    if isinstance(bins, str) or not isinstance(bins, Sequence):
        raise refused("bins", f"the bins of {name} are neither a number nor a list", "bins", fix)
    try:
        cuts = [_place(along, cut) for cut in bins]
    except (ValueError, TypeError, AssertionError, OverflowError):
        raise refused("bins", f"a bin of {name} begins at a value that is not of its type", "bins", fix) from None
    inside = [cut for cut in cuts if along.low < cut]
    if inside and inside[-1] > along.high:
        raise refused("bins", f"a bin of {name} begins above its max", "bins", "leave it out, or declare a larger max")
    if cuts != sorted(set(cuts)) or len(cuts) > FINE:
        raise refused("bins", f"the bins of {name} are not in ascending order, or are more than {FINE:,}", "bins", fix)
    return inside


def _place(along: NumberLine, cut: Any) -> Fraction:
    place = along.place(Fraction(str(cut)) if isinstance(cut, float | Decimal) else cut)
    if along.place(along.value(place)) != place:
        raise ValueError
    return place


def _example(along: NumberLine) -> str:
    middle = along.value(along.low + (along.high - along.low) / 2)
    return show(middle) if isinstance(middle, Fraction) else repr(middle)
