"""How much one person can change the exact vector of a plan: a fold over its nodes.

Neighbours: two tables that differ by adding or removing all rows of one person.

Every node treats persons apart: which of a person's rows and groups survive, and the integers made of them, depend on
that person's own rows, the question, and a salt drawn afresh for each question, never on other persons' rows. So for
each fixed salt the vectors of two neighbours differ by exactly what the one person contributes, and the fold bounds
that contribution:

* `rows`   the most rows of one person that reach a node (Scan: 1 where each row is a person or one row is enforced,
           else unbounded; LimitRows: its limit);
* `cells`  the most groups that one person touches (a row touches one group, so at most `rows`; at most the number of
           groups there are; fewer where keys belong to the person: `plan.belonging`; LimitGroups: its limit);
* `each`   the ℓ1 norm of what one person adds to a part's vectors in one group: at most rows · row_bound, since a row
           adds at most row_bound; at most the clip, which holds after PersonGroup whatever the rows;
* `total`  the same over all groups: at most rows · row_bound, as a row lies in one group, and at most cells · each.

ℓ2: a vector of non-negative norms with entries at most `each`, sum at most `total` and at most `cells` entries has the
largest sum of squares at an extreme point: ⌊total/each⌋ full entries and the remainder. Within a group the ℓ2 norm of
the part's vectors is at most their ℓ1 norm.

A joint part is measured in another norm than ℓ1 (`plan.jointly`); `each` and `total` bound that one, as only the
triangle inequality was used. Its ball's blocks are at most 1 long in ℓ2, so within a group ℓ2 is at most √blocks of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from discreet.plan.belonging import own
from discreet.plan.nodes import (
    Aggregate,
    Clip,
    Distinct,
    Filter,
    Histogram,
    Key,
    LimitGroups,
    LimitRows,
    Node,
    Part,
    PersonGroup,
    Project,
    Scan,
)
from discreet.plan.relations import Relation


@dataclass(frozen=True)
class Reach:
    """The most rows and groups of one person that reach a node; None where nothing bounds them."""

    rows: int | None
    cells: int | None


@dataclass(frozen=True)
class Sensitivity:
    """What one person can add to a part: groups touched, ℓ1 norm in one group, over all, and squared ℓ2 norm."""

    cells: int
    each: int
    l1: int
    l2_squared: int


def reach(node: Node) -> Reach:
    """The rows and groups of one person that reach this node."""
    if isinstance(node, Scan):
        return Reach(1, 1) if node.person is None or node.one_row_per_person else Reach(None, None)
    below = reach(node.child)
    if isinstance(node, Project):
        scan = node.child.child if isinstance(node.child, Filter) else node.child
        return Reach(below.rows, _least(below.rows, touched(node.keys, scan.relation)))
    if isinstance(node, LimitRows):
        return Reach(_least(below.rows, node.rows), _least(below.cells, node.rows))
    if isinstance(node, LimitGroups):
        return Reach(below.rows, _least(below.cells, node.groups))
    if isinstance(node, Filter | PersonGroup | Clip | Aggregate | Histogram | Distinct):
        return below
    raise TypeError("unknown node")


def sensitivity(plan: Aggregate, part: Part) -> Sensitivity:
    """The sensitivity of one part. Raises ValueError where the plan does not bound it: such a plan may not run."""
    bounds = reach(plan)
    if bounds.cells is None:
        raise ValueError("the plan does not bound how many groups a person touches")
    by_rows = None if bounds.rows is None else bounds.rows * part.row_bound
    clipped = None
    if isinstance(plan.child, Clip):  # below it, a person is one row in a group; without it, each row counts
        clipped = part.bound
        if part.kind in ("persons", "keys"):
            by_rows, clipped = bounds.cells, 1
    each = _least(by_rows, clipped)
    if each is None:
        raise ValueError("the plan does not bound what a person adds to a group")
    total = bounds.cells * each if by_rows is None else min(by_rows, bounds.cells * each)
    full, rest = divmod(total, each) if each else (0, 0)
    blocks = len(part.blocks) if part.kind == "joint" else 1
    return Sensitivity(bounds.cells, each, total, blocks * (full * each * each + rest * rest))


def cell_count(keys: tuple[Key, ...]) -> int | None:
    """How many groups there are: 1 without keys, the product of public keys, None with a private one."""
    sizes = [len(groups) for key in keys if (groups := key.groups) is not None]
    return prod(sizes) if len(sizes) == len(keys) else None


def touched(keys: tuple[Key, ...], relation: Relation | None) -> int | None:
    """The most groups that one person's rows can lie in, by what the keys are; None where that does not bound them.

    Keys that belong to the person have 2^s values together, s their switches (`plan.belonging`); the others, with each
    of these, at most as many as there are."""
    mine = own(relation) if relation is not None else {}
    rest = cell_count(tuple(key for key in keys if key.name not in mine))
    switches = frozenset().union(*(mine[key.name] for key in keys if key.name in mine))
    return _least(cell_count(keys), None if rest is None else rest << len(switches))


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)


def rows_reached(root: Node) -> int:
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
