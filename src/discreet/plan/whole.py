"""A question about one cell of public keys, measured for all cells, where that costs nothing more.

`WHERE sex = 'Male'` and `GROUP BY sex` have the same loss and the same noise a cell wherever one person's row lies in
one cell: what the row can change in all cells together is what it can change in one. So all cells are measured, the one
that was asked for is answered, and the others are kept: they answer later questions for nothing.

Nothing is assumed of that: both plans are given mechanisms at the same price, and the whole one is taken only where the
mechanisms and the loss that follows from it are the same (`costs_the_same`). The loss that is charged is that of what
is measured, as ever.

A range over several cells is not bought so: a sum of n cells has √n times the error of one.

How many cells. What bounds them is no price: it is the time of the question, of the later ones that read its vector,
and the ledger's size. So at most `MOST_CELLS` are measured. Where the columns that are named have more, some conditions
stay as they are, and the cells of the others are measured among those rows alone: of all choices that fit, the one with
the most cells. The question's own cell is one of them either way, and a person has one row in one of them at most.

Why nothing coarser. Sums over many cells, as residuals of marginals, could be measured beside the cell, so that
something is kept of domains with too many cells. At no further cost they tell nothing that cells do not. Let sums w·x
of the cells x be measured with independent Gaussian noise of deviations s, and let whoever lies in the cell c lose at
most what the question costs alone: Σ (w_c/s)² ≤ μ². An unbiased estimate Σ a (w·x + noise) of x_c has Σ a w_c = 1, so
by Cauchy and Schwarz the variance Σ a² s² ≥ 1/μ², which is that of the cell measured alone; and as little only where
each a s² is w_c/μ². Then, as Σ a w_d = 0 for every other cell d, Σ w_c w_d/s² = 0: what is known of c and of the others
is uncorrelated, and a sum over both is known no better than from c alone and the others alone. With Laplace noise of
scales b the losses are Σ |w_c|/b ≤ ε, the least variance is 2/ε² by the same steps, and the only sum left with a weight
on c is c itself. What is free besides c is what leaves c out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from discreet.plan.measurement import Measurement, Plan
from discreet.plan.outputs import OutputKind
from discreet.plan.split import measurement
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.nodes import Aggregate, Filter, Key, Project, scan_of
from discreet.trusted.ring_a.table import Table, Type

MOST_CELLS = 5_000
"""The most cells that are measured where one is asked for: of millions of rows a question takes some tenths of a second
longer then, once, and its vector some tens of kilobytes. With twenty times as many the engine takes seconds, more than
half of a service's slot, and what is late has failed."""

MOST_VALUES = 1_000
"""A column with more values stays as it is: what is put together of its cells takes seconds later, each time. Whole
numbers between bounds have no public keys at all where there are more of them (`Column.keys`)."""

MOST_LETTERS = 1_000
"""Names of so many letters at most, as an entry begins with them and is found by its beginning."""

MOST_NUMBERS = 20_000
"""The most numbers in all these cells, where each has several, as sums of columns."""


def whole(asked: Measurement, table: Table) -> Measurement | None:
    """The measurement of all cells of the public keys that a question's equalities name one cell of, at its price; of
    those of these keys that have few enough. None where there is no such key, or where it does not cost and tell the
    same."""
    plan = asked.plan
    project = plan.root.child
    if not (isinstance(project, Project) and isinstance(project.child, Filter) and plan.parts):
        return None
    scan = scan_of(plan.root)
    if plan.private or plan.specials or plan.ranges or plan.least != 1 or scan.relation or not scan.one_row_per_person:
        return None
    conditions = conjuncts(project.child.predicate)
    keys = {key.name: key for key in plan.keys}
    named = {name: one for one in conditions if (name := _cell(one, table)) is not None}
    if len(named) < sum(_cell(one, table) is not None for one in conditions):
        return None  # two values of one column: no row has both
    columns = {column.name: column for column in table.columns}
    sizes = {name: len(columns[name].keys() or ()) for name in columns if name in named}
    sizes = {name: size for name, size in sizes.items() if size <= MOST_VALUES}
    if len(json.dumps([*keys, *sizes])) > MOST_LETTERS:
        return None
    grouped = prod(len(key.groups or ()) for key in plan.keys if key.name not in sizes)
    vectors = sum(len(part.vectors) for part in plan.parts)
    chosen = _most(sizes, min(MOST_CELLS, MOST_NUMBERS // vectors) // max(1, grouped))
    for name in chosen:
        column = columns[name]
        assert column.type is not None
        keys[name] = Key(name, column.type, column.keys(), column.nulls)
    if not chosen or prod(len(key.groups or ()) for key in keys.values()) <= 1:
        return None
    order = [column.name for column in table.columns]
    sorted_keys = tuple(sorted(keys.values(), key=lambda key: order.index(key.name)))
    rest = [one for one in conditions if one not in [named[name] for name in chosen]]
    below = Filter(scan, _joined(rest)) if rest else scan
    root = Aggregate(replace(project, child=below, keys=sorted_keys), plan.root.totals)
    outputs = tuple(one for one in plan.outputs if one.kind is not OutputKind.KEY and not one.of)
    made = Plan(plan.table, root, sorted_keys, plan.parts, outputs=outputs)
    found = measurement(made, asked.price)
    return found if costs_the_same(found, asked) else None


def _most(sizes: Mapping[str, int], room: int) -> tuple[str, ...]:
    """Of columns with so many values, those that have the most cells together that there is room for. The same for
    whoever names the same columns, in whatever order."""
    found: dict[int, tuple[str, ...]] = {1: ()}  # by how many cells they have
    for name, size in sizes.items():
        more = {cells * size: (*names, name) for cells, names in found.items() if cells * size <= room}
        found |= more
    return found[max(found)]


def conjuncts(predicate: Expression) -> list[Expression]:
    """The conditions that a predicate joins by AND, each once."""
    if isinstance(predicate, Call) and predicate.operator == "and":
        return list(dict.fromkeys(one for argument in predicate.arguments for one in conjuncts(argument)))
    return [predicate]


def costs_the_same(one: Measurement, other: Measurement) -> bool:
    """Whether two measurements have the same noise on each number, and the same loss."""
    return one.mechanisms == other.mechanisms and one.loss == other.loss


def _cell(condition: Expression, table: Table) -> str | None:
    """The column that a condition says one public value of."""
    if not (isinstance(condition, Call) and condition.operator == "equal"):
        return None
    source, constant = condition.arguments
    if not (isinstance(source, ColumnOf) and isinstance(constant, Literal)) or source.type is Type.NUMBER:
        return None
    column = table.column(source.name)
    if column is None or column.type is not source.type or constant.type is not source.type:
        return None
    return column.name if constant.value in (column.keys() or ()) else None


def _joined(conditions: Sequence[Expression]) -> Expression:
    whole = conditions[0]
    for one in conditions[1:]:
        whole = Call("and", (whole, one), Type.BOOLEAN)
    return whole
