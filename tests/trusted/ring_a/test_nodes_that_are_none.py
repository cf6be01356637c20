"""What a plan adds up is counted in integers, and a joint part's vectors stand in blocks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from sqlglot import exp

from discreet.trusted.ring_a.casts import cast, kind
from discreet.trusted.ring_a.expressions import ColumnOf
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import (
    Axis,
    Filter,
    Key,
    LimitGroups,
    LimitRows,
    Part,
    PartKind,
    PersonGroup,
    Project,
    Scan,
    Total,
    TotalKind,
    Vector,
    project_of,
    scan_of,
)
from discreet.trusted.ring_a.table import Type

SCAN = Scan("t", "p", False)
PROJECT = Project(Filter(SCAN, ColumnOf("b", Type.BOOLEAN)), (), ())


@pytest.mark.parametrize("number", [1.0, Fraction(1), Fraction(1, 2), True, "1"])
@pytest.mark.parametrize(
    "made",
    [
        lambda number: LimitRows(PROJECT, number),
        lambda number: LimitGroups(PersonGroup(PROJECT), number),
        lambda number: Total(TotalKind("sum"), number),
        lambda number: Total(TotalKind("sum"), 0, (number, 2)),
        lambda number: Total(TotalKind("sum"), 0, (0, number)),
        lambda number: Vector(((number, 1),)),
        lambda number: Vector(((0, 1), (0, number))),
    ],
)
def test_what_is_added_up_is_counted_in_integers(made: Callable[[Any], object], number: object) -> None:
    """A weight of a half could be rounded to one by the engine, after a half was charged."""
    made(1)
    with pytest.raises(ValueError, match="are integers"):
        made(number)


def test_the_rows_that_a_plan_starts_from() -> None:
    limited = LimitGroups(PersonGroup(LimitRows(PROJECT, 2)), 1)
    assert project_of(limited) is PROJECT
    assert scan_of(limited) == scan_of(Project(SCAN, (), ())) == SCAN
    for below in (SCAN, PROJECT.child):
        with pytest.raises(TypeError, match="no projection"):
            project_of(below)


def test_the_blocks_of_a_joint_part() -> None:
    lattice = Lattice(Fraction(1), 0, 9)
    axes = (Axis(lattice, 1, 1), Axis(lattice, 3, 1, absent=True))
    vectors = (Vector(((0, 7),)), Vector(((1, 2),)), Vector(((2, 3),)), Vector(((3, 4),)))
    part = Part(PartKind("joint"), vectors, axes=axes)
    assert part.blocks == (1, 1, 2)


def test_null_is_the_last_public_key() -> None:
    assert Key("g", Type.TEXT, ("x",), null=True).groups == ("x", None)
    assert Key("g", Type.TEXT, ("x",)).groups == ("x",)
    assert Key("g", Type.TEXT, None, null=True).groups is None


def test_a_cast_is_made_once() -> None:
    column = exp.column("v")
    once = cast(column, "DOUBLE")
    assert once.sql("duckdb") == "CAST(v AS DOUBLE)"
    assert cast(once, "DOUBLE") is once
    assert cast(once, "BIGINT").sql("duckdb") == "CAST(CAST(v AS DOUBLE) AS BIGINT)"
    assert kind("BIGINT").args["nested"] is False
