"""0.0 and -0.0 are one value wherever a question groups or compares, whichever comes first."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import discreet

PERSONS = 3_000
BOTH = "SELECT p, f AS u FROM t WHERE k > {n} UNION ALL SELECT p, -f AS u FROM t"
COUNTED = "SELECT COUNT(CASE WHEN POWER(u, -1) > 0 THEN 1 END) AS n FROM "
FORMS = [
    COUNTED + "(SELECT p, MAX(u) AS u FROM ({both}) x GROUP BY p) q",
    COUNTED + "(SELECT p, MIN(u) AS u FROM ({both}) x GROUP BY p) q",
    COUNTED + "(SELECT p, u FROM ({both}) x GROUP BY p, u) q",
    "SELECT COUNT(CASE WHEN ATAN2(u, -1) > 0 THEN 1 END) AS n FROM (SELECT DISTINCT p, u FROM ({both}) x) q",
]


@pytest.mark.parametrize("form", FORMS)
def test_which_zero_stands_for_a_group_does_not_follow_from_the_order_of_rows(form: str, tmp_path: Path) -> None:
    """Asked again with a condition that changes no row. Each person has both zeros in one group: without their being
    one, the same question counts everybody or nobody, from run to run."""
    file = tmp_path / "t.parquet"
    duckdb.sql(f"COPY (SELECT i AS p, 0.0::DOUBLE AS f, i % 7 AS k FROM range({PERSONS}) r(i)) TO '{file}'")
    columns = {"p": {"type": "integer"}, "f": {"type": "number", "min": -5, "max": 5}, "k": {"type": "integer"}}
    table = discreet.Table(str(file), person="p", rows_per_person=3, columns=columns)
    with discreet.Curator({"t": table}, epsilon=1e30) as curator:
        counts = [curator.ask(form.format(both=BOTH.format(n=-n)), epsilon=1e20).rows[0]["n"] for n in range(2, 8)]
    assert counts == [PERSONS] * len(counts)
