"""Which columns of the declared tables a question reads: followed down from what it counts, through what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from discreet.plan.measurement import Plan
from discreet.trusted.ring_a.expressions import Expression
from discreet.trusted.ring_a.nodes import Filter, project_of
from discreet.trusted.ring_a.table import Column, Relation, Table
from discreet.trusted.ring_b.relations import (
    Attributed,
    Base,
    Computed,
    Joined,
    Matched,
    Over,
    PerPerson,
    Renamed,
    RowBefore,
    Stacked,
    Where,
    columns_of,
    shape,
)

Read = tuple[Table, Column]


def columns_read(plan: Plan, table: Table) -> tuple[Read, ...]:
    """The declared columns whose values the answer depends on, with their tables, in the order of declaration."""
    names: set[str] = {key.name for key in plan.keys}
    for root in plan.roots:
        project = project_of(root)
        names |= _names(one.expression for one in project.quantities)
        if isinstance(project.child, Filter):
            names |= columns_of(project.child.predicate)
    if table.relation is None:
        found = {(table.name, name) for name in names}
    else:
        found = set(_below(table.relation, frozenset(names)))
    return tuple((base, one) for base in table.bases for one in base.columns if (base.name, one.name) in found)


def _names(expressions: Iterable[Expression | None]) -> set[str]:
    return {name for one in expressions if one is not None for name in columns_of(one)}


def _below(relation: Relation, names: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The tables and columns behind some columns of a relation, and behind which rows it has."""
    if isinstance(relation, Base):
        yield from ((relation.table.name, name) for name in names)
    elif isinstance(relation, Attributed):
        yield from _below(relation.child, names | {relation.column})
        yield from _below(relation.owner, frozenset({relation.target}))
    elif isinstance(relation, Joined):
        names |= columns_of(relation.condition) if relation.condition is not None else frozenset()
        for side in (relation.left, relation.right):
            yield from _below(side, names & _own(side))
    elif isinstance(relation, Stacked):
        places = [place for place, one in enumerate(shape(relation).columns) if one.name in names]
        for child in relation.children:
            columns = shape(child).columns
            yield from _below(child, frozenset(columns[place].name for place in places))
    elif isinstance(relation, Renamed):
        columns = shape(relation.child).columns
        pairs = zip(columns, relation.names, strict=True)
        yield from _below(relation.child, frozenset(old.name for old, new in pairs if new in names))
    elif isinstance(relation, Computed):
        yield from _below(relation.child, frozenset(_names(one for name, one in relation.columns if name in names)))
    elif isinstance(relation, PerPerson):
        made = [one for _, one in relation.keys]
        made += [one.expression for name, one, _ in relation.totals if name in names and one.expression is not None]
        yield from _below(relation.child, frozenset(_names(made)))
    elif isinstance(relation, RowBefore):
        before = {old for new, old in relation.columns if new in names}
        yield from _below(relation.child, names | before | {relation.order, *relation.within})
    elif isinstance(relation, Matched):
        yield from _below(relation.among, _own(relation.among))
        value = frozenset() if relation.value is None else columns_of(relation.value)
        yield from _below(relation.child, names | value)
    elif isinstance(relation, Over):
        more = columns_of(relation.predicate) if isinstance(relation, Where) else frozenset()
        yield from _below(relation.child, names | more)


def _own(relation: Relation) -> frozenset[str]:
    return frozenset(column.name for column in shape(relation).columns)
