"""How much one person can change the exact vector of a plan: a fold over its nodes.

Neighbours: two tables that differ by adding or removing all rows of one person.

Every node treats persons apart: which of a person's rows and groups survive, and the integers made of them, depend on
that person's own rows, the question, and a salt drawn afresh for each question, never on other persons' rows. So for
each fixed salt the vectors of two neighbours differ by exactly what the one person contributes, and the fold bounds
that contribution:

* `rows`   the most rows of one person that reach a node (Scan: 1 where each row is a person or one row is enforced,
           else unbounded; LimitRows: its limit);
* `cells`  the most groups that one person touches (a row touches one group, so at most `rows`; at most the number of
           groups there are; fewer where keys belong to the person: `ring_b.belonging`; LimitGroups: its limit);
* `each`   the ℓ1 norm of what one person adds to a part's vectors in one group: at most rows · (what a row adds), and
           at most what a person adds whose totals are clamped, which holds after PersonGroup whatever the rows;
* `total`  the same over all groups: at most rows · (what a row adds), as a row lies in one group, and at most
           cells · each.

What a row and a person add follows from the plan alone. A vector is Σ weight·total, so a part's norm is a convex
function of the totals, and the largest over any product of intervals is at its corners: the totals of each quantity
are taken in all their extreme states (`_states`), and the norm of the corners is computed, in integers.

ℓ2: a vector of non-negative norms with entries at most `each`, sum at most `total` and at most `cells` entries has the
largest sum of squares at an extreme point: ⌊total/each⌋ full entries and the remainder. Within a group the ℓ2 norm of
the part's vectors is at most their ℓ1 norm.

A joint part is measured in another norm than ℓ1, the largest of its blocks' ℓ1 norms (`ring_b.jointly`); `each` and
`total` bound that one, as only convexity and the triangle inequality were used. A block is at most 1 long in ℓ2 where
it is in ℓ1, so within a group ℓ2 is at most √blocks of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import assert_never

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
    Root,
    Scan,
    Total,
    TotalKind,
    Vector,
    project_of,
)
from discreet.trusted.ring_a.table import Relation, own_columns

_BY_ROW = (TotalKind.ROWS, TotalKind.NON_NULL, TotalKind.SUM)
"""Totals that are added up over rows where they have no bounds."""

_BY_PERSON = (TotalKind.MEAN_PER_PERSON, TotalKind.PERSONS_WITH_VALUE)
"""Totals that exist only where each person's rows in a group have become one."""

_MOST_STATES = 3**9
"""More corners than this are not looked at: such a part is none that a question makes."""


@dataclass(frozen=True)
class Reach:
    """The most rows and groups of one person that reach a node; None where nothing bounds them."""

    rows: int | None
    cells: int | None


@dataclass(frozen=True)
class Sensitivity:
    """What one person can add to a part: groups touched, ℓ1 norm in one group, over all, and squared ℓ2 norm; `row` is
    the ℓ1 norm of what one row adds."""

    cells: int
    each: int
    l1: int
    l2_squared: int
    row: int


def reach(node: Node) -> Reach:
    """The rows and groups of one person that reach this node."""
    if isinstance(node, Scan):
        return Reach(1, 1) if node.one_row_per_person else Reach(None, None)
    below = reach(node.child)
    if isinstance(node, Project):
        scan = node.child.child if isinstance(node.child, Filter) else node.child
        return Reach(below.rows, _least(below.rows, touched(node.keys, scan.relation)))
    if isinstance(node, LimitRows):
        return Reach(_least(below.rows, node.rows), _least(below.cells, node.rows))
    if isinstance(node, LimitGroups):
        return Reach(below.rows, _least(below.cells, node.groups))
    if isinstance(node, Filter | PersonGroup | Clip | Root):
        return below
    raise TypeError("unknown node")


