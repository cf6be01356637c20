"""Small tables in a real engine, with a load's key and a question's salt that the test knows.

A row has a bit of its own among the person's rows, so a sum over a person tells which rows were kept. The column `q`
repeats the person, so that a question may group by it.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pyarrow

from discreet.catalog import Table, declare
from discreet.catalog.model import EngineLimits
from discreet.engines.duckdb.driver import DuckDB
from discreet.plan.measurement import Plan
from discreet.sql import lower
from discreet.trusted.ring_a.table import Source, SourceKind

KINDS: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "integer": (pyarrow.int64(), [0, -1, 1, -(2**63) + 1, 2**63 - 1]),
    "text": (pyarrow.string(), ["", "a", "A", "a ", "ü\x00"]),
    "date": (pyarrow.date32(), [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)]),
    "boolean": (pyarrow.bool_(), [False, True]),
}
"""Types of a person's id, and awkward ids of each."""

BITS = 14
CLIP = "contribution_bounds_per_group => (0, 16383)"


@dataclass(frozen=True)
class Row:
    """Whose it is, what it is grouped by, and the place of its bit."""

    person: Any
    group: str | None
    bit: int


def known(rows: int, groups: int, kind: str = "integer", values: Sequence[str] | None = None) -> Any:
    """The declaration of a table `t`."""
    key = {"type": "text"} | ({"values": list(values)} if values else {})
    columns = {
        "p": {"type": kind},
        "q": {"type": "integer"},
        "r": key,
        "bit": {"type": "integer", "min": 0, "max": BITS - 1},
        "v": {"type": "integer", "min": 0, "max": 2**BITS - 1},
    }
    table = {
        "source": "nowhere.csv",
        "columns": columns,
        "person": "p",
        "rows_per_person": rows,
        "groups_per_person": groups,
    }
    return declare({"budget": {"epsilon": 1000, "delta": Fraction(1, 1000)}, "tables": {"t": table}})


def planned(question: str, declaration: Any) -> Plan:
    return lower(question, declaration).plan


class Bench:
    """One engine for many tables."""

    def __init__(self, limits: EngineLimits | None = None) -> None:
        self.engine = DuckDB(limits or EngineLimits(memory_gib=4, seconds=60))
        self.count = 0

    def load(self, table: Table, rows: Sequence[Row], key: str = "key", kind: str = "integer") -> Table:
        """The table under a name of its own. `q` numbers ids by their place in KINDS; integers stand for themselves."""
        self.count += 1
        places = {value: place for place, value in enumerate(KINDS[kind][1])}
        frame = pyarrow.table(
            {
                "p": pyarrow.array([row.person for row in rows], KINDS[kind][0]),
                "q": pyarrow.array([places.get(row.person, row.person) for row in rows], pyarrow.int64()),
                "r": pyarrow.array([row.group for row in rows], pyarrow.string()),
                "bit": pyarrow.array([row.bit for row in rows], pyarrow.int64()),
                "v": pyarrow.array([1 << row.bit for row in rows], pyarrow.int64()),
            }
        )
        loaded = replace(table, name=f"t{self.count}", source=Source(SourceKind.FRAME, frame=frame))
        with patch("discreet.engines.driver.positions", lambda *_: key):
            self.engine.load(loaded, b"")
        return loaded

    def totals(self, plan: Plan, table: Table, salt: str) -> dict[tuple[Any, ...], tuple[int, ...]]:
        """Each group's exact totals, of groups that hold a row."""
        with patch.object(secrets, "token_hex", lambda _size: salt):
            return dict(self.engine.run(plan.root, table))

    def scalar(self, sql: str) -> Any:
        assert self.engine._process is not None
        return self.engine._process.call("run", sql, seconds=300)["rows"][0][0]

    def close(self) -> None:
        self.engine.close()
