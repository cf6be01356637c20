"""Arithmetic on aggregates: values, intervals, and what has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pandas = pytest.importorskip("pandas")

import discreet  # noqa: E402
from discreet.release.formula import computed  # noqa: E402
from discreet.release.render import estimate  # noqa: E402
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Literal  # noqa: E402
from discreet.trusted.ring_a.table import Type  # noqa: E402


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    frame = pandas.DataFrame({"g": ["a", "a", "b"] * 100, "x": [1, 2, 3] * 100, "y": [2.0, 4.0, 8.0] * 100})
    columns = {"g": {"values": ["a", "b"], "nulls": False}, "x": {"type": "integer", "min": 0, "max": 5}, "y": (0, 10)}
    with discreet.Curator(
        {"t": discreet.Table(frame, one_row_per_person=True, columns=columns)}, epsilon=1e25, delta=1e-6
    ) as curator:
        yield curator


VALUES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("COUNT(*) + 1 AS n, COUNT(*) FROM t", [(301, 300)]),
    ("g, 100.0 * SUM(x) / SUM(y) AS r FROM t GROUP BY g ORDER BY r", [("b", 37.5), ("a", 50.0)]),
    ("ROUND(AVG(y), 1), ROUND(AVG(x)), -SUM(x) FROM t", [(4.7, 2.0, -600)]),
    ("SUM(x) / COUNT(*), STDDEV_POP(x) / AVG(x) FROM t", [(2.0, (2 / 3) ** 0.5 / 2)]),
    ("MAX(x) - MIN(x), CASE WHEN COUNT(*) > 3 THEN 1 ELSE 0 END, 1 / (COUNT(*) - 300) FROM t", [(2, 1, None)]),
    ("g, COUNT(*) * 2 AS n FROM t GROUP BY g HAVING n > 300", [("a", 400)]),
]


@pytest.mark.parametrize(("question", "rows"), VALUES, ids=[question[:50] for question, _ in VALUES])
def test_what_is_computed(curator: discreet.Curator, question: str, rows: list[tuple[Any, ...]]) -> None:
    found = [tuple(row.values()) for row in curator.ask(f"SELECT {question}", epsilon=1e20).rows]
    assert found == [tuple(pytest.approx(v) if isinstance(v, float) else v for v in row) for row in rows]


def test_intervals_hold(curator: discreet.Curator) -> None:
    missed = 0
    for turn in range(60):
        release = curator.ask(f"SELECT SUM(x) / COUNT(*) AS r FROM t WHERE {turn} >= 0", epsilon=0.2)
        low, high = release.intervals[0]["r"]
        missed += not low <= 2 <= high
    assert missed <= 15  # 3 expected at most: P(more than 15 of 60 at 5 %) < 1e-6


def test_a_divisor_that_may_be_zero_has_no_interval() -> None:
    """Worked out on made-up columns: in a real answer the noise decides whether the interval spans 0."""
    divisor = Call("subtract", (ColumnOf("n", Type.NUMBER), Literal(300, Type.INTEGER)), Type.NUMBER)
    quotient = Call("divide", (Literal(1, Type.INTEGER), divisor), Type.NUMBER)
    values, intervals = computed(quotient, {"n": ([302, 310], [(298, 306), (305, 315)])}, 2)
    assert values == [0.5, 0.1]
    assert intervals is not None
    assert intervals[0][0] < -1e300
    assert intervals[0][1] > 1e300
    assert intervals[1] == (pytest.approx(1 / 15), 0.2)
    assert estimate(0.5, intervals[0]) == "0.5 ±any"


@pytest.mark.parametrize("formula", ["x + COUNT(*)", "g || COUNT(*)", "MODE(g) + 1", "COUNT(*) + SUM(SUM(x))"])
def test_what_is_refused(curator: discreet.Curator, formula: str) -> None:
    with pytest.raises(discreet.QuestionError):
        curator.ask(f"SELECT {formula} FROM t", epsilon=1)