def sensitivity(plan: Aggregate, part: Part) -> Sensitivity:
    """The sensitivity of one part. Raises ValueError where the plan does not bound it: such a plan may not run."""
    bounds = reach(plan)
    if bounds.cells is None:
        raise ValueError("the plan does not bound how many groups a person touches")
    a_row, a_person = added(plan, part)
    by_rows = None if bounds.rows is None else bounds.rows * a_row
    each = _least(by_rows, a_person)
    if each is None:
        raise ValueError("the plan does not bound what a person adds to a group")
    total = bounds.cells * each if by_rows is None else min(by_rows, bounds.cells * each)
    full, rest = divmod(total, each) if each else (0, 0)
    return Sensitivity(bounds.cells, each, total, len(_blocks(part)) * (full * each * each + rest * rest), a_row)


@lru_cache(maxsize=1024)
def added(plan: Aggregate, part: Part) -> tuple[int, int | None]:
    """What one row adds to a part's vectors in its group, in the part's norm, and what a person with any number of rows
    adds to one group where all its totals are clamped; None where they are not.

    A row: what a person with n ≥ 1 rows in a group adds is at most n times the first number. For totals that are added
    up over rows this is the triangle inequality. A total that is clamped to [low, high], divided by n, lies between 0
    and the clamped total nearest to one row's: a count of n rows is at most n·max(1, low), whatever n.

    Raises ValueError where a vector is made of what the plan does not compute.
    """
    clipped = isinstance(plan.child, Clip)  # below it, a person is one row in a group; without it, each row counts
    used = sorted({index for vector in part.vectors for index, _ in vector.weights})
    if not used or used[0] < 0 or used[-1] >= len(plan.totals):
        raise ValueError("a part needs vectors, made of the plan's totals")
    if sum(_blocks(part)) != len(part.vectors):
        raise ValueError("the blocks of a part are its vectors")
    totals = {index: plan.totals[index] for index in used}
    unbounded = (TotalKind.PERSONS, TotalKind.PERSONS_WITH_VALUE)
    if any(total.bounds is not None and total.kind in unbounded for total in totals.values()):
        raise ValueError("the plan clamps what it cannot clamp")
    if not clipped and any(total.bounds or total.kind in _BY_PERSON for total in totals.values()):
        raise ValueError("the plan does not bound what a person adds to a group")
    a_row = _largest(plan, part, totals, person=False)
    whole = clipped and clamped_by_person(part, plan.totals)
    return a_row, _largest(plan, part, totals, person=True) if whole else None


def clamped_by_person(part: Part, totals: Sequence[Total]) -> bool:
    """Whether a person with many rows adds no more to the part in one group than the totals' bounds allow."""
    used = [totals[index] for vector in part.vectors for index, _ in vector.weights]
    return not any(total.bounds is None and total.kind in _BY_ROW for total in used)


def _blocks(part: Part) -> tuple[int, ...]:
    return part.blocks if part.kind is PartKind.JOINT else (len(part.vectors),)


def _largest(plan: Aggregate, part: Part, totals: Mapping[int, Total], *, person: bool) -> int:
    """The largest norm of a part's vectors over the corners of what its totals can be, block by block."""
    largest, place = 0, 0
    for block in _blocks(part):
        vectors = part.vectors[place : place + block]
        place += block
        for corner in _corners(plan, vectors, totals, person=person):
            sums = (sum(weight * corner[index] for index, weight in vector.weights) for vector in vectors)
            largest = max(largest, sum(map(abs, sums)))
    return largest


def _corners(
    plan: Aggregate, vectors: Sequence[Vector], totals: Mapping[int, Total], *, person: bool
) -> Iterator[dict[int, int]]:
    """All extreme values of the totals that these vectors are made of: of totals that follow one another those that
    one value of their quantity gives, of others all combinations."""
    used = {index for vector in vectors for index, _ in vector.weights}
    tied: dict[object, dict[int, Total]] = {}
    for index in sorted(used):
        tied.setdefault(_tie(index, totals[index]), {})[index] = totals[index]
    states = [list(_states(plan, group, person=person)) for group in tied.values()]
    if prod(map(len, states)) > _MOST_STATES:
        raise ValueError("a part is made of too many totals")
    for chosen in itertools.product(*states):
        yield {index: value for state in chosen for index, value in state.items()}


