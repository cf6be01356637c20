"""What one person changes in the exact vectors, in the real engine, against the sensitivity that is paid for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from discreet.trusted.ring_a.nodes import Aggregate, Clip, LimitGroups, LimitRows, PersonGroup, Project
from discreet.trusted.ring_a.sensitivity import sensitivity
from engine_tools import Bench, Record, declaration, planned
from kinds import examples
from neighbour_tools import BOUNDS, R2, A, cases, changes, hold


@settings(max_examples=examples(250), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(case=cases())
@example(case=(R2, f"SELECT COUNT(*, {BOUNDS} => (5, 5)), SUM(v) FROM t", [A], 0, "0"))
@example(case=(R2, f"SELECT COUNT(v, {BOUNDS} => (5, 9)), AVG(w) FROM t GROUP BY g", [A, A | {"g": "y"}], 0, "0"))
@example(case=(R2, f"SELECT SUM(v, {BOUNDS} => (4, 9)), COUNT(*) FROM t GROUP BY h", [A | {"v": 1, "h": "x"}], 0, "0"))
@example(case=({"one_row_per_person": True}, f"SELECT SUM(s, {BOUNDS} => (0, 1)) FROM t", [A | {"s": 3.0}], 0, "0"))
@example(case=(R2, "SELECT SUM(s, contribution_bounds_per_row => (0, 1)) FROM t", [A | {"s": 3.0}], 0, "0"))
@example(case=(R2, f"SELECT SUM(s, {BOUNDS} => (0, 1)) FROM t", [A | {"s": 3.0}, A | {"s": 3.0}], 0, "0"))
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
