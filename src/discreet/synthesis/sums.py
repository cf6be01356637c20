"""Columns that are sums of others: nothing of them is measured, and in the finished rows they are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.catalog import Declaration
from discreet.catalog.sums import sum_of, unsummable
from discreet.errors import refused
from discreet.procedures.arguments import columns_of
from discreet.synthesis.orders import Drawn, none
from discreet.synthesis.packed import pack
from discreet.trusted.ring_a.table import Column, Table, Type

Summed = tuple[Column, tuple[str, ...]]
"""A column with the bounds that follow from those of its parts, and the parts."""
_EXACT = 1 << 53


def summed_columns(declaration: Declaration, table: Table, names: Sequence[str] | None) -> tuple[Summed, ...]:
    """The columns of a publication of these (all: None) that are sums of others of them. Raises QuestionError where
    their types, which a source may state, are none of sums."""
    known = {column.name: column for column in columns_of(table, names, "columns") if column.name != table.person}
    found = []
    for name, parts in declaration.sums.get(table.name, ()):
        if {name, *parts} <= known.keys():
            words = unsummable(known[name], [known[part] for part in parts])
            if words:
                raise refused("columns", words, "sums", "declare them alike, or take the sum out")
            found.append((sum_of(known[name], [known[part] for part in parts]), parts))
    return tuple(found)


def computed(one: Summed, columns: Mapping[str, Drawn]) -> dict[str, Any]:
    """The column as it is stored (`decode.read`). NULL where a part is NULL."""
    total, parts = one[0], [columns[name] for name in one[1]]
    missing = np.logical_or.reduce([none(part) for part in parts])
    if total.type is not Type.NUMBER:
        return {"whole": pack(np.add.reduce([part.values for part in parts])), "none": pack(missing)}
    values: NDArray[np.float64] = np.add.reduce([part.values.astype(float) for part in parts])
    return {"numbers": pack(_rounded(values, parts)), "none": pack(missing)}


def _rounded(values: NDArray[np.float64], parts: Sequence[Drawn]) -> NDArray[np.float64]:
    """Sums with as many digits as their parts have, as 0.1 + 0.2 is 0.3: where the parts are steps. Of other parts, and
    where a double has no such digits, they are what addition gives."""
    exact = [one for part in parts for one in (part.line.low, part.line.unit)]
    digits = next(
        (d for d in range(16) if all(one is not None and (one * 10**d).denominator == 1 for one in exact)), None
    )
    largest = sum(max(abs(float(part.line.low)), abs(float(part.line.high))) for part in parts)
    return values if digits is None or largest * 10**digits >= _EXACT else np.round(values, digits)
