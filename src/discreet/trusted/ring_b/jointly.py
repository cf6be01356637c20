"""Joint measurement of several aggregates of the same rows, with noise fitted to what one row can change in all of
them.

One row (or, where persons are clamped, one person in a group) adds to a group's vector

    N = W                               for being there;
    c = multiple·(2x − low − high)      for each column, with multiple·(high − low) ≤ W, so |c| ≤ W;
    a = W and c = 0                     instead, where the column has no value and that is measured (`absent`).

The unit is the row's own: what it adds lies in the ball of radius W of the norm

    ‖(N, a₁, c₁, a₂, c₂, …)‖ = max(|N|, |a₁| + |c₁|, |a₂| + |c₂|, …),

as |a| + |c| ≤ W in either case. It is a norm (the largest of norms of blocks), so rows add up by the triangle
inequality, and R rows are at most R·W: the fold of `ring_a.sensitivity` bounds it as it bounds ℓ1. Nothing of this
rests on what the owner declared of NULLs: that only decides whether a is measured.

From the vectors: rows n = N/W; rows with a value p = (N − a)/W; Σ(2x − low − high) = c/multiple over those, hence
Σx = (c/multiple + (low + high)·p)/2, and the mean. A SUM without an AVG needs no a: rows without a value count as 0,
and the interval is widened to contain 0. COUNT(x) is the SUM of 1 over the rows with a value. All exact, in integers.

Why together: noise of that ball's shape has E|N| ≈ E|c| ≈ (d + 1)/2 units of W/ε with d numbers, where a split of ε
over P parts has P or more; and centred at the middle, c moves as far as N does, no farther. Two numbers give the same
as Σ(x − low) and Σ(high − x) at full price each, which is that square turned by 45°.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.loss import Pure
from discreet.trusted.ring_a.measurement import part_loss
from discreet.trusted.ring_a.nodes import Axis, Part, PartKind, Vector
from discreet.trusted.ring_a.sensitivity import Sensitivity
from discreet.trusted.ring_b.joint import Ball

MOST = 12
"""The most numbers that are measured together."""

UNIT = 1 << 20
"""W is at least this, and at least 2^12 times a column's width: what rounding `multiple` down loses is below 1/4096."""


@dataclass(frozen=True)
class Summand:
    """A column to be: how rows are added up, their lattice, and which total counts the rows with a value.

    `present` is None where rows without a value count as 0.
    """

    sum: int
    lattice: Lattice
    present: int | None = None
    absent: bool = False

    @property
    def size(self) -> int:
        """How many numbers it takes."""
        return 2 if self.absent else 1


def joint_part(summands: Sequence[Summand], rows: int) -> Part:
    """The part that measures these columns and the total `rows`."""
    unit = max(UNIT, *(1 << (summand.lattice.width.bit_length() + 12) for summand in summands))
    vectors, axes = [Vector(((rows, unit),))], []
    for summand in summands:
        grid = summand.lattice
        multiple = unit // grid.width
        middle = multiple * (grid.low + grid.high)
        if summand.absent:
            assert summand.present is not None
            vectors.append(Vector(((rows, unit), (summand.present, -unit))))
        counted = rows if summand.present is None else summand.present
        axes.append(Axis(grid, len(vectors), multiple, summand.absent))
        vectors.append(Vector(((summand.sum, 2 * multiple), (counted, -middle))))
    return Part(PartKind.JOINT, tuple(vectors), axes=tuple(axes))


def count_of(part: Part, axis: Axis | None = None) -> tuple[Fraction, ...]:
    """The weights that give the number of rows, or of rows with a value in a column."""
    ((_, unit),) = part.vectors[0].weights  # what one row, or one person, adds to the first vector
    weights = [Fraction(0)] * len(part.vectors)
    weights[0] = Fraction(1, unit)
    if axis is not None and axis.absent:
        weights[axis.place - 1] = -Fraction(1, unit)
    return tuple(weights)


def sum_of(part: Part, axis: Axis, step: Fraction | None = None) -> tuple[Fraction, ...]:
    """The weights of a column's sum, in units of `step`, the lattice's by default."""
    grid = axis.lattice
    weights = [(grid.low + grid.high) * weight / 2 for weight in count_of(part, axis)]
    weights[axis.place] = Fraction(1, 2 * axis.multiple)
    return tuple((grid.step if step is None else step) * weight for weight in weights)


def ends_of(part: Part, axis: Axis) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """The weights of Σ(x − low) and Σ(high − x) in steps: the mean lies at the first over both, on [low, high]."""
    grid = axis.lattice
    total, count = sum_of(part, axis, Fraction(1)), count_of(part, axis)
    above = tuple(one - grid.low * other for one, other in zip(total, count, strict=True))
    below = tuple(grid.high * other - one for one, other in zip(total, count, strict=True))
    return above, below


def mean_of(part: Part, axis: Axis) -> tuple[Fraction, ...]:
    """The marker of an output that is a column's mean."""
    return tuple(Fraction(int(place == axis.place)) for place in range(len(part.vectors)))


def axis_of(part: Part, weights: Sequence[Fraction]) -> Axis:
    """The column that an output's weights are of."""
    return next(axis for axis in part.axes if weights[axis.place])


def with_zero(grid: Lattice) -> Lattice:
    """The lattice, widened to contain 0."""
    return Lattice(grid.step, min(grid.low, 0), max(grid.high, 0))


@part_loss.register
def loss_of_part(mechanism: Ball, part: Part, bound: Sensitivity) -> Pure:
    """The loss of a joint part. Raises ValueError where the joint noise was made for another part."""
    if part.kind is not PartKind.JOINT or mechanism.blocks != part.blocks:
        raise ValueError("the joint noise was made for another part")
    return mechanism.loss(bound.l1)
