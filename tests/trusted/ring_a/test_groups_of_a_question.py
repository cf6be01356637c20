"""From an engine's rows to groups and their noise, with an engine that gives what it is told and noise of no size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.trusted.ring_a.additive import Gaussian, Laplace
from discreet.trusted.ring_a.engine import Row
from discreet.trusted.ring_a.groups import (
    GroupsMeasurement,
    dense,
    exact_groups,
    noisy_groups,
)
from discreet.trusted.ring_a.measurement import CertifiedMeasurement, ExactPlan, Mechanism, NoisyGroups
from discreet.trusted.ring_a.nodes import Aggregate, Key, Part, PartKind, Project, Root, Scan, Total, TotalKind, Vector
from discreet.trusted.ring_a.table import Column, Source, SourceKind, Table, Type
from discreet.trusted.ring_a.threshold import Threshold
from discreet.trusted.ring_b.monotone import monotone_count, one_vector

COLUMNS = (Column("g", Type.TEXT, values=("x", "y")), Column("h", Type.NUMBER))
TABLE = Table("t", Source(SourceKind.CSV), COLUMNS, one_row_per_person=True)
EACH_ROW = Scan("t", None, True)
PUBLIC, PRIVATE = Key("g", Type.TEXT, ("x", "y")), Key("h", Type.NUMBER, None, null=True)
SUM, DIFFERENCE = Vector(((0, 1), (1, 10))), Vector(((1, 1), (0, -1)))
PERSONS = Vector(((1, 1),))
HARDLY = Fraction(1, 1000)
"""Noise of this size is 0 but for a probability below e^−400."""
NONE = Laplace(HARDLY)


@dataclass
class Told:
    """An engine that gives these rows."""

    given: list[Row]
    rows: object = None
    period: str = ""

    def run(self, plan: Root, table: Table) -> list[Row]:
        assert isinstance(plan, Aggregate)
        assert table == TABLE
        return self.given


def plan(*keys: Key, parts: tuple[Part, ...], totals: tuple[Total, ...] | None = None) -> ExactPlan:
    root = Aggregate(Project(EACH_ROW, keys, ()), totals or (Total(TotalKind("rows")), Total(TotalKind("persons"))))
    return ExactPlan("t", root, keys, parts)


def released(rows: list[Row], asked: ExactPlan, *mechanisms: Mechanism) -> NoisyGroups:
    return noisy_groups(Told(rows), CertifiedMeasurement(asked, mechanisms), TABLE)


def test_public_groups_are_shown_with_the_empty_ones() -> None:
    asked = plan(PUBLIC, parts=(Part(PartKind("mean"), (SUM, DIFFERENCE)), Part(PartKind("count"), (PERSONS,))))
    found = released([(("y",), (3, 2))], asked, NONE, NONE)
    assert found == NoisyGroups((("x",), ("y",)), (((0, 23), (0, -1)), ((0, 2),)))


@pytest.mark.parametrize(
    "threshold",
    [Threshold(noise, 3, 1, Fraction(1, 1000)) for noise in (Laplace(HARDLY), Gaussian(HARDLY))],
)
@pytest.mark.parametrize("first", [True, False])
def test_groups_below_the_threshold_are_gone_from_every_part(threshold: Threshold, first: bool) -> None:
    """Their noisy numbers too; those that are shown stand in the order of their keys, NULL last."""
    rows: list[Row] = [
        ((None,), (8, 4)),
        ((Fraction(2),), (5, 3)),
        ((Fraction(1),), (9, 2)),
        ((Fraction(-1),), (6, 6)),
    ]
    mean, keys = Part(PartKind("mean"), (SUM, DIFFERENCE)), Part(PartKind("keys"), (PERSONS,))
    parts, mechanisms = ((keys, mean), (threshold, NONE)) if first else ((mean, keys), (NONE, threshold))
    found = released(rows, plan(PRIVATE, parts=parts), *mechanisms)
    shown = ((66, 35, 48), (0, -2, -4)), ((6, 3, 4),)
    assert found.keys == ((Fraction(-1),), (Fraction(2),), (None,))
    assert found.parts == (shown if not first else shown[::-1])


def test_the_loss_is_that_of_the_measurement_on_the_declared_table() -> None:
    measured = CertifiedMeasurement(plan(PUBLIC, parts=(Part(PartKind("count"), (PERSONS,)),)), (Laplace(Fraction(4)),))
    assert GroupsMeasurement(measured, TABLE).loss == measured.loss
    with pytest.raises(ValueError, match="does not read this table"):
        _ = GroupsMeasurement(measured, replace(TABLE, person="g")).loss


def test_a_plan_without_parts_shows_public_groups_and_asks_no_engine() -> None:
    engine: Any = None
    assert exact_groups(engine, plan(PUBLIC, parts=()), TABLE) == ([("x",), ("y",)], [])


@pytest.mark.parametrize("parts", [(), (Part(PartKind("count"), (PERSONS,)),)])
def test_a_public_group_that_stands_there_twice_is_refused(parts: tuple[Part, ...]) -> None:
    """Its noise would be drawn twice on one price. Two fractions may be one double to the engine."""
    third = Fraction(1, 3)
    twice = Key("h", Type.NUMBER, (third, third + Fraction(1, 10**30)))
    with pytest.raises(ValueError, match="listed twice"):
        exact_groups(Told([]), plan(twice, parts=parts), TABLE)


@pytest.mark.parametrize("key", [PUBLIC, PRIVATE])
def test_two_rows_of_one_group_are_refused(key: Key) -> None:
    rows: list[Row] = [((value,), (1, 1)) for value in (("x", "x") if key is PUBLIC else (Fraction(1, 2),) * 2)]
    with pytest.raises(ValueError, match="two groups have the same key"):
        dense(rows, plan(key, parts=(Part(PartKind("count"), (PERSONS,)),)))


COUNT = Part(PartKind("count"), (PERSONS,))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(plan(PUBLIC, parts=(COUNT,)), table="u"),
        replace(plan(PUBLIC, parts=(COUNT,)), keys=()),
        replace(plan(parts=(COUNT,)), keys=(PUBLIC,)),
        plan(PRIVATE, parts=(COUNT,)),
        plan(PUBLIC, parts=()),
        plan(PUBLIC, parts=(COUNT, COUNT)),
        plan(PUBLIC, parts=(Part(PartKind("mean"), (SUM, PERSONS)),)),
        plan(PUBLIC, parts=(Part(PartKind("mean"), ()),)),
    ],
)
def test_what_is_no_vector_over_public_groups(wrong: ExactPlan) -> None:
    for check in (one_vector, monotone_count):
        with pytest.raises(ValueError, match=r"does not read this table|not a vector over public groups"):
            check(wrong, TABLE)


@pytest.mark.parametrize(
    ("weights", "totals", "monotone"),
    [
        ((1, 1), (Total(TotalKind("rows")), Total(TotalKind("persons"))), True),
        ((0, 2), (Total(TotalKind("rows")), Total(TotalKind("present"), 0)), True),
        ((1, -1), (Total(TotalKind("rows")), Total(TotalKind("persons"))), False),
        ((-1, 1), (Total(TotalKind("rows")), Total(TotalKind("persons"))), False),
        ((1, 1), (Total(TotalKind("rows")), Total(TotalKind("sum"), 0)), False),
        ((1, 1), (Total(TotalKind("average"), 0), Total(TotalKind("rows"))), False),
        ((1, 1), (Total(TotalKind("rows"), None, (-2, 0)), Total(TotalKind("persons"))), True),
        ((1, 1), (Total(TotalKind("rows"), None, (0, 5)), Total(TotalKind("persons"))), True),
        ((1, 1), (Total(TotalKind("rows"), None, (-2, -1)), Total(TotalKind("persons"))), False),
        ((1, 1), (Total(TotalKind("persons")), Total(TotalKind("rows"), None, (-2, -1))), False),
    ],
)
def test_which_counts_no_further_person_lowers(
    weights: tuple[int, int], totals: tuple[Total, ...], monotone: bool
) -> None:
    vector = Vector(tuple(enumerate(weights)))
    assert monotone_count(plan(PUBLIC, parts=(Part(PartKind("count"), (vector,)),), totals=totals), TABLE) is monotone


def test_gaussian_noise_is_drawn_on_every_vector() -> None:
    asked = plan(PUBLIC, parts=(Part(PartKind("mean"), (SUM, DIFFERENCE)),))
    assert released([(("x",), (1, 1))], asked, Gaussian(HARDLY)).parts == (((11, 0), (0, 0)),)
