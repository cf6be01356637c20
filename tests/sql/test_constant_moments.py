"""Constant dates and timestamps are computed when a question is read: as the engine computes them of a column."""

from __future__ import annotations

import duckdb
import pytest

from discreet.sql.dates import _begins

UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
MOMENTS = (
    "DATE '2020-02-29'",
    "DATE '1969-12-31'",
    "TIMESTAMP '2020-12-31 23:59:58.75'",
    "TIMESTAMP '1969-01-01 00:00:00'",
)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_constant_is_truncated_as_the_engine_does_it(unit: str, moment: str) -> None:
    kind = moment.partition(" ")[0]
    ((value, begins),) = duckdb.sql(f"SELECT {moment}, CAST(DATE_TRUNC('{unit}', {moment}) AS {kind})").fetchall()
    assert _begins(unit, value) == begins
