"""HISTOGRAM(x, n): a row for each bin between the declared bounds, in which each row with a value is counted once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from kinds import examples

EXACT = 10**12
CHANCE = random.Random(12)
ROWS: list[dict[str, Any]] = [
    {
        "id": place,
        "n": CHANCE.randrange(-25, 130) if CHANCE.random() > 0.1 else None,
        "few": CHANCE.randrange(1, 6),
        "x": CHANCE.randrange(501) / 100,
        "real": CHANCE.random() * 2 - 1,
        "kind": CHANCE.choice(["u", "v", "w"]),
        "ok": CHANCE.choice([True, False, None]),
    }
    for place in range(600)
]
COLUMNS: dict[str, Any] = {
    "id": int,
    "n": {"type": "integer", "min": 0, "max": 99},
    "few": {"type": "integer", "min": 1, "max": 5, "nulls": False},
    "x": {"type": "number", "min": 0, "max": 5, "step": 0.01, "nulls": False},
    "real": {"type": "number", "min": -1, "max": 1, "nulls": False},
    "kind": {"type": "text", "values": ["u", "v", "w"], "nulls": False},
    "ok": bool,
}


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    table = discreet.Table(pyarrow.Table.from_pylist(ROWS), person="id", one_row_per_person=True, columns=COLUMNS)
    with discreet.Curator({"t": table}, epsilon=10**25) as one:
        yield one


def rows(curator: discreet.Curator, question: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in curator.ask(question, epsilon=EXACT).rows]


@settings(max_examples=examples(15), deadline=None, derandomize=True)
@given(bins=st.integers(1, 40), column=st.sampled_from(["n", "x", "real", "few"]))
def test_each_value_is_in_the_bin_that_begins_below_it(curator: discreet.Curator, bins: int, column: str) -> None:
    """What lies outside the bounds counts in the first bin or the last."""
    low, end = {"n": (0, 100), "x": (0, Fraction(501, 100)), "real": (-1, 1), "few": (1, 6)}[column]
    expected = Counter[int]()
    for row in ROWS:
        if (value := row[column]) is not None:
            exact = Fraction(round(value * 100), 100) if column == "x" else Fraction(value)
            expected[min(max(int((exact - low) * bins // (end - low)), 0), bins - 1)] += 1
    found = rows(curator, f"SELECT HISTOGRAM({column}, {bins}) FROM t")
    assert [bin for bin, _ in found] == pytest.approx(
        [float(low + k * Fraction(end - low) / bins) for k in range(bins)]
    )
    assert [count for _, count in found] == [expected[k] for k in range(bins)]


def test_without_a_number_there_are_ten_bins_or_one_for_each_value(curator: discreet.Curator) -> None:
    assert [bin for bin, _ in rows(curator, "SELECT HISTOGRAM(n) FROM t")] == list(range(0, 100, 10))
    assert [bin for bin, _ in rows(curator, "SELECT HISTOGRAM(few) FROM t")] == [1, 2, 3, 4, 5]
    kinds = Counter(row["kind"] for row in ROWS)
    assert dict(rows(curator, "SELECT HISTOGRAM(kind) FROM t")) == kinds
    truths = Counter(row["ok"] for row in ROWS if row["ok"] is not None)
    assert dict(rows(curator, "SELECT HISTOGRAM(ok) FROM t")) == truths


def test_it_stands_beside_keys_and_in_other_queries(curator: discreet.Curator) -> None:
    expected = Counter((row["kind"], row["few"] > 3) for row in ROWS)
    found = rows(curator, "SELECT HISTOGRAM(few, 5) AS n, kind FROM t WHERE few IN (1, 5) GROUP BY 2 ORDER BY 1, 2")
    assert [one[0] for one in found] == sorted(one[0] for one in found)
    assert {(kind, n) for bin, n, kind in found if bin == 5} == {
        (kind, sum(row["few"] == 5 for row in ROWS if row["kind"] == kind)) for kind, _ in expected
    }
    above = rows(curator, "SELECT SUM(n) AS n FROM (SELECT HISTOGRAM(few) AS n FROM t) AS h WHERE bin > 3")
    assert above == [(sum(row["few"] > 3 for row in ROWS),)]
    levels = rows(curator, "SELECT kind, HISTOGRAM(few) AS n FROM t GROUP BY ROLLUP (kind)")
    assert len(levels) == 4 * 5


def test_it_is_one_question_with_intervals(curator: discreet.Curator) -> None:
    answer = curator.ask("SELECT HISTOGRAM(few) FROM t", epsilon=1)
    assert answer.columns == ["bin", "count"]
    assert answer.cost.epsilon == 1
    assert all("count" in one and "bin" not in one for one in answer.intervals)
    grouped = "SELECT LEAST(GREATEST(WIDTH_BUCKET(few, 1, 6, 5), 1), 5) AS k, COUNT(*) AS n FROM t GROUP BY k"
    assert [row["n"] for row in curator.ask(grouped, epsilon=EXACT)] == [
        count for _, count in rows(curator, "SELECT HISTOGRAM(few) FROM t")
    ]