def _tie(index: int, total: Total) -> object:
    """What follows one another: sums and counts of one quantity that are added up over rows; a person's mean and
    whether there is one."""
    if total.kind in (TotalKind.NON_NULL, TotalKind.SUM) and total.bounds is None:
        return total.quantity, "rows"
    return (total.quantity, "persons") if total.kind in _BY_PERSON else index


def _states(plan: Aggregate, totals: Mapping[int, Total], *, person: bool) -> Iterator[dict[int, int]]:
    """The extreme values of totals that follow one another: without any value of their quantity, then with some."""
    for some in (False, True):
        ends = [_ends(plan, total, some=some, person=person) for total in totals.values()]
        for chosen in itertools.product(*ends):
            yield dict(zip(totals, chosen, strict=True))


def _ends(plan: Aggregate, total: Total, *, some: bool, person: bool) -> tuple[int, ...]:
    """The smallest and the largest that a total can be, where its quantity has `some` value or none.

    `person`: of one person in one group, with any number of rows, where totals are clamped. Otherwise of one row; under
    a clip, of a person with n rows, divided by n. A mean, and a total that is clamped, then lies between 0 and what it
    is undivided, and 0 is the state without a value; a clamped count is at most max(1, low) a row.
    """
    if total.bounds is not None and total.bounds[0] > total.bounds[1]:
        raise ValueError("the lower bound of a total is above the upper one")
    match total.kind:
        case TotalKind.PERSONS:  # one, whatever the rows: divided by n it is less
            return (1,) if person or not isinstance(plan.child, Clip) else (0, 1)
        case TotalKind.ROWS | TotalKind.NON_NULL:
            one = int(some or total.kind is TotalKind.ROWS)
            if total.bounds is None:
                return (one,)
            low, high = total.bounds
            return (max(low, min(one, high)), high) if person else (min(0, high), max(1, low))
        case TotalKind.PERSONS_WITH_VALUE:
            _quantity(plan, total)
            return (int(some),)
        case TotalKind.SUM | TotalKind.MEAN_PER_PERSON:
            quantity = _quantity(plan, total)
            if quantity.powers:
                raise ValueError("powers of two are counted, not added up")
            lattice = quantity.lattice
            ends = total.bounds if lattice is None else total.bounds or (lattice.low, lattice.high)
            if ends is None:
                raise ValueError("the plan does not bound what a person adds to a group")
            return ends if some else (0,)
        case _:
            assert_never(total.kind)


def _quantity(plan: Aggregate, total: Total) -> Quantity:
    if total.quantity is None:
        raise ValueError(f"a total of kind {total.kind} needs a quantity")
    return project_of(plan).quantities[total.quantity]


def cell_count(keys: tuple[Key, ...]) -> int | None:
    """How many groups there are: 1 without keys, the product of public keys, None with a private one."""
    sizes = [len(groups) for key in keys if (groups := key.groups) is not None]
    return prod(sizes) if len(sizes) == len(keys) else None


def touched(keys: tuple[Key, ...], relation: Relation | None) -> int | None:
    """The most groups that one person's rows can lie in, by what the keys are; None where that does not bound them.

    Keys that belong to the person have 2^s values together, s their switches (`ring_b.belonging`); the others, with
    each of these, at most as many as there are."""
    mine = own_columns(relation) if relation is not None else {}
    rest = cell_count(tuple(key for key in keys if key.name not in mine))
    switches = frozenset().union(*(mine[key.name] for key in keys if key.name in mine))
    return _least(cell_count(keys), None if rest is None else rest << len(switches))


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)
