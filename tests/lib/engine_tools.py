"""Small tables in a real engine, asked with a salt that the test knows, and the vectors that the door would see."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pyarrow

from discreet.catalog import Declaration, Table, declare
from discreet.catalog.model import EngineLimits
from discreet.engines import chosen
from discreet.engines.protocol import Row
from discreet.plan.measurement import Measurement, Plan, Price
from discreet.plan.split import measurement
from discreet.sql import lower
from discreet.trusted.ring_a.groups import combined, dense
from discreet.trusted.ring_a.table import Source, SourceKind, Type

ARROW = {
    Type.INTEGER: pyarrow.int64(),
    Type.NUMBER: pyarrow.float64(),
    Type.TEXT: pyarrow.string(),
    Type.BOOLEAN: pyarrow.bool_(),
    Type.DATE: pyarrow.date32(),
    Type.TIMESTAMP: pyarrow.timestamp("us"),
}

COLUMNS: Mapping[str, Mapping[str, Any]] = {
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
    "d": {"type": "date"},
}
"""Every kind of column: keys public and private, numbers with and without bounds, a declared step."""

Record = Mapping[str, Any]
Vectors = Sequence[Sequence[int]]


def declaration(unit: Mapping[str, Any], columns: Mapping[str, Any] = COLUMNS) -> Declaration:
    """A declaration of one table `t`, whose rows a test gives later."""
    table = {"source": "nowhere.csv", "columns": columns, **unit}
    budget = {"epsilon": 1000, "delta": Fraction(1, 1000)}
    return declare({"budget": budget, "tables": {"t": table}})


def planned(question: str, known: Declaration) -> Plan:
    """The plan of a question."""
    return lower(question, known).plan


def frame(table: Table, rows: Sequence[Record]) -> pyarrow.Table:
    """Rows as Arrow data of the declared types; what a row does not name is NULL."""
    columns = {}
    for column in table.columns:
        assert column.type is not None
        columns[column.name] = pyarrow.array([row.get(column.name) for row in rows], ARROW[column.type])
    return pyarrow.table(columns)


LIMITS = EngineLimits(memory_gib=4, seconds=60)


class Bench:
    """One engine for many tables."""

    def __init__(self, limits: EngineLimits = LIMITS) -> None:
        self.engine = chosen.engine(limits)
        self.count = 0
        self.loaded: dict[str, Table] = {}

    def load(self, table: Table, rows: Sequence[Record], key: str = "a key") -> Table:
        """The table under a name of its own, with these rows in the engine. Neighbours share the key of the load. The
        same rows are loaded once: nothing changes them."""
        what = repr((table, rows, key))
        if what in self.loaded and self.engine.has(self.loaded[what].name):
            return self.loaded[what]
        self.count += 1
        loaded = replace(table, name=f"t{self.count}", source=Source(SourceKind.FRAME, frame=frame(table, rows)))
        with patch("discreet.engines.driver.positions", lambda *_: key):
            self.engine.load(loaded, b"")
        self.loaded[what] = loaded
        return loaded

    def run(self, plan: Plan, table: Table, salt: str) -> list[Row]:
        """What the engine gives for the plan, with this salt."""
        with patch.object(secrets, "token_hex", lambda _size: salt):
            return self.engine.run(plan.root, table)

    def totals(self, plan: Plan, table: Table, salt: str) -> dict[tuple[Any, ...], tuple[int, ...]]:
        """Each group's exact totals; with public keys, of groups without rows too."""
        keys, totals = dense(self.run(plan, table, salt), plan)
        assert len(set(keys)) == len(keys)
        return dict(zip(keys, totals, strict=True))

    def vectors(self, plan: Plan, table: Table, salt: str) -> list[dict[tuple[Any, ...], tuple[int, ...]]]:
        """For each part, its exact vectors by group: what noise is added to."""
        keys, totals = dense(self.run(plan, table, salt), plan)
        parts = []
        for part in plan.parts:
            exact = [combined(vector, totals) for vector in part.vectors]
            parts.append({key: tuple(vector[index] for vector in exact) for index, key in enumerate(keys)})
        return parts

    def close(self) -> None:
        self.engine.close()


def priced(plan: Plan) -> Measurement:
    """The plan at some price."""
    return measurement(plan, Price(Fraction(1), Fraction(1, 1000) if plan.private else Fraction(0)))


DAY = datetime.date(2020, 1, 31)
