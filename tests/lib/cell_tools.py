"""A table of persons with three keys, whose cells later questions add up, for the tests of stored answers."""

from __future__ import annotations

from typing import Any

import pandas

import discreet

COUNT = 840
FRAME = pandas.DataFrame(
    {
        "id": range(COUNT),
        "age": [n % 12 for n in range(COUNT)],
        "pay": [None if n % 11 == 0 else n % 101 for n in range(COUNT)],
        "sex": [["f", "m", "m", None, "x"][n % 5] for n in range(COUNT)],
        "ward": [["a", "b", "c", "other"][n % 7 % 4] for n in range(COUNT)],
    }
)
COLUMNS: dict[str, Any] = {
    "id": int,
    "age": {"type": "integer", "min": 0, "max": 11, "nulls": False},
    "pay": {"type": "integer", "min": 0, "max": 100},
    "sex": {"values": ["f", "m"]},
    "ward": {"values": ["a", "b", "c"], "nulls": False},
}
FIRST = "SELECT sex, ward, age, COUNT(*) AS n, AVG(pay) AS p FROM t GROUP BY sex, ward, age"


def table(frame: pandas.DataFrame = FRAME) -> discreet.Table:
    """The declared table."""
    return discreet.Table(frame, person="id", one_row_per_person=True, columns=COLUMNS)
