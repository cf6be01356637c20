"""What the tests of the face share: one table in every kind of file, its declaration, what a command said."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

import discreet
from discreet.ledger import TOTAL, Ledger

BUDGET = "1e25"
EXACT = "1e20"
"""A price at which noise is zero, whatever is drawn."""

VISITS = """
CREATE TABLE visits AS
SELECT
    'p' || (i % 60) AS person,
    ['north', 'south', 'east', 'Zürich'][1 + (i * 7 + i // 60) % 5] AS city,
    CASE WHEN i % 11 = 0 THEN NULL ELSE i % 3 = 0 END AS smoker,
    CASE WHEN i % 13 = 0 THEN NULL ELSE (i * 5) % 24 - 2 END AS age,
    CASE WHEN i % 17 = 0 THEN NULL ELSE ((i * 31) % 700) * 0.25 - 10 END AS cost,
    (DATE '2024-01-01' + CAST((i * 3) % 40 AS INTEGER)) AS day,
    (TIMESTAMP '2024-01-01 00:00:00' + to_hours(CAST(i % 90 AS INTEGER))) AS moment,
    'note ' || (i % 4) AS note
FROM range(600) AS numbers(i)
"""
"""600 rows of 60 persons, with NULLs, cities that nobody declared, and values outside their bounds."""

COLUMNS: dict[str, Any] = {
    "person": str,
    "city": {"type": "text", "values": ["north", "south", "nowhere", "Zürich"], "nulls": False},
    "smoker": bool,
    "age": {"type": "integer", "min": 0, "max": 20},
    "cost": {"type": "number", "min": 0, "max": 150, "step": 0.25},
    "day": {"type": "date", "values": [date(2024, 1, day) for day in (1, 4, 5)]},
    "moment": {"type": "timestamp"},
    "note": str,
}

TRUTH = """
CREATE TABLE visits AS SELECT * REPLACE (
    CASE WHEN age IS NULL THEN NULL ELSE greatest(0, least(20, age)) END AS age,
    CASE WHEN cost IS NULL THEN NULL ELSE greatest(0.0, least(150.0, cost))::DOUBLE END AS cost
) FROM raw.visits
"""
"""The same table as the declaration sees it: clamped."""


@dataclass(frozen=True)
class Data:
    """One table in every kind of file, and a plain connection on what the declaration makes of it."""

    folder: Path
    truth: duckdb.DuckDBPyConnection

    @property
    def csv(self) -> Path:
        return self.folder / "visits.csv"

    @property
    def parquet(self) -> Path:
        return self.folder / "visits.parquet"

    @property
    def database(self) -> str:
        return f"{self.folder / 'visits.duckdb'}::visits"


def visits(source: Any, **bounds: Any) -> discreet.Table:
    """The table of visits, with bounds a person that do not bite."""
    return discreet.Table(
        source, columns=COLUMNS, person="person", **({"rows_per_person": 40, "groups_per_person": 40} | bounds)
    )


CLINIC = """
[budget]
epsilon = 1.0
delta = 1e-6

[question]
epsilon = 0.1

[tables.visits]
source = "visits.csv"
person = "person"
rows_per_person = 20
groups_per_person = 4
[tables.visits.columns]
person = { type = "text" }
city = { type = "text", values = ["north", "south", "nowhere", "Zürich"], nulls = false }
smoker = { type = "boolean" }
age = { type = "integer", min = 0, max = 20 }
cost = { type = "number", min = 0, max = 150, step = 0.25 }
note = { type = "text" }
"""


def strict(text: str | bytes) -> Any:
    """Reads JSON as others do: Python's own Infinity and NaN are none. Raises ValueError."""

    def none(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=none)


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return strict(self.out)


Command = Callable[..., Said]


def end_engine(curator: discreet.Curator) -> None:
    """Kills the engine's process, and returns once it is dead."""
    process = curator._engine._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    while process.usable:
        time.sleep(0.001)


def spent(ledger: Path | discreet.Curator, account: str = TOTAL) -> Fraction:
    """What an account has spent of its ε, as the ledger says after a walk over all of it."""
    if isinstance(ledger, discreet.Curator):
        found = ledger.ledger.verify().accounts[account].spent.pure
    else:
        opened = Ledger(ledger)
        found = opened.verify().accounts[account].spent.pure
        opened.close()
    assert found is not None
    return found
