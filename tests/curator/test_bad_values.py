"""Values that nobody declared, in the rows themselves: they are clamped, unknown or left out, and fail no question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discreet import Curator, Table
from face_tools import BUDGET, EXACT

Rows = list[dict[str, Any]]
LARGEST = 2**63 - 1


def ask(source: Any, question: str, columns: dict[str, Any], **whose: Any) -> Rows:
    table = Table(source, columns=columns, **(whose or {"one_row_per_person": True}))
    with Curator({"t": table}, epsilon=BUDGET) as curator:
        return curator.ask(question, epsilon=EXACT).rows


def test_numbers_that_are_none() -> None:
    """NaN is unknown, infinities are outside, and −0 is 0."""
    frame = pd.DataFrame({"x": [1.0, np.nan, np.inf, -np.inf, -0.0, 99.0, None]})
    columns = {"x": {"type": "number", "min": -2, "max": 5, "step": 1}}
    question = "SELECT COUNT(*) AS n, COUNT(x) AS m, SUM(x) AS s, AVG(x) AS a FROM t"
    assert ask(frame, question, columns) == [{"n": 7, "m": 5, "s": 9, "a": pytest.approx(1.8)}]
    question = "SELECT COUNT(*) AS n FROM t WHERE x = 0 AND -x = 0 AND NOT x < 0"
    assert ask(frame, question, columns) == [{"n": 1}]
    question = "SELECT COUNT(1 / x) AS n, COUNT(x * 1e299 * 1e299 - x * 1e299 * 1e299) AS m FROM t"
    assert ask(frame, question, {"x": float}) == [{"n": 4, "m": 1}]


def test_zero_is_one_key() -> None:
    frame = pd.DataFrame({"x": [-0.0, 0.0, 0.1, 0.3, np.nan, np.inf]})
    columns = {"x": {"type": "number", "values": [0, 0.1, 7]}}
    rows = ask(frame, "SELECT x, COUNT(*) AS n FROM t GROUP BY x", columns)
    assert [(row["x"], row["n"]) for row in rows] == [(0, 2), (0.1, 1), (7, 0), (None, 1)]


def test_the_largest_integers() -> None:
    frame = pa.table({"x": [LARGEST, -LARGEST, -LARGEST - 1, 1, None]})
    whole = {"type": "integer", "min": -LARGEST, "max": LARGEST}
    question = "SELECT COUNT(*) AS n, COUNT(x) AS m, SUM(x) AS s FROM t WHERE x > 0"
    (row,) = ask(frame, question, {"x": whole})
    assert (row["n"], row["m"], row["s"]) == (2, 2, pytest.approx(2**63, rel=1e-6))
    question = "SELECT COUNT(*) AS n, COUNT(x + 1) AS m FROM t WHERE -x > 9e18 AND ABS(x) > 9e18 AND x * x > 1e37"
    assert ask(frame, question, {"x": int}) == [{"n": 2, "m": 2}]
    question = "SELECT SUM(x * x, contribution_bounds_per_group => (0, 100)) AS s FROM t"
    assert ask(frame, question, {"x": int}) == [{"s": 301}]
    assert ask(frame, "SELECT x, COUNT(*) AS n FROM t GROUP BY x", {"x": [LARGEST, 7]}) == [
        {"x": LARGEST, "n": 1},
        {"x": 7, "n": 0},
        {"x": None, "n": 1},
    ]


def test_what_lies_outside_its_bounds_is_clamped(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "i,d,m\n-5,1850-01-01,1850-01-01\n7,2020-01-01,2020-01-01 12:00:00\n500,3000-01-01,infinity\n,-infinity,\n",
        "utf-8",
    )
    columns = {
        "i": (0, 9),
        "d": {"type": "date", "min": pd.Timestamp("1900-01-01").date(), "max": pd.Timestamp("2026-12-31").date()},
        "m": {"type": "timestamp", "max": pd.Timestamp("2026-12-31").to_pydatetime()},
    }
    source = tmp_path / "t.csv"
    assert ask(source, "SELECT SUM(i) AS s, COUNT(i) AS n FROM t WHERE i >= 0 AND i <= 9", columns) == [
        {"s": 16, "n": 3}
    ]
    assert ask(source, "SELECT COUNT(*) AS n FROM t WHERE d = '1900-01-01'", columns) == [{"n": 2}]
    assert ask(source, "SELECT COUNT(*) AS n FROM t WHERE d = '2026-12-31'", columns) == [{"n": 1}]
    assert ask(source, "SELECT COUNT(m) AS n FROM t WHERE m <= '2026-12-31'", columns) == [{"n": 3}]


def test_keys_outside_the_declared_values() -> None:
    frame = pa.table({"k": ["a", "b", "A", " a", "", None, "zzz"], "b": [True, None, True, False, True, True, True]})
    assert ask(frame, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", {"k": ["a", "c"]}) == [
        {"k": "a", "n": 1},
        {"k": "c", "n": 0},
        {"k": None, "n": 1},
    ]
    assert ask(frame, "SELECT b, COUNT(*) AS n FROM t GROUP BY b", {"b": {"values": [True]}}) == [
        {"b": True, "n": 5},
        {"b": None, "n": 1},
    ]
    # the rows stay in the table for other questions
    assert ask(frame, "SELECT COUNT(*) AS n FROM t WHERE k <> 'a'", {"k": ["a", "c"]}) == [{"n": 5}]


@pytest.mark.parametrize("kind", ["text", "integer"])
def test_rows_of_nobody(kind: str) -> None:
    """A person id that is NULL names nobody: such rows are in no answer, not even as one more person."""
    ids = [1, 1, None, 2, None]
    persons = pa.array(ids if kind == "integer" else [None if one is None else f"p{one}" for one in ids])
    frame = pa.table({"p": persons, "x": [1, 2, 3, 4, 5]})
    columns = {"p": None, "x": (0, 9)}
    question = "SELECT COUNT(*) AS n, COUNT(DISTINCT p) AS p, SUM(x) AS s FROM t"
    assert ask(frame, question, columns, person="p", rows_per_person=5) == [{"n": 3, "p": 2, "s": 7}]
    assert ask(frame, question, columns, person="p", one_row_per_person=True) in (
        [{"n": 2, "p": 2, "s": 5}],
        [{"n": 2, "p": 2, "s": 6}],
    )


def test_two_rows_of_a_person_where_one_was_promised() -> None:
    """One row stays: the promise is kept whatever the source holds."""
    frame = pa.table({"p": ["a", "a", "b", "b", "b"], "x": [1, 2, 3, 4, 5], "k": ["u", "v", "u", "u", "v"]})
    columns = {"p": None, "x": (0, 9), "k": ["u", "v"]}
    whose = {"person": "p", "one_row_per_person": True}
    (row,) = ask(frame, "SELECT COUNT(*) AS n, SUM(x) AS s FROM t", columns, **whose)
    assert row["n"] == 2
    assert row["s"] in {one + other for one in (1, 2) for other in (3, 4, 5)}
    rows = ask(frame, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", columns, **whose)
    assert sum(row["n"] for row in rows) == 2


def test_one_person_with_a_million_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.execute(
        "COPY (SELECT 'crowd' || (i % 100) AS p, 'k' || (i % 3) AS k, 1 AS x FROM range(300) AS a(i)"
        " UNION ALL SELECT 'one', 'k' || (i % 1000), 1000 FROM range(1000000) AS b(i))"
        f" TO '{path}'"
    )
    table = Table(
        path,
        columns={"p": None, "k": {"values": ["k0", "k1", "k2"]}, "x": (0, 1000)},
        person="p",
        rows_per_person=5,
        groups_per_person=2,
    )
    with Curator({"t": table}, epsilon=BUDGET) as curator:
        assert curator.ask("SELECT COUNT(*) AS n, SUM(x) AS s FROM t", epsilon=EXACT).rows == [{"n": 305, "s": 5300}]
        rows = curator.ask("SELECT k, COUNT(DISTINCT p) AS n FROM t GROUP BY k", epsilon=EXACT).rows
        assert (
            200 <= sum(row["n"] for row in rows) <= 202
        )  # the crowd's two groups each; few of one's stored rows count
        clamped = "SELECT SUM(x, contribution_bounds_per_group => (0, 50)) AS s FROM t"
        assert curator.ask(clamped, epsilon=EXACT).rows == [{"s": 350}]


def test_text_of_every_kind() -> None:
    texts = [
        "it's",
        'say "x"',
        "a\nb",
        "tab\t",
        "ünï",
        "😀",
        "null",
        "NULL",
        "%",
        "_",
        "\\",
        "'; DROP TABLE t; --",
        "x" * 9000,
    ]
    frame = pa.table({"k": texts})
    rows = ask(frame, "SELECT k, COUNT(*) AS n FROM t GROUP BY k", {"k": texts})
    assert rows == [*({"k": text, "n": 1} for text in texts), {"k": None, "n": 0}]
    table = Table(frame, columns={"k": {"type": "text", "length": 9000}}, one_row_per_person=True)
    with Curator({"t": table}, epsilon=BUDGET) as curator:
        for text in texts:
            quoted = text.replace("'", "''")
            question = f"SELECT COUNT(*) AS n FROM t WHERE k = '{quoted}'"
            assert curator.ask(question, epsilon=EXACT).rows == [{"n": 1}], text
