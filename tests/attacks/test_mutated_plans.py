"""Whatever a plan says, the sensitivity is that of what it says: plans are changed field by field, and run.

Bounds are derived from nodes, totals, lattices and weights. So a plan that lets one person do more either has a larger
sensitivity, which real neighbouring tables are held against, or has none and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from discreet.errors import EngineError
from discreet.plan.measurement import Plan
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import Clip, LimitGroups, LimitRows, PersonGroup, Project, Total, TotalKind, Vector
from discreet.trusted.ring_a.sensitivity import sensitivity
from engine_tools import Bench, Record, declaration, planned
from kinds import examples
from neighbour_tools import BOUNDS, R2, cases, changes, hold

EDGES = st.sampled_from([-7, -1, 0, 1, 2, 5])


def limits(node: Any, change: str, most: int) -> Any:
    """The nodes with one limit changed, left out or put in."""
    if isinstance(node, Project):
        return LimitRows(node, most) if change == "limit rows" else node
    if isinstance(node, LimitRows):
        return node.child if change == "all rows" else LimitRows(node.child, most) if change == "rows" else node
    if isinstance(node, LimitGroups) and change == "all groups":
        return node.child
    if isinstance(node, LimitGroups) and change == "groups":
        return replace(node, groups=most)
    if isinstance(node, Clip) and change == "no clip" and isinstance(node.child, PersonGroup):
        return node.child.child
    if isinstance(node, Clip) and change == "limit groups" and isinstance(node.child, PersonGroup):
        return Clip(LimitGroups(node.child, most))
    return replace(node, child=limits(node.child, change, most))


def lattices(node: Any, place: int, lattice: Lattice | None) -> Any:
    """The nodes with another lattice for one quantity."""
    if isinstance(node, Project):
        known = list(node.quantities)
        if known:
            known[place % len(known)] = replace(known[place % len(known)], lattice=lattice)
        return replace(node, quantities=tuple(known))
    return replace(node, child=lattices(node.child, place, lattice))


@st.composite
def mutated(draw: st.DrawFn, plan: Plan) -> Plan:
    """The plan with one to three of its fields changed."""
    for _ in range(draw(st.integers(1, 3))):
        root, what = plan.root, draw(st.sampled_from(["weights", "total", "limit", "lattice", "vectors"]))
        if what in ("weights", "vectors"):
            place = draw(st.integers(0, len(plan.parts) - 1))
            part = plan.parts[place]
            weights = st.lists(
                st.tuples(st.integers(0, len(root.totals) - 1), EDGES), min_size=1, max_size=3, unique_by=lambda w: w[0]
            )
            vectors = [*part.vectors]
            vectors[draw(st.integers(0, len(vectors) - 1))] = Vector(tuple(draw(weights)))
            if what == "vectors" and part.kind != "joint":
                vectors.append(Vector(tuple(draw(weights))))
            parts = list(plan.parts)
            parts[place] = replace(part, vectors=tuple(vectors))
            plan = replace(plan, parts=tuple(parts))
        elif what == "total":
            totals = list(root.totals)
            place = draw(st.integers(0, len(totals) - 1))
            bounds = draw(st.one_of(st.none(), st.tuples(EDGES, EDGES)))
            kind = draw(st.sampled_from(TotalKind))
            quantity = None if kind in (TotalKind.ROWS, TotalKind.PERSONS) else totals[place].quantity or 0
            totals[place] = Total(kind, quantity, bounds)
            plan = replace(plan, root=replace(root, totals=tuple(totals)))
        elif what == "limit":
            change = draw(
                st.sampled_from(["all rows", "rows", "limit rows", "all groups", "groups", "limit groups", "no clip"])
            )
            plan = replace(plan, root=limits(root, change, draw(st.integers(1, 4))))
        else:
            low, high = sorted((draw(EDGES), draw(EDGES)))
            lattice = draw(st.sampled_from([Lattice(Fraction(1), low, high), Lattice(Fraction(1, 2), low, high), None]))
            plan = replace(plan, root=lattices(root, draw(st.integers(0, 9)), lattice))
    return plan


@settings(max_examples=examples(60, quick=10), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data(), case=cases())
def test_one_person_changes_no_more_than_the_derived_sensitivity(
    bench: Bench, data: st.DataObject, case: tuple[Mapping[str, Any], str, list[Record], int, str]
) -> None:
    unit, question, rows, index, salt = case
    known = declaration(unit)
    plan = data.draw(mutated(planned(question, known)))
    try:
        for part in plan.parts:
            sensitivity(plan.root, part)
    except ValueError:
        event("refused")
        return  # it has no loss, so it never runs
    rows = [dict(row) for row in rows]
    mine = rows[index]
    gone = [row for row in rows if row["p"] == mine["p"]] if unit.get("person") else [mine]
    try:
        moved = changes(bench, plan, known.tables["t"], rows, gone, salt)
    except (EngineError, RuntimeError):
        assume(False)
    event("ran")
    hold(plan, moved)


A = {"p": "a", "g": "x", "v": 7, "w": 10.0}
CLAMPED = f"SELECT g, COUNT(*, {BOUNDS} => (0, 2)), SUM(v, {BOUNDS} => (-2, 3)) FROM t GROUP BY g"


@pytest.mark.parametrize(
    ("question", "change"),
    [
        ("SELECT g, SUM(v) FROM t GROUP BY g", lambda plan: limits(plan.root, "rows", 4)),
        ("SELECT g, SUM(v) FROM t GROUP BY g", lambda plan: lattices(plan.root, 0, Lattice(Fraction(1, 4), -20, 28))),
        (CLAMPED, lambda plan: replace(plan.root, totals=(Total(TotalKind.ROWS, None, (9, 9)), *plan.root.totals[1:]))),
        (
            CLAMPED,
            lambda plan: replace(
                plan.root, totals=tuple((t.bounds and replace(t, bounds=(5, 9))) or t for t in plan.root.totals)
            ),
        ),
    ],
)
def test_a_plan_that_says_more_is_held_to_more(bench: Bench, question: str, change: Any) -> None:
    """Four rows of one person, before and after: the change grows, and so does the sensitivity that it reaches."""
    known = declaration(R2 | {"rows_per_person": 2})
    plan = planned(question, known)
    other = replace(plan, root=change(plan))
    mine = [dict(A) for _ in range(4)]
    norms = []
    for one in (plan, other):
        found = changes(bench, one, known.tables["t"], [*mine, {"p": "b", "g": "x", "v": 1}], mine, "salt")
        hold(one, found)
        norms.append(sum(map(sum, found)))
    assert norms[1] > norms[0]
    assert sum(sensitivity(other.root, part).l1 for part in other.parts) > sum(
        sensitivity(plan.root, part).l1 for part in plan.parts
    )
