"""The engine's exact integers against plain Python, where no random limit bites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine_tools import Bench, declaration, planned
from kinds import examples
from neighbour_tools import BOUNDS, LARGE, ROWS, UNITS, A, questions
from reference_tools import totals

MANY = [
    {"one_row_per_person": True},
    {"person": "p", "rows_per_person": 100, "groups_per_person": 100},
]


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data(), unit=st.sampled_from(MANY), rows=ROWS)
def test_the_engine_and_python_agree_on_every_integer(
    bench: Bench, data: st.DataObject, unit: Mapping[str, Any], rows: list[dict[str, Any]]
) -> None:
    """Random questions over random rows: filters, keys, lattices, clips."""
    question = data.draw(questions(unit).filter(lambda text: "max_groups" not in text))
    known = declaration(unit)
    plan = planned(question, known)
    found = bench.totals(plan, bench.load(known.tables["t"], rows), "salt")
    expected = totals(plan.root, known.tables["t"], rows)
    zero = (0,) * len(plan.root.totals)
    assert {key: value for key, value in found.items() if value != zero} == {
        key: value for key, value in expected.items() if value != zero
    }
    if plan.private:
        assert found.keys() == expected.keys()


@pytest.mark.parametrize(
    ("question", "rows", "expected"),
    [
        # the joint mean: a row without a value adds to neither sum, and its width to the third
        ("SELECT AVG(v) FROM t", [A, A | {"v": -99}, A | {"v": 7}], [[(12, 12)]]),
        ("SELECT AVG(v), COUNT(*) FROM t", [A, A | {"v": -99}, A | {"v": 7}], [[(12, 12, 12)]]),
        # halves round up, on both sides of zero; what lies outside is clamped first
        ("SELECT SUM(s) FROM t", [A | {"s": 0.25}, A | {"s": 0.75}, A | {"s": 1e300}], [[(1 + 2 + 6,)]]),
        (f"SELECT SUM(f, {BOUNDS} => (-8, 8)) FROM t", [A | {"f": -0.5 * 2.0**-27}], [[(0,)]]),
        # 64-bit integers at their ends, and beyond what a double holds
        (f"SELECT SUM(u, {BOUNDS} => (-9, 9)) FROM t", [A | {"u": LARGE}], [[(9,)]]),
        (f"SELECT SUM(u, {BOUNDS} => (-9, 9)) FROM t", [A | {"u": -LARGE - 1}], [[(-9,)]]),
        (f"SELECT SUM(u + u, {BOUNDS} => (-9, 9)) FROM t", [A | {"u": LARGE}], [[(9,)]]),
        # a person whose values are all NULL adds nothing to a sum, and the lower bound to a count
        (f"SELECT SUM(v, {BOUNDS} => (3, 9)) FROM t", [A, A], [[(0,)]]),
        (f"SELECT COUNT(v, {BOUNDS} => (2, 9)) FROM t", [A, A], [[(2,)]]),
        # together, in units of 1/2^20: one person; 0 and 2, from the middle of [0, 9] and of [2, 9]
        (
            f"SELECT SUM(v, {BOUNDS} => (3, 9)), COUNT(v, {BOUNDS} => (2, 9)) FROM t",
            [A, A],
            [[(2**20, 2**20 // 9 * -9, 2**20 // 7 * -7)]],
        ),
        # not a number is no value; infinity is the largest one
        (f"SELECT SUM(f - f, {BOUNDS} => (2, 9)) FROM t", [A | {"f": float("inf")}], [[(0,)]]),
        (f"SELECT SUM(f * 2, {BOUNDS} => (-4, 8)) FROM t", [A | {"f": float("inf")}], [[(2**30,)]]),
    ],
)
def test_sums_and_counts_by_hand(bench: Bench, question: str, rows: list[Any], expected: list[Any]) -> None:
    known = declaration({"person": "p", "rows_per_person": 9})
    plan = planned(question, known)
    vectors = bench.vectors(plan, bench.load(known.tables["t"], rows), "salt")
    assert [list(part.values()) for part in vectors] == expected


def test_one_row_of_a_person_is_kept_where_one_is_promised(bench: Bench) -> None:
    known = declaration(UNITS[1])
    plan = planned("SELECT SUM(v), COUNT(DISTINCT p) FROM t", known)
    rows = [A | {"v": 3}, A | {"v": 7}, {"v": 7}, {"p": "b", "v": 1}]
    assert bench.totals(plan, bench.load(known.tables["t"], rows), "salt") in ({(): (2, 4)}, {(): (2, 8)})


def test_keys_with_two_zeros_are_one_group(bench: Bench) -> None:
    """Beside them .5 and NaN, which is NULL; .25 is not listed."""
    columns = {"n": {"type": "number", "values": [0, 0.5]}}
    known = declaration({"one_row_per_person": True}, columns)
    plan = planned("SELECT COUNT(*) FROM t GROUP BY n", known)
    rows = [{"n": 0.0}, {"n": -0.0}, {"n": 0.5}, {"n": float("nan")}, {"n": 0.25}]
    assert list(bench.totals(plan, bench.load(known.tables["t"], rows), "salt").values()) == [(2,), (1,), (1,)]
