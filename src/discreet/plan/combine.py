"""Selects the aggregates that are measured together with joint noise, from the question and declarations alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

from discreet.dialect.nulls import may_be_null
from discreet.plan.outputs import AggregateKind, OutputKind
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.nodes import Axis, Part, Quantity, Total, TotalKind
from discreet.trusted.ring_a.table import Column
from discreet.trusted.ring_b import jointly
from discreet.trusted.ring_b.jointly import Summand

Estimate = tuple[int, OutputKind, tuple[Fraction, ...]]
"""The part, the kind of output, and the weights of the part's vectors."""

KEYS = -1
"""Stands for the part that finds the keys, which is the last one."""

Needed = tuple[Expression | None, tuple[Fraction, Fraction] | None, AggregateKind]
"""What a column of a joint part is made of: expression, bounds of a person's total, and mean, sum, present or count."""


class JointAggregate(Protocol):
    """An aggregate of the question, as `plan.planner` has it."""

    @property
    def kind(self) -> AggregateKind: ...
    @property
    def expression(self) -> Expression | None: ...
    @property
    def bounds(self) -> tuple[Fraction, Fraction] | None: ...
    @property
    def epsilon(self) -> Fraction | None: ...


class JointBuilder(Protocol):
    """Where quantities, totals and parts are collected."""

    @property
    def columns(self) -> Mapping[str, Column]: ...
    @property
    def single(self) -> bool: ...
    @property
    def private(self) -> bool: ...
    def quantity(self, quantity: Quantity, /) -> int: ...
    def total(self, total: Total, /) -> int: ...
    def part(self, part: Part, /) -> int: ...
    def grid(self, expression: Expression, function: str, /) -> Lattice: ...
    def clamped(self, one: Any, /) -> tuple[int, Lattice]: ...


def together(builder: JointBuilder, wanted: Sequence[JointAggregate]) -> dict[int, Estimate]:
    """Those aggregates that are made from the keys' own counts or from a joint part, by their place.

    With private keys the number of persons in each group is measured anyway, and shown with the groups: it is the
    answer to COUNT(DISTINCT person), and to COUNT(*) where each row is a person.
    """
    made: dict[int, Estimate] = {}
    people = [
        place
        for place, one in enumerate(wanted)
        if one.bounds is None
        and one.epsilon is None
        and (one.kind is AggregateKind.PERSONS or (one.kind is AggregateKind.COUNT and builder.single))
    ]
    if builder.private:
        made = {place: (KEYS, OutputKind.COUNT, (Fraction(1),)) for place in people}
        people = []
    rows = [place for place, one in enumerate(wanted) if place not in made and _by_row(one, builder.single)]
    made |= _joined(builder, wanted, rows, Total(TotalKind.ROWS))
    if not builder.single:
        clamped = [place for place, one in enumerate(wanted) if one.bounds is not None and _usual(one)]
        made |= _joined(builder, wanted, [*people, *clamped], Total(TotalKind.PERSONS))
    return made


def _by_row(one: JointAggregate, single: bool) -> bool:
    return one.bounds is None and _usual(one) and (one.kind is not AggregateKind.PERSONS or single)


def _usual(one: JointAggregate) -> bool:
    return one.epsilon is None and one.kind in (
        AggregateKind.COUNT,
        AggregateKind.NON_NULL,
        AggregateKind.PERSONS,
        AggregateKind.SUM,
        AggregateKind.MEAN,
    )


def _joined(
    builder: JointBuilder, wanted: Sequence[JointAggregate], places: Sequence[int], counted: Total
) -> dict[int, Estimate]:
    """One joint part for these aggregates, if that makes less noise than parts of their own.

    It does for two columns or more, and for one column and a count (see `jointly`); but the AVG of one column with its
    SUM and the counts has the same noise already. With private keys the count is not wanted here, and two sums without
    it are as good by themselves.
    """
    averaged = {wanted[place].expression for place in places if wanted[place].kind is AggregateKind.MEAN}
    needed = {place: _column(wanted[place], averaged) for place in places}
    columns = list(dict.fromkeys(column for column in needed.values() if column))
    first = {needed[place]: wanted[place] for place in reversed(places)}
    means = any(column[2] is AggregateKind.MEAN for column in columns)
    counts = any(column is None for column in needed.values())
    enough = 3 if builder.private and not means else 2
    if len(columns) + (counts and not means) < enough:
        return {}
    rows = builder.total(counted)
    summands: list[Summand] = []
    kept: list[Needed] = []
    for column in columns:
        summand = _summand(builder, column, first[column])
        if 1 + sum(other.size for other in summands) + summand.size <= jointly.MOST:
            summands.append(summand)
            kept.append(column)
    part = jointly.joint_part(summands, rows)
    axes = dict(zip(kept, part.axes, strict=True))
    index = builder.part(part)
    return {
        place: _estimate(index, part, wanted[place], column, axes.get(column) if column else None)
        for place, column in needed.items()
        if column is None or column in axes
    }


def _column(one: JointAggregate, averaged: Collection[Expression | None]) -> Needed | None:
    """The column that an aggregate needs; None where the count will do. An AVG brings the SUM and COUNT of its own."""
    if one.bounds is not None:
        return one.expression, one.bounds, one.kind
    if one.kind in (AggregateKind.COUNT, AggregateKind.PERSONS):
        return None
    return one.expression, None, AggregateKind.MEAN if one.expression in averaged else one.kind


def _summand(builder: JointBuilder, column: Needed, one: JointAggregate) -> Summand:
    expression, bounds, kind = column
    if bounds is not None:
        total, grid = builder.clamped(one)
        return Summand(total, jointly.with_zero(grid) if kind is AggregateKind.SUM else grid)
    assert expression is not None
    if kind is AggregateKind.NON_NULL:
        flag = builder.total(Total(TotalKind.NON_NULL, builder.quantity(Quantity(expression, None))))
        return Summand(flag, Lattice(Fraction(1), 0, 1))
    grid = builder.grid(expression, "AVG" if kind is AggregateKind.MEAN else "SUM")
    quantity = builder.quantity(Quantity(expression, grid))
    summand = Summand(builder.total(Total(TotalKind.SUM, quantity)), grid)
    if kind is AggregateKind.SUM:
        return replace(summand, lattice=jointly.with_zero(grid))
    present = builder.total(Total(TotalKind.NON_NULL, quantity))
    return replace(summand, present=present, absent=may_be_null(expression, builder.columns))


def _estimate(index: int, part: Part, one: JointAggregate, column: Needed | None, axis: Axis | None) -> Estimate:
    if column is None or axis is None:
        return index, OutputKind.COUNT, jointly.count_of(part)
    if one.kind is AggregateKind.MEAN:
        return index, OutputKind.MEAN, jointly.mean_of(part, axis)
    if one.kind is AggregateKind.SUM:
        return index, OutputKind.SUM, jointly.sum_of(part, axis)
    return (
        index,
        OutputKind.COUNT,
        jointly.count_of(part, axis) if column[2] is AggregateKind.MEAN else jointly.sum_of(part, axis),
    )
