"""A plan as one SELECT of the engine, built as a tree: nothing that the analyst wrote is ever forwarded as text.

The bounds that the sensitivity rests on are enforced here: each row is clamped to its lattice before the first SUM,
`LimitRows` and `LimitGroups` keep a window of each person's rows and groups (`ring_a.windows`), or where these have no
positions those with the smallest keyed numbers, and `Clip` clamps each person's totals.

The keyed numbers follow from the salt, the person, and what tells the person's rows apart (`windows.mixed_by_salt`).
That they are spread evenly matters for accuracy; for privacy it is enough that the choice reads only the salt and the
person's own rows and groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import assert_never

from sqlglot import exp

from discreet.trusted.ring_a import windows as rotating
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import Expression, Literal
from discreet.trusted.ring_a.names import column_name, named, table_name
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Clip,
    Filter,
    Key,
    LimitGroups,
    LimitRows,
    PersonGroup,
    Project,
    Root,
    Scan,
    Total,
    TotalKind,
    project_of,
)
from discreet.trusted.ring_a.quantities import clamped_column, quantity, steps_of
from discreet.trusted.ring_a.table import Relation, Table, Type, Value
from discreet.trusted.ring_a.terms import compiled, literal
from discreet.trusted.ring_a.windows import PLACE, ROWS, Salt

PERSON = "person"
"""The engine's name of whose row it is, in whatever is made of a table."""


def columns_of(table: Table) -> Mapping[str, exp.Expression]:
    """How each declared column of a table is written in the engine."""
    return {column.name: exp.column(column_name(index)) for index, column in enumerate(table.columns)}


def statement(plan: Root, table: Table, salt: Salt) -> exp.Select:
    """The SELECT whose rows are a group's keys followed by its totals, all exact integers."""
    if not isinstance(plan, Aggregate):
        return other_statement(plan, table, salt)
    project = project_of(plan)
    keys = [exp.column(f"k{index}") for index in range(len(project.keys))]
    if isinstance(plan.child, Clip):
        grouped, clamped = _bounded_groups(plan, table, salt)
        totals = [_over_persons(total, index, clamped=clamped) for index, total in enumerate(plan.totals)]
    else:
        grouped = rows_that_count(plan.child, table, salt)
        totals = [_or_zero(total_of(total)) for total in plan.totals]
    select = exp.select(*keys, *totals).from_(grouped.subquery("bounded", copy=False), copy=False)
    return select.group_by(*(key.copy() for key in keys), copy=False) if keys else select


Grouped = tuple[exp.Select, bool]
"""Totals of persons in groups, at most so many groups of each; and whether sums are clamped to their bounds already."""
Form = Callable[[Aggregate, Table, Salt], Grouped | None]
_READY: list[Form] = []


def ready(form: Form) -> Form:
    """Makes a form known that limits groups by what the engine keeps ready beside a table, or gives None: ring B's.
    Without one each question finds and ranks a person's groups itself."""
    _READY.append(form)
    return form


@singledispatch
def other_statement(plan: Root, table: Table, salt: Salt) -> exp.Select:
    """The SELECT of a root that is no `Aggregate`: ring B's."""
    raise TypeError(f"no statement is known of {type(plan).__name__} over {table.name}, {salt}")


@dataclass(frozen=True)
class RelationRows:
    """What ring B makes of a relation: its SELECT, how its columns are written by whoever selects from it, whether it
    has a person, and the types of the columns r0, r1, … that tell a person's rows apart."""

    select: exp.Select
    columns: Mapping[str, exp.Expression]
    person: bool
    ids: tuple[Type, ...]


Keep = Callable[[Table], exp.Expression | None]
"""Which rows of a declared table count, by the person's own rows alone; None where all do."""


@singledispatch
def relation_rows(relation: Relation, predicate: Expression | None, keep: Keep) -> RelationRows:
    """The rows of a relation for which the predicate is true: ring B's."""
    raise TypeError(f"no rows are known of {type(relation).__name__}, {predicate}, {keep}")


