"""Random tables and questions over one table, and what a person who leaves changes in the engine's exact vectors."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from discreet.plan.measurement import Plan
from discreet.trusted.ring_a.sensitivity import sensitivity
from engine_tools import Bench, Record

LARGE = 2**63 - 1
ROW = st.fixed_dictionaries(
    {
        "p": st.sampled_from(["a", "a", "b", "c", "", None]),
        "g": st.sampled_from(["x", "y", "z", "other", None]),
        "h": st.sampled_from(["ü", "it's", "", "\\", "x", None]),
        "k": st.sampled_from([-1, 0, 1, 2, 3, 9, None]),
        "b": st.sampled_from([True, False, None]),
        "v": st.sampled_from([-LARGE - 1, -5, -1, 0, 2, 7, 8, LARGE, None]),
        "w": st.sampled_from([-math.inf, -2.5, -0.0, 0.1, 3.75, 10.0, 1e308, math.inf, math.nan, None]),
        "s": st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.9999999999999996, 3.0, 1e300, None]),
        "u": st.sampled_from([-LARGE - 1, -(2**53) - 1, -1, 0, 1, 2**53 + 1, LARGE, None]),
        "f": st.sampled_from(
            [-math.inf, -1e308, -1e-308, -0.0, 1e-9, 0.5, 2**53 + 2.0, 1e308, math.inf, math.nan, None]
        ),
        "d": st.sampled_from([datetime.date(1, 1, 1), datetime.date(2020, 1, 31), datetime.date(9999, 12, 31), None]),
    }
)
ROWS = st.lists(ROW, min_size=1, max_size=10)
UNITS: Sequence[Mapping[str, Any]] = (
    {"one_row_per_person": True},
    {"one_row_per_person": True, "person": "p"},
    {"person": "p", "rows_per_person": 1},
    {"person": "p", "rows_per_person": 2},
    {"person": "p", "rows_per_person": 3, "groups_per_person": 2},
    {"person": "p", "rows_per_person": 2, "groups_per_person": 5},
    {"person": "p", "rows_per_person": 50, "groups_per_person": 1},
)
BOUNDS = "contribution_bounds_per_group"
AGGREGATES = (
    "COUNT(*)",
    "COUNT(v)",
    "COUNT(w / v)",
    "COUNT(CASE WHEN b THEN h END)",
    "SUM(v)",
    "SUM(w)",
    "SUM(s)",
    "SUM(v * w - k)",
    "SUM(ABS(v) / (k + 1))",
    "SUM(COALESCE(v, k, 3))",
    "SUM(CASE WHEN w > 1 THEN -v ELSE 0.25 END)",
    "AVG(v)",
    "AVG(w)",
    "AVG(s)",
    "AVG(v + w)",
    f"COUNT(*, {BOUNDS} => (0, 2))",
    f"COUNT(*, {BOUNDS} => (2, 3))",
    f"COUNT(v, {BOUNDS} => (5, 5))",
    f"SUM(v, {BOUNDS} => (-2, 3))",
    f"SUM(v, {BOUNDS} => (4, 9))",
    f"SUM(u, {BOUNDS} => (-7, -3))",
    f"SUM(f, {BOUNDS} => (-0.75, 1e-3))",
    f"SUM(f * f, {BOUNDS} => (0, 1e9))",
    f"SUM(u / f, {BOUNDS} => (0, 1))",
    f"SUM(s, {BOUNDS} => (0.5, 2))",
)
KEYS = ("g", "h", "k", "b", "d")
FILTERS = ("", "WHERE v > 0", "WHERE w < 5 OR b", "WHERE h LIKE '%' AND NOT k = 1", "WHERE p <> 'b'", "WHERE u IS NULL")


@st.composite
def questions(draw: st.DrawFn, unit: Mapping[str, Any]) -> str:
    persons = ["COUNT(DISTINCT p)"] if unit.get("person") else []
    chosen = draw(st.lists(st.sampled_from([*AGGREGATES, *persons]), min_size=1, max_size=4, unique=True))
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique=True))
    groups = draw(st.sampled_from(["", "", "1", "2", "4"]))
    head = "SELECT "
    if groups and not any(aggregate.startswith("AVG") for aggregate in chosen):
        head += f"WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = {groups}) "
    tail = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"{head}{', '.join(chosen)} FROM t {draw(st.sampled_from(FILTERS))}{tail}"


@st.composite
def cases(draw: st.DrawFn) -> tuple[Mapping[str, Any], str, list[Record], int, str]:
    unit = draw(st.sampled_from(UNITS))
    rows = draw(ROWS)
    return unit, draw(questions(unit)), rows, draw(st.integers(0, len(rows) - 1)), draw(st.sampled_from("0123"))


def changes(bench: Bench, plan: Plan, table: Any, rows: list[Record], gone: list[Record], salt: str) -> list[Any]:
    """For each part, the norm of the change in each group that changes at all: ℓ1; of joint parts the largest of
    their blocks' ℓ1 norms."""
    left, right = (
        bench.load(table, rows),
        bench.load(table, [row for row in rows if not any(row is one for one in gone)]),
    )
    parts = []
    sides = bench.vectors(plan, left, salt), bench.vectors(plan, right, salt)
    for part, before, after in zip(plan.parts, *sides, strict=True):
        norms = []
        for key in before.keys() | after.keys():
            none = (0,) * len(next(iter((before | after).values())))
            change = [abs(one - two) for one, two in zip(before.get(key, none), after.get(key, none), strict=True)]
            ends = list(itertools.accumulate(part.blocks, initial=0)) if part.axes else [0, len(change)]
            norms.append(max(sum(change[start:stop]) for start, stop in itertools.pairwise(ends)))
        parts.append([norm for norm in norms if norm])
    return parts


def hold(plan: Plan, norms: list[list[int]]) -> None:
    for part, changed in zip(plan.parts, norms, strict=True):
        bound = sensitivity(plan.root, part)
        assert len(changed) <= bound.cells
        assert max(changed, default=0) <= bound.each
        assert sum(changed) <= bound.l1
        assert sum(norm * norm for norm in changed) <= bound.l2_squared


R2 = {"person": "p", "rows_per_person": 2}
A = {"p": "a", "g": "x"}
