"""The fold from nodes to what one person can change, case by case."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from discreet.trusted.ring_a.expressions import ColumnOf
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Clip,
    Filter,
    Key,
    LimitGroups,
    LimitRows,
    Node,
    Part,
    PartKind,
    PersonGroup,
    Project,
    Quantity,
    Scan,
    Total,
    TotalKind,
    Vector,
)
from discreet.trusted.ring_a.sensitivity import Reach, Sensitivity, cell_count, reach, sensitivity
from discreet.trusted.ring_a.table import Type
from plan_tools import ONE, people, planned

KIND = "exact"

MANY, SINGLE = Scan("t", "p", False), Scan("t", None, True)
PUBLIC = Key("g", Type.TEXT, ("x", "y", "z"))
PRIVATE = Key("h", Type.TEXT, None)
BOUNDS = "contribution_bounds_per_group"


def project(scan: Scan, *keys: Key) -> Project:
    return Project(scan, keys, ())


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (SINGLE, Reach(1, 1)),
        (Scan("t", "p", True), Reach(1, 1)),
        (MANY, Reach(None, None)),
        (Filter(MANY, ColumnOf("b", Type.BOOLEAN)), Reach(None, None)),
        (project(SINGLE, PUBLIC), Reach(1, 1)),
        (project(MANY), Reach(None, 1)),
        (project(MANY, PUBLIC), Reach(None, 3)),
        (project(MANY, PRIVATE), Reach(None, None)),
        (project(MANY, PUBLIC, PRIVATE), Reach(None, None)),
        (LimitRows(project(MANY, PUBLIC), 2), Reach(2, 2)),
        (LimitRows(project(MANY, PUBLIC), 9), Reach(9, 3)),
        (LimitRows(project(MANY, PRIVATE), 9), Reach(9, 9)),
        (LimitRows(project(SINGLE, PRIVATE), 9), Reach(1, 1)),
        (PersonGroup(project(MANY, PUBLIC)), Reach(None, 3)),
        (LimitGroups(PersonGroup(project(MANY, PUBLIC)), 2), Reach(None, 2)),
        (LimitGroups(PersonGroup(project(MANY, PUBLIC)), 8), Reach(None, 3)),
        (LimitGroups(PersonGroup(LimitRows(project(MANY, PRIVATE), 5)), 4), Reach(5, 4)),
        (Clip(LimitGroups(PersonGroup(project(MANY, PRIVATE)), 4)), Reach(None, 4)),
    ],
)
def test_rows_and_groups_that_reach_a_node(node: Node, expected: Reach) -> None:
    assert reach(node) == expected


V, FREE = Quantity(ColumnOf("v", Type.NUMBER), Lattice(Fraction(1), -5, 7)), Lattice(Fraction(1), -(2**53), 2**53)
F = Quantity(ColumnOf("f", Type.NUMBER), FREE)
COUNT, PERSONS, SUM, PRESENT = (
    Total(TotalKind.ROWS),
    Total(TotalKind.PERSONS),
    Total(TotalKind.SUM, 0),
    Total(TotalKind.NON_NULL, 0),
)
ABOVE, BELOW = Vector(((0, 1), (1, 5))), Vector(((1, 7), (0, -1)))
ONE_VECTOR = (Vector(((0, 1),)),)


def limited(rows: int | None, groups: int | None, totals: tuple[Total, ...], *keys: Key) -> Aggregate:
    base = Project(MANY, keys, (V, F))
    person = PersonGroup(base if rows is None else LimitRows(base, rows))
    return Aggregate(Clip(person if groups is None else LimitGroups(person, groups)), totals)


def single(totals: tuple[Total, ...], *keys: Key) -> Aggregate:
    return Aggregate(Project(SINGLE, keys, (V, F)), totals)


def by_rows(rows: int | None, totals: tuple[Total, ...], *keys: Key) -> Aggregate:
    base = Project(MANY, keys, (V, F))
    return Aggregate(base if rows is None else LimitRows(base, rows), totals)


def part(kind: PartKind = PartKind.COUNT) -> Part:
    return Part(kind, (ABOVE, BELOW) if kind is PartKind.MEAN else ONE_VECTOR)


def clamped(low: int, high: int, kind: TotalKind = TotalKind.ROWS) -> tuple[Total, ...]:
    return (Total(kind, None if kind is TotalKind.ROWS else 1, (low, high)),)


@pytest.mark.parametrize(
    ("plan", "measured", "expected"),
    [
        (single((COUNT,), PRIVATE), part(), Sensitivity(1, 1, 1, 1, 1)),
        (single((SUM, PRESENT)), part(PartKind.MEAN), Sensitivity(1, 12, 12, 144, 12)),
        (single((COUNT,), PRIVATE), part(PartKind.KEYS), Sensitivity(1, 1, 1, 1, 1)),
        # rows alone are limited: all of them may fall into one group, or into as many as there are
        (by_rows(2, (SUM,), PUBLIC), part(PartKind.SUM), Sensitivity(2, 14, 14, 14**2, 7)),
        (by_rows(5, (SUM, PRESENT), PRIVATE), part(PartKind.MEAN), Sensitivity(5, 60, 60, 60**2, 12)),
        (by_rows(5, (COUNT,)), part(), Sensitivity(1, 5, 5, 25, 1)),
        # groups alone: each of them up to the clip
        (
            limited(None, 2, clamped(-2, 9, TotalKind.SUM), PRIVATE),
            part(PartKind.SUM),
            Sensitivity(2, 9, 18, 2 * 81, 9),
        ),
        (
            limited(None, None, clamped(-9, 2, TotalKind.SUM), PUBLIC),
            part(PartKind.SUM),
            Sensitivity(3, 9, 27, 3 * 81, 9),
        ),
        (limited(None, 2, (PERSONS,), PRIVATE), part(PartKind.PERSONS), Sensitivity(2, 1, 2, 2, 1)),
        (limited(None, 2, (PERSONS,), PRIVATE), part(PartKind.KEYS), Sensitivity(2, 1, 2, 2, 1)),
        # both: the smaller of each, and the ℓ2 norm of what is left after the full groups
        (limited(5, 4, clamped(0, 2), PRIVATE), part(), Sensitivity(4, 2, 5, 4 + 4 + 1, 1)),
        (limited(5, 2, clamped(0, 2), PRIVATE), part(), Sensitivity(2, 2, 4, 4 + 4, 1)),
        (limited(5, 4, clamped(0, 9), PRIVATE), part(), Sensitivity(4, 5, 5, 25, 1)),
        (limited(5, 2, clamped(3, 4), PRIVATE), part(), Sensitivity(2, 4, 8, 32, 3)),
        (limited(5, 2, clamped(-4, -3), PRIVATE), part(), Sensitivity(2, 3, 6, 18, 3)),
        (limited(5, 2, (SUM, PRESENT), PRIVATE), part(PartKind.MEAN), Sensitivity(2, 60, 60, 3600, 12)),
        (limited(5, 4, (PERSONS,), PRIVATE), part(PartKind.PERSONS), Sensitivity(4, 1, 4, 4, 1)),
    ],
)
def test_sensitivity(plan: Aggregate, measured: Part, expected: Sensitivity) -> None:
    assert sensitivity(plan, measured) == expected


@pytest.mark.parametrize(
    ("plan", "measured"),
    [
        (by_rows(None, (COUNT,)), part()),
        (by_rows(None, (COUNT,), PRIVATE), part()),
        (limited(None, None, (PERSONS,), PRIVATE), part(PartKind.KEYS)),
        (limited(None, None, clamped(0, 1), PRIVATE), part()),
        (limited(None, 2, (SUM, PRESENT), PRIVATE), part(PartKind.MEAN)),
        # a clamp counts only where persons are clamped
        (by_rows(None, clamped(0, 1)), part()),
        (by_rows(5, clamped(0, 1)), part()),
        (by_rows(5, (Total(TotalKind.MEAN_PER_PERSON, 0, (0, 1)), Total(TotalKind.PERSONS_WITH_VALUE, 0))), part()),
        (by_rows(None, (PERSONS,), PUBLIC), part(PartKind.PERSONS)),
    ],
)
def test_a_plan_without_bounds_may_not_run(plan: Aggregate, measured: Part) -> None:
    with pytest.raises(ValueError, match="does not bound"):
        sensitivity(plan, measured)


@pytest.mark.parametrize(
    ("plan", "measured"),
    [
        (single((COUNT,)), Part(PartKind.COUNT, ())),
        (single((COUNT,)), Part(PartKind.COUNT, (Vector(()),))),
        (single((COUNT,)), Part(PartKind.COUNT, (Vector(((1, 1),)),))),
        (single((COUNT,)), Part(PartKind.COUNT, (Vector(((-1, 1),)),))),
        (single((COUNT,)), Part(PartKind.JOINT, (ABOVE, BELOW))),
        (single((Total(TotalKind.SUM),)), part(PartKind.SUM)),
        (limited(5, 2, clamped(2, 1), PRIVATE), part()),
        (limited(5, 2, (Total(TotalKind.PERSONS, None, (0, 1)),), PRIVATE), part()),
        (limited(5, 2, (Total(TotalKind.PERSONS_WITH_VALUE, 0, (0, 1)),), PRIVATE), part()),
    ],
)
def test_a_part_that_is_none_may_not_run(plan: Aggregate, measured: Part) -> None:
    with pytest.raises(ValueError, match=r"part|total|clamp|bound"):
        sensitivity(plan, measured)


@pytest.mark.parametrize("kind", ["most", "sum", TotalKind.SUM.upper(), None])
def test_a_total_of_another_kind_is_not_made(kind: Any) -> None:
    with pytest.raises(ValueError, match="TotalKind"):
        Total(kind, 0)


@pytest.mark.parametrize("kind", ["most", "sum", TotalKind.SUM, None])
def test_a_part_of_another_kind_is_not_made(kind: Any) -> None:
    with pytest.raises(ValueError, match="PartKind"):
        Part(kind, ONE_VECTOR)


def made(*weights: tuple[int, int], kind: PartKind = PartKind.COUNT) -> Part:
    return Part(kind, (Vector(weights),))


MIDDLE = Part(PartKind.MEAN, (Vector(((0, 1), (1, -2))), Vector(((1, 5), (0, -1)))))


@pytest.mark.parametrize(
    ("plan", "measured", "expected"),
    [
        # weights of nothing add nothing
        (single((COUNT,)), made((0, 0)), Sensitivity(1, 0, 0, 0, 0)),
        # what has no value may weigh most
        (single((COUNT, PRESENT)), made((0, 1), (1, -1)), Sensitivity(1, 1, 1, 1, 1)),
        (single((SUM, PRESENT)), made((0, 1), (1, -1)), Sensitivity(1, 6, 6, 36, 6)),
        (single((SUM, PRESENT)), made((0, 1), (1, 1)), Sensitivity(1, 8, 8, 64, 8)),
        # a person's mean and whether there is one go together: low·holders is taken off where there is one
        (
            limited(
                None, 2, (Total(TotalKind.MEAN_PER_PERSON, 0, (2, 5)), Total(TotalKind.PERSONS_WITH_VALUE, 0)), PRIVATE
            ),
            MIDDLE,
            Sensitivity(2, 3, 6, 18, 3),
        ),
        # a clamped sum does not grow with the rows, and the count beside it does
        (
            limited(4, 2, (Total(TotalKind.SUM, 0, (5, 9)), PRESENT), PRIVATE),
            made((0, -1), (1, 10)),
            Sensitivity(2, 40, 40, 1600, 10),
        ),
        # a person who is there has a row, and not always a value; per row a clamped count goes down to nothing
        (limited(None, 2, (*clamped(0, 6), PERSONS), PRIVATE), made((0, 1), (1, -5)), Sensitivity(2, 4, 8, 32, 5)),
        (
            limited(None, 2, (*clamped(0, 6, TotalKind.NON_NULL), PERSONS), PRIVATE),
            made((0, 1), (1, -5)),
            Sensitivity(2, 5, 10, 50, 5),
        ),
        (
            limited(None, 2, (*clamped(2, 6, TotalKind.NON_NULL), PERSONS), PRIVATE),
            made((0, 1), (1, -5)),
            Sensitivity(2, 3, 6, 18, 5),
        ),
        # a person is one, however many the rows: beside a count of rows it does not grow with them
        (limited(4, 1, (PERSONS, COUNT)), made((0, 4), (1, -3)), Sensitivity(1, 12, 12, 144, 3)),
        (limited(None, 1, (PERSONS, *clamped(0, 4))), made((0, -1), (1, 2)), Sensitivity(1, 7, 7, 49, 2)),
        # of several totals one that nothing clamps is enough: rows bound it
        (limited(5, 2, (*clamped(0, 1), COUNT), PRIVATE), made((0, 1), (1, 1)), Sensitivity(2, 10, 10, 100, 2)),
    ],
)
def test_totals_that_follow_one_another(plan: Aggregate, measured: Part, expected: Sensitivity) -> None:
    assert sensitivity(plan, measured) == expected


@pytest.mark.parametrize(
    "plan",
    [
        limited(None, 2, (*clamped(0, 1), COUNT), PRIVATE),
        by_rows(5, (COUNT, *clamped(0, 1))),
        limited(5, 2, (COUNT, Total(TotalKind.PERSONS, None, (0, 1))), PRIVATE),
    ],
)
def test_one_total_without_bounds_is_enough_to_refuse(plan: Aggregate) -> None:
    with pytest.raises(ValueError, match=r"bound|clamp"):
        sensitivity(plan, made((0, 1), (1, 1)))


def test_persons_that_are_counted_by_rows_count_as_rows() -> None:
    """Where nothing groups the rows of a person, a count of persons is a count of rows."""
    assert sensitivity(by_rows(5, (PERSONS,)), part(PartKind.PERSONS)).l1 == 5


@pytest.mark.parametrize(
    ("keys", "expected"), [((), 1), ((PUBLIC,), 3), ((PUBLIC, PUBLIC), 9), ((PUBLIC, PRIVATE), None)]
)
def test_how_many_groups_there_are(keys: tuple[Key, ...], expected: int | None) -> None:
    assert cell_count(keys) == expected


@pytest.mark.parametrize(
    ("unit", "question", "expected"),
    [
        (ONE, "SELECT COUNT(*) FROM t", [("count", 1, 1)]),
        (ONE, "SELECT SUM(v) FROM t GROUP BY g", [("sum", 1, 7)]),
        (ONE, "SELECT AVG(v) FROM t GROUP BY g", [("mean", 1, 12)]),
        (ONE, "SELECT AVG(v), SUM(v), COUNT(v), COUNT(*) FROM t", [("mean", 1, 12)]),
        (ONE, f"SELECT COUNT(*, {BOUNDS} => (4, 9)) FROM t", [("count", 1, 4)]),
        (ONE, f"SELECT SUM(u, {BOUNDS} => (-3, 2)) FROM t", [("sum", 1, 3)]),
        (ONE, "SELECT h, COUNT(*) FROM t GROUP BY h", [("keys", 1, 1)]),
        (people(4), "SELECT COUNT(*), AVG(v) FROM t GROUP BY g", [("mean", 4, 48)]),  # NULL is the fourth
        (people(4), "SELECT SUM(v) FROM t WHERE b", [("sum", 1, 28)]),
        (people(4), "SELECT COUNT(DISTINCT p) FROM t GROUP BY h", [("keys", 4, 4)]),
        (people(4, 2), "SELECT COUNT(DISTINCT p) FROM t GROUP BY h", [("keys", 2, 2)]),
        (people(4, 2), "SELECT COUNT(*) FROM t GROUP BY h", [("count", 2, 4), ("keys", 2, 2)]),
        # a lower bound above 1 counts one row as several, also where rows are limited for another part's sake
        (people(2), f"SELECT COUNT(*, {BOUNDS} => (5, 5)) FROM t", [("count", 1, 5)]),
        (people(2), f"SELECT COUNT(*, {BOUNDS} => (5, 5)), SUM(v) FROM t", [("count", 1, 5), ("sum", 1, 14)]),
        (
            people(2),
            f"SELECT COUNT(*, {BOUNDS} => (5, 9)), SUM(v) FROM t GROUP BY g",
            [("count", 2, 10), ("sum", 2, 14)],
        ),
        (people(2), f"SELECT COUNT(v, {BOUNDS} => (0, 9)), SUM(v) FROM t", [("count", 1, 2), ("sum", 1, 14)]),
        (people(2), f"SELECT SUM(v, {BOUNDS} => (6, 9)), SUM(v) FROM t GROUP BY g", [("sum", 2, 18), ("sum", 2, 14)]),
        # an analyst may allow more groups than the declaration, at the price of it
        (
            people(9, 2),
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 3) COUNT(DISTINCT p) FROM t GROUP BY h",
            [("keys", 3, 3)],
        ),
    ],
)
def test_questions(unit: Mapping[str, Any], question: str, expected: list[tuple[str, int, int]]) -> None:
    """For each part of a question: its kind, the groups a person touches, and the ℓ1 sensitivity in lattice steps."""
    plan = planned(question, unit)
    found = [(one.kind, sensitivity(plan.root, one)) for one in plan.parts]
    assert [(kind, bound.cells, bound.l1) for kind, bound in found] == expected


def test_bounds_far_below_one_keep_their_unit() -> None:
    """A question's own tiny bounds: rows are counted in the unit in which the person's total is clamped."""
    plan = planned(f"SELECT SUM(f, {BOUNDS} => (0, 1e-20)) FROM t", people(2))
    lattice, (total,) = plan.parts[0].lattice, plan.root.totals
    assert lattice is not None
    assert total.bounds is not None
    assert lattice.step * total.bounds[1] >= Fraction(1, 10**20) > lattice.step * (total.bounds[1] - 1)
