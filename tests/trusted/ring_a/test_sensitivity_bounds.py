"""What the fold refuses, and the edges of what it computes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from discreet.trusted.ring_a.expressions import ColumnOf
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Axis,
    Clip,
    Key,
    LimitRows,
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
from discreet.trusted.ring_a.sensitivity import sensitivity, touched
from discreet.trusted.ring_a.table import Relation, Type, own_columns
from discreet.trusted.ring_b.order_statistics import rows_reached

PERSONS, EACH_ROW = Scan("t", "p", False), Scan("t", None, True)
LATTICE = Lattice(Fraction(1), -5, 7)
VALUE = Quantity(ColumnOf("v", Type.NUMBER), LATTICE)
ONE = Vector(((0, 1),))


def counted(*totals: Total, quantity: Quantity = VALUE) -> Aggregate:
    return Aggregate(Project(EACH_ROW, (), (quantity,)), totals or (Total(TotalKind("rows")),))


@pytest.mark.parametrize("weights", [((-1, 1), (0, 1)), ((0, 1), (1, 1)), ((0, 1), (2, 1)), ((5, 1),)])
def test_a_vector_of_totals_that_are_not_there_is_refused(weights: tuple[tuple[int, int], ...]) -> None:
    """Also where another of its totals is there: Python would count a negative index from the end."""
    with pytest.raises(ValueError, match="made of the plan's totals"):
        sensitivity(counted(), Part(PartKind("count"), (Vector(weights),)))


@pytest.mark.parametrize(
    ("vectors", "axes"),
    [
        ((ONE, ONE), ()),  # the second vector would be measured, and no block would bound it
        ((ONE,), (Axis(LATTICE, 1, 1),)),
        ((ONE, ONE), (Axis(LATTICE, 1, 1, absent=True),)),
        ((ONE, ONE, ONE), (Axis(LATTICE, 1, 1),)),
    ],
)
def test_the_blocks_of_a_joint_part_are_all_its_vectors(vectors: tuple[Vector, ...], axes: tuple[Axis, ...]) -> None:
    with pytest.raises(ValueError, match="blocks of a part are its vectors"):
        sensitivity(counted(), Part(PartKind("joint"), vectors, axes=axes))


def test_corners_are_looked_at_up_to_a_number() -> None:
    """Nine totals with a clamp each have three states: none, least, most. Ten are more than are looked at."""
    plan = Aggregate(
        Clip(PersonGroup(Project(PERSONS, (), (VALUE,)))), tuple(Total(TotalKind("sum"), 0, (-1, 1)) for _ in range(10))
    )
    nine, ten = (Part(PartKind("sum"), (Vector(tuple((index, 1) for index in range(count))),)) for count in (9, 10))
    assert sensitivity(plan, nine).l1 == 9
    with pytest.raises(ValueError, match="too many totals"):
        sensitivity(plan, ten)


def test_powers_of_two_are_not_added_up() -> None:
    """A quantity that is the number of its power is counted; as a sum its lattice would not bound it."""
    powers = Quantity(ColumnOf("v", Type.NUMBER), LATTICE, powers=True)
    with pytest.raises(ValueError, match="powers of two are counted"):
        sensitivity(counted(Total(TotalKind("sum"), 0), quantity=powers), Part(PartKind("sum"), (ONE,)))
    assert (
        sensitivity(counted(Total(TotalKind("present"), 0), quantity=powers), Part(PartKind("count"), (ONE,))).l1 == 1
    )


def test_a_sum_without_lattice_and_without_clamp_is_not_bounded() -> None:
    free = Quantity(ColumnOf("v", Type.NUMBER), None)
    with pytest.raises(ValueError, match="does not bound what a person adds to a group"):
        sensitivity(counted(Total(TotalKind("sum"), 0), quantity=free), Part(PartKind("sum"), (ONE,)))


class _Switched(Relation):
    """Two of its columns have a value for each setting of two switches, of which they share one."""


@own_columns.register
def _(_relation: _Switched) -> Mapping[str, frozenset[object]]:
    return {"mine": frozenset("ab"), "other": frozenset("bc")}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("mine",), 4),
        (("mine", "other"), 8),
        (("mine", "public"), 4 * 3),
        (("public",), 3),
        (("mine", "private"), None),
    ],
)
def test_keys_of_the_person_take_one_value_for_each_setting_of_their_switches(
    names: tuple[str, ...], expected: int | None
) -> None:
    keys = tuple(Key(name, Type.TEXT, ("x", "y", "z") if name == "public" else None) for name in names)
    assert touched(keys, _Switched()) == expected


def test_rows_that_reach_a_plan() -> None:
    limited = LimitRows(Project(PERSONS, (), ()), 4)
    assert rows_reached(Aggregate(limited, (Total(TotalKind("rows")),))) == 4
    assert rows_reached(counted()) == 1
    with pytest.raises(ValueError, match="does not bound a person's rows"):
        rows_reached(Aggregate(limited.child, (Total(TotalKind("rows")),)))