def _bounded_groups(plan: Aggregate, table: Table, salt: Salt) -> Grouped:
    """Each person's totals in each group that counts."""
    assert isinstance(plan.child, Clip)
    for form in _READY:
        if (grouped := form(plan, table, salt)) is not None:
            return grouped
    inner = plan.child.child
    groups = inner if isinstance(inner, PersonGroup) else inner.child
    project = project_of(plan)
    select = person_groups(rows_that_count(groups.child, table, salt), len(project.keys), plan.totals)
    if isinstance(inner, LimitGroups):
        keys = [(exp.column(f"k{index}"), key.type) for index, key in enumerate(project.keys)]
        select = _limited(select, keys, inner.groups, salt)
    return select, False


def rows_that_count(node: Project | LimitRows, table: Table, salt: Salt, *, also: Sequence[str] = ()) -> exp.Select:
    """Person, keys and quantities of each row that counts, and such other columns of the engine's own."""
    project = node.child if isinstance(node, LimitRows) else node
    scan = project.child.child if isinstance(project.child, Filter) else project.child
    predicate = project.child.predicate if isinstance(project.child, Filter) else None
    columns, source, person, ids = _source(scan, predicate, table, partial(kept_rows, salt))
    selected = [named(columns[key.name].copy(), f"k{index}") for index, key in enumerate(project.keys)]
    steps = {key: exp.column(name) for key, (_, name) in steps_of(table).items()} if scan.relation is None else {}
    selected += [named(quantity(one, columns, steps), f"q{index}") for index, one in enumerate(project.quantities)]
    conditions = [one for key in project.keys if (one := _key_condition(key, columns)) is not None]
    if predicate is not None and scan.relation is None:
        conditions.append(compiled(predicate, columns))
    if person is not None:
        selected.append(named(person.copy(), PERSON))
        conditions.append(not_null(person))
        if isinstance(node, LimitRows) and not rotating.over_rows(node):
            selected += [column.copy() for column, _ in ids]
    selected += [exp.column(name) for name in also]
    if not selected:
        selected.append(named(exp.Literal.number(1), "one"))
    select = exp.select(*selected).from_(source, copy=False)
    for condition in conditions:
        select = select.where(condition, copy=False)
    if isinstance(node, LimitRows) and rotating.over_rows(node):
        return select.where(rotating.kept(PLACE, ROWS, node.rows, salt), copy=False)
    if isinstance(node, LimitRows):
        select = _limited(select, ids, node.rows, salt)
    return select


def kept_rows(salt: Salt, table: Table) -> exp.Expression | None:
    """The rows of a declared table that count below a join or a subquery: a window of each person's rows, the same
    wherever the table is read."""
    if table.public or table.one_row_per_person or table.rows_per_person is None:
        return None
    return rotating.kept(PLACE, ROWS, table.rows_per_person, salt)


def _source(
    scan: Scan, predicate: Expression | None, table: Table, keep: Keep
) -> tuple[Mapping[str, exp.Expression], exp.Expression, exp.Expression | None, list[rotating.Typed]]:
    """What is read: how its columns are written, the person, and what tells one person's rows apart."""
    if scan.relation is None:
        columns = columns_of(table)
        person = columns[scan.person] if scan.person is not None else None
        return columns, exp.table_(table_name(table)), person, []  # windows tell its rows apart
    rows = relation_rows(scan.relation, predicate, keep)
    kinds = () if scan.one_row_per_person else rows.ids
    ids: list[rotating.Typed] = [(exp.column(f"r{i}"), kind) for i, kind in enumerate(kinds)]
    person = exp.column(PERSON) if rows.person else None
    return rows.columns, rows.select.subquery("source", copy=False), person, ids


def not_null(node: exp.Expression) -> exp.Expression:
    """The condition that this is not NULL, on a copy of it."""
    return exp.Not(this=exp.Is(this=node.copy(), expression=exp.null()))


