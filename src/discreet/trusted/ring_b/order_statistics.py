"""Quantiles, most frequent values and numbers of distinct values: their counts, mechanisms and losses.

Each is measured in every group that is shown, at the full price of the special. A person's rows lie in several groups,
but all groups together hold at most the rows R, or the pairs of group and value, that the plan leaves of a person; the
loss in one group is in proportion to the rows that the person has there, so the losses of all groups add up to that of
R rows in one. Which groups are shown is decided before, and paid for by the keys' own part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from discreet.trusted.ring_a.additive import Laplace
from discreet.trusted.ring_a.engine import Engine
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.groups import folded
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.loss import Batch, Single
from discreet.trusted.ring_a.nodes import Aggregate, LimitRows, Project, Root, Total, TotalKind, project_of
from discreet.trusted.ring_a.public_groups import Group
from discreet.trusted.ring_a.sensitivity import reach
from discreet.trusted.ring_a.table import Table, Value
from discreet.trusted.ring_b.logarithmic import LogarithmicRange
from discreet.trusted.ring_b.quantile import Quantiles
from discreet.trusted.ring_b.winners import Winners

SpecialMechanism = Quantiles | Winners | Laplace
Bounds = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class GroupHistograms(Root):
    """How many rows of each group have each value of the only quantity."""

    child: Project | LimitRows


@dataclass(frozen=True)
class Distinct(Root):
    """How many different values of the last key stand in each group of the keys before it."""

    child: Aggregate


class SpecialKind(StrEnum):
    """What is measured separately."""

    QUANTILES = "quantiles"
    WINNERS = "winners"
    """The most frequent values."""
    DISTINCT = "distinct"
    """The number of different values."""

    __repr__ = str.__repr__
    """As the text that it once was: keys of stored answers are made of a plan's repr."""


@dataclass(frozen=True)
class Special:
    """An aggregate that is measured separately, with its own counts.

    `fractions` are those of quantiles, on `lattice`; `values` are the candidates of which the `k` commonest are found;
    `many` says that the answer is a list.
    """

    kind: SpecialKind
    root: Root
    fractions: tuple[Fraction, ...] = ()
    lattice: Lattice | None = None
    values: tuple[Value, ...] = ()
    k: int = 1
    many: bool = False
    epsilon: Fraction | None = None


@dataclass(frozen=True)
class Range:
    """An expression without declared bounds: private bounds are found first, from counts of powers of two."""

    expression: Expression
    root: GroupHistograms


@dataclass(frozen=True)
class MeasuredSpecial:
    """A separately measured aggregate, and its mechanism."""

    special: Special
    mechanism: SpecialMechanism


def rows_reached(root: Root) -> int:
    """The most rows of one person that a plan counts. Raises ValueError where nothing bounds them."""
    rows = reach(root).rows
    if rows is None:
        raise ValueError("the plan does not bound a person's rows")
    return rows


def values_reached(root: Distinct) -> int:
    """By how much one person changes all numbers of different values together: whether a value stands in a group
    depends on a person for at most as many pairs of both as the person touches; all other pairs stay as they are."""
    cells = reach(root.child).cells
    if cells is None:
        raise ValueError("the plan does not bound how many values a person has")
    return cells


def special_losses(one: MeasuredSpecial) -> list[Single]:
    """The losses of separately measured aggregates."""
    root, mechanism = one.special.root, one.mechanism
    if isinstance(mechanism, Laplace):
        if not isinstance(root, Distinct):
            raise ValueError("this noise is for numbers of different values")
        return [mechanism.loss(values_reached(root))]
    rows = rows_reached(root)
    if isinstance(mechanism, Quantiles):
        lattice = one.special.lattice
        if (
            not isinstance(root, GroupHistograms)
            or lattice is None
            or project_of(root).quantities[0].lattice != lattice
        ):
            raise ValueError("quantiles are those of counts on their lattice")
        if mechanism.buckets != lattice.width + 1 or rows > mechanism.rows:
            raise ValueError("a person has more rows than the mechanism is made for, or others")
    elif not isinstance(root, Aggregate) or root.totals != (Total(TotalKind.ROWS),) or rows > mechanism.each:
        raise ValueError("a person has more rows than the mechanism is made for")
    elif len({folded((value,)) for value in one.special.values}) < len(one.special.values):
        raise ValueError("a candidate is listed twice")
    loss = mechanism.loss()
    return list(loss.parts) if isinstance(loss, Batch) else [loss]


def range_loss(one: Range, mechanism: LogarithmicRange) -> Single:
    """The loss of finding bounds: a person has so many rows in the counts as count at all."""
    project = project_of(one.root)
    if project.keys or len(project.quantities) != 1 or not project.quantities[0].powers:
        raise ValueError("bounds are found from one count of powers of two")
    if rows_reached(one.root) > mechanism.sensitivity:
        raise ValueError("a person has more rows than the mechanism is made for")
    return mechanism.loss()


def released(
    engine: Engine, one: MeasuredSpecial, groups: Sequence[Group], table: Table
) -> tuple[tuple[int, ...], ...]:
    """For each group: the places of the quantiles, or of the winners among the candidates, or a noisy number."""
    rows = engine.run(one.special.root, table)
    if isinstance(one.mechanism, Laplace):
        counts = {folded(keys): totals[0] for keys, totals in rows}
        return tuple((noisy,) for noisy in one.mechanism.release([counts.get(folded(keys), 0) for keys in groups]))
    if isinstance(one.mechanism, Quantiles):
        assert one.special.lattice is not None
        low = one.special.lattice.low
        held: dict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(list)
        for keys, (value, count) in rows:
            held[folded(keys)].append((value - low, count))
        return tuple(tuple(one.mechanism.release(sorted(held[folded(keys)]))) for keys in groups)
    found = {folded(keys): totals[0] for keys, totals in rows}
    places = []
    for keys in groups:
        candidates = [found.get((*folded(keys), *folded((value,))), 0) for value in one.special.values]
        places.append(tuple(one.mechanism.release(candidates)))
    return tuple(places)


def found_range(engine: Engine, one: Range, mechanism: LogarithmicRange, table: Table) -> Bounds:
    """Bounds from noisy counts of powers of two."""
    bounds = mechanism.release({totals[0]: totals[1] for _, totals in engine.run(one.root, table)})
    return bounds.low.value, bounds.high.value
