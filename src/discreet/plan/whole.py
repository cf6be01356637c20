"""A question about one cell of public keys, measured for all cells, where that costs nothing more.

`WHERE sex = 'Male'` and `GROUP BY sex` have the same loss and the same noise a cell wherever one person's row lies in
one cell: what the row can change in all cells together is what it can change in one. So all cells are measured, the one
that was asked for is answered, and the others are kept: they answer later questions for nothing.

Nothing is assumed of that: both plans are given mechanisms at the same price, and the whole one is taken only where the
mechanisms and the loss that follows from it are the same (`costs_the_same`). The loss that is charged is that of what
is measured, as ever.

A range over several cells is not bought so: a sum of n cells has √n times the error of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from discreet.plan.measurement import Measurement, Plan
from discreet.plan.outputs import OutputKind
from discreet.plan.split import measurement
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal
from discreet.trusted.ring_a.nodes import Aggregate, Filter, Key, Project, scan_of
from discreet.trusted.ring_a.table import Table, Type

MOST_CELLS = 1_000
"""The most cells that are measured where one is asked for."""


def whole(asked: Measurement, table: Table) -> Measurement | None:
    """The measurement of all cells of the public keys that a question's equalities name one cell of, at its price; None
    where there is no such key, where the cells are too many, or where it does not cost and tell the same."""
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
    for name in named:
        column = table.column(name)
        assert column is not None
        assert column.type is not None
        keys[name] = Key(name, column.type, column.keys(), column.nulls)
    size = prod(len(key.groups or ()) for key in keys.values())
    if not named or not 1 < size <= MOST_CELLS:
        return None
    order = [column.name for column in table.columns]
    sorted_keys = tuple(sorted(keys.values(), key=lambda key: order.index(key.name)))
    rest = [one for one in conditions if one not in named.values()]
    below = Filter(scan, _joined(rest)) if rest else scan
    root = Aggregate(replace(project, child=below, keys=sorted_keys), plan.root.totals)
    outputs = tuple(one for one in plan.outputs if one.kind is not OutputKind.KEY and not one.of)
    made = Plan(plan.table, root, sorted_keys, plan.parts, outputs=outputs)
    found = measurement(made, asked.price)
    return found if costs_the_same(found, asked) else None


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