def _key_condition(key: Key, columns: Mapping[str, exp.Expression]) -> exp.Expression | None:
    """Which rows have a key; None where all do."""
    column = columns[key.name]
    if key.values is None or (key.type is Type.BOOLEAN and len(key.values) == 2):
        return None if key.null else not_null(column)
    if not key.values:
        return exp.Is(this=column.copy(), expression=exp.null())
    declared = _declared(key, key.values, column)
    if not key.null:
        return declared
    return exp.Paren(this=exp.Or(this=exp.Is(this=column.copy(), expression=exp.null()), expression=declared))


def _declared(key: Key, values: tuple[Value, ...], column: exp.Expression) -> exp.Expression:
    if key.type is Type.INTEGER:
        whole = sorted(value for value in values if isinstance(value, int))
        if whole[-1] - whole[0] + 1 == len(whole):
            low, high = (literal(Literal(bound, Type.INTEGER)) for bound in (whole[0], whole[-1]))
            return exp.Between(this=column.copy(), low=low, high=high)
    return exp.In(this=column.copy(), expressions=[literal(Literal(value, key.type)) for value in values])


def total_of(total: Total) -> exp.Expression:
    """A total over rows; NULL where a sum has nothing to add."""
    column = exp.column(f"q{total.quantity}")
    count = exp.Count(this=column)
    match total.kind:
        case TotalKind.ROWS | TotalKind.PERSONS:
            return exp.Count(this=exp.Star())
        case TotalKind.NON_NULL:
            return count
        case TotalKind.SUM:
            return function("whole_sum", column)
        case TotalKind.MEAN_PER_PERSON:
            value = function("whole_quotient", function("whole_sum", column.copy()), count.copy())
        case TotalKind.PERSONS_WITH_VALUE:
            value = exp.Literal.number(1)
        case _:
            assert_never(total.kind)
    some = exp.GT(this=count, expression=exp.Literal.number(0))  # of one person in one group: NULL without a value
    return exp.Case(ifs=[exp.If(this=some, true=value)])


def _or_zero(node: exp.Expression) -> exp.Expression:
    return exp.Coalesce(this=node, expressions=[exp.Literal.number(0)])


def person_groups(rows: exp.Select, keys: int, totals: Sequence[Total], also: Sequence[exp.Expr] = ()) -> exp.Select:
    """Each person's totals in each group of rows with so many keys; and other aggregates of the engine's own."""
    person, columns = exp.column(PERSON), [exp.column(f"k{index}") for index in range(keys)]
    selected = [
        named(total_of(total), f"a{index}") for index, total in enumerate(totals) if total.kind is not TotalKind.PERSONS
    ]
    return (
        exp.select(person, *columns, *selected, *also)
        .from_(rows.subquery("row", copy=False), copy=False)
        .group_by(person.copy(), *(column.copy() for column in columns), copy=False)
    )


def _over_persons(total: Total, index: int, *, clamped: bool) -> exp.Expression:
    """A total over persons, each clamped to the bounds, but for sums that are `clamped` already."""
    if total.kind is TotalKind.PERSONS:
        return exp.Count(this=exp.Star())
    within = clamped and total.kind is TotalKind.SUM
    return _or_zero(function("whole_sum", exp.column(f"a{index}") if within else within_bounds(total, index)))


def within_bounds(total: Total, index: int) -> exp.Expression:
    """A person's total in a group, clamped to its bounds; NULL stays NULL."""
    column = exp.column(f"a{index}")
    if total.bounds is None:
        return column
    return clamped_column(column, *total.bounds)


def _limited(source: exp.Select, among: Sequence[rotating.Typed], most: int, salt: Salt) -> exp.Select:
    """Keeps, of each person, the `most` rows with the smallest keyed numbers of what tells them apart."""
    rank = rotating.rank(exp.column(PERSON), [node for node, _ in among])
    mixed = rotating.mixed_by_salt(source, exp.column(PERSON), among, salt)
    candidates = mixed.subquery("candidate", copy=False)
    ranked = exp.select(exp.Star(), named(rank, "rank_of_person")).from_(candidates, copy=False)
    between = exp.Between(this=exp.column("rank_of_person"), low=exp.Literal.number(1), high=exp.Literal.number(most))
    return exp.select(exp.Star()).from_(ranked.subquery("ranked", copy=False), copy=False).where(between, copy=False)
