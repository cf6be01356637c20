"""What one person changes in the exact vectors, in the real engine, against the sensitivity that is paid for."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from engine_tools import Bench, Record, declaration, planned
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from discreet.plan.measurement import Plan
from discreet.trusted.ring_a.nodes import Aggregate, Clip, LimitGroups, LimitRows, PersonGroup, Project
from discreet.trusted.ring_a.sensitivity import sensitivity
from kinds import examples

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


@settings(max_examples=examples(250), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(case=cases())
@example(case=(R2, f"SELECT COUNT(*, {BOUNDS} => (5, 5)), SUM(v) FROM t", [A], 0, "0"))
@example(case=(R2, f"SELECT COUNT(v, {BOUNDS} => (5, 9)), AVG(w) FROM t GROUP BY g", [A, A | {"g": "y"}], 0, "0"))
@example(case=(R2, f"SELECT SUM(v, {BOUNDS} => (4, 9)), COUNT(*) FROM t GROUP BY h", [A | {"v": 1, "h": "x"}], 0, "0"))
def test_one_person_changes_no_more_than_the_sensitivity(
    bench: Bench, case: tuple[Mapping[str, Any], str, list[Record], int, str]
) -> None:
    """Random tables with every awkward value, all plan shapes, one person taken out, the same salt on both sides."""
    unit, question, rows, index, salt = case
    rows = [dict(row) for row in rows]
    known = declaration(unit)
    plan = planned(question, known)
    person = rows[index].get("p")
    gone = [row for row in rows if row.get("p") == person] if unit.get("person") else [rows[index]]
    hold(plan, changes(bench, plan, known.tables["t"], rows, gone, salt))


def shape(plan: Aggregate) -> str:
    """The kinds of a plan's nodes, from the top."""
    names, node = [], plan
    while not isinstance(node, Project):
        names.append(type(node).__name__)
        node = node.child
    return " ".join(names)


EVERYWHERE = [
    {"p": "a", "g": g, "h": h, "k": k, "b": True, "v": 7, "w": 10.0, "s": 3.0, "u": 100, "f": 1e9}
    for g in "xyz"
    for h in "uv"
    for k in range(4)
]
"""One person who touches as many groups as there are, with the largest values there are."""


@pytest.mark.parametrize(
    ("unit", "question", "nodes"),
    [
        ({"one_row_per_person": True}, "SELECT COUNT(*), SUM(v) FROM t GROUP BY g", [Aggregate]),
        (R2, "SELECT SUM(v) FROM t GROUP BY k", [Aggregate, LimitRows]),
        (R2, "SELECT COUNT(DISTINCT p) FROM t", [Aggregate, Clip, PersonGroup]),
        (R2, "SELECT COUNT(DISTINCT p) FROM t GROUP BY k", [Aggregate, Clip, LimitGroups, PersonGroup]),
        (R2, "SELECT COUNT(*), COUNT(DISTINCT p) FROM t GROUP BY k", [Aggregate, Clip, PersonGroup, LimitRows]),
        (R2, "SELECT SUM(w) FROM t GROUP BY h", [Aggregate, Clip, PersonGroup, LimitRows]),
        (
            {"person": "p", "rows_per_person": 9, "groups_per_person": 2},
            "SELECT SUM(w), AVG(v), COUNT(*) FROM t GROUP BY g, k",
            [Aggregate, LimitRows],
        ),
        (
            {"person": "p", "rows_per_person": 9, "groups_per_person": 2},
            f"SELECT SUM(u, {BOUNDS} => (0, 60)), COUNT(DISTINCT p) FROM t GROUP BY g, h",
            [Aggregate, Clip, LimitGroups, PersonGroup],
        ),
        (R2, f"SELECT COUNT(*, {BOUNDS} => (3, 3)), AVG(v) FROM t", [Aggregate, Clip, PersonGroup, LimitRows]),
    ],
)
def test_the_bounds_are_met_by_the_worst_person(
    bench: Bench, unit: Mapping[str, Any], question: str, nodes: list[type]
) -> None:
    """A person who is everywhere, beside nine others: the change is within the bounds and reaches them, so the noise
    is not larger than it must be."""
    known = declaration(unit)
    plan = planned(question, known)
    assert shape(plan.root).split() == [node.__name__ for node in nodes]
    crowd = [{**row, "p": f"n{index}"} for index, row in enumerate(EVERYWHERE[:9])]
    mine = EVERYWHERE[:1] if unit.get("one_row_per_person") else EVERYWHERE
    largest = [0] * len(plan.parts)
    for salt in ("1", "2", "3"):
        norms = changes(bench, plan, known.tables["t"], [*crowd, *mine], list(mine), salt)
        hold(plan, norms)
        largest = [max(most, sum(changed)) for most, changed in zip(largest, norms, strict=True)]
    for part, most in zip(plan.parts, largest, strict=True):
        assert most == sensitivity(plan.root, part).l1
