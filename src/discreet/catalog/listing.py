"""The description of the declared tables for analysts: the privacy unit and the columns, without the source."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.catalog.model import Declaration
from discreet.texts import visible
from discreet.trusted.ring_a.exact import show
from discreet.trusted.ring_a.table import Column, Table, Value

MOST_SHOWN = 5
"""How many of a column's values stand in the words."""


class Tables(dict[str, dict[str, Any]]):
    """The declared tables by name, as plain values that JSON can hold; in words when it is printed.

    Of a table: `rows` (whose they are, in words), `person` (a column, or None), `rows_per_person`, `groups_per_person`,
    `public`, and `columns`: by name the `type`, `min`, `max`, `values` and `nulls`, as declared."""

    def __repr__(self) -> str:
        return "\n".join(line for name, table in self.items() for line in _lines(name, table))


def listed(declaration: Declaration) -> Tables:
    """What may be asked about."""
    return Tables({name: _table(table) for name, table in declaration.tables.items()})


def _table(table: Table) -> dict[str, Any]:
    return {
        "rows": _whose(table),
        "person": table.person,
        "rows_per_person": table.rows_per_person,
        "groups_per_person": table.groups_per_person,
        "public": table.public,
        "columns": {column.name: _column(column) for column in table.columns},
    }


def _whose(table: Table) -> str:
    if table.public:
        return "public: no persons"
    whose = "each row is a person" if table.person is None else f"the person is in column {visible(table.person)}"
    if table.path is not None:
        whose += f" -> {visible('.'.join(table.path))}"
    if table.one_row_per_person:
        return whose if table.person is None else f"{whose}, one row per person"
    return f"{whose}; at most {table.rows_per_person:,} rows and {table.groups_per_person:,} groups per person count"


def _column(column: Column) -> dict[str, Any]:
    return {
        "type": None if column.type is None else str(column.type),
        "min": _plain(column.minimum),
        "max": _plain(column.maximum),
        "values": None if column.values is None else [_plain(value) for value in column.values],
        "nulls": column.nulls,
    }


def _plain(value: Value | None) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    return value.isoformat() if isinstance(value, datetime.date) else value


def _lines(name: str, table: dict[str, Any]) -> list[str]:
    columns = {visible(column): known for column, known in table["columns"].items()}
    width = max(map(len, columns), default=0)
    kinds = max((len(known["type"] or "") for known in columns.values()), default=0)
    return [
        f"{visible(name)} · {table['rows']}",
        *(
            f"  {column.ljust(width)}  {(known['type'] or '').ljust(kinds)}  {said(known)}".rstrip()
            for column, known in columns.items()
        ),
    ]


def said(known: Mapping[str, Any]) -> str:
    """What is declared of a column beside its type, in words."""
    parts = []
    if known["min"] is not None or known["max"] is not None:
        low, high = (_end(known[key]) for key in ("min", "max"))
        parts.append(f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}")
    if known["values"] is not None:
        shown = ", ".join(_end(value) for value in known["values"][:MOST_SHOWN])
        more = len(known["values"]) - MOST_SHOWN
        parts.append(shown + (f" and {more:,} more" if more > 0 else ""))
    if not known["nulls"]:
        parts.append("never NULL")
    return "; ".join(parts)


def _end(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return visible(value)
    return str(value) if isinstance(value, bool | int) else show(Fraction(str(value)))
