"""A declaration to plan against; no rows are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.catalog import Declaration, declare
from discreet.plan.measurement import Plan
from discreet.sql import lower

COLUMNS: Mapping[str, Any] = {
    "p": {"type": "text"},
    "g": {"type": "text", "values": ["x", "y", "z"]},
    "h": {"type": "text"},
    "k": {"type": "integer", "min": 0, "max": 3},
    "b": {"type": "boolean"},
    "v": {"type": "integer", "min": -5, "max": 7},
    "w": {"type": "number", "min": -2.5, "max": 10},
    "s": {"type": "number", "min": 0, "max": 3, "step": 0.5},
    "u": {"type": "integer"},
    "f": {"type": "number"},
}
ONE: Mapping[str, Any] = {"one_row_per_person": True}


def people(rows: int, groups: int | None = None) -> Mapping[str, Any]:
    """A person may have that many rows and touch that many groups."""
    unit: dict[str, Any] = {"person": "p", "rows_per_person": rows}
    return unit if groups is None else unit | {"groups_per_person": groups}


def declaration(unit: Mapping[str, Any]) -> Declaration:
    table = {"source": "nowhere.csv", "columns": COLUMNS, **unit}
    return declare({"budget": {"epsilon": 1000, "delta": 0.001}, "tables": {"t": table}})


def planned(question: str, unit: Mapping[str, Any] = ONE) -> Plan:
    """The plan of a question."""
    return lower(question, declaration(unit)).plan
