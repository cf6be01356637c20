"""A plan as one SELECT of the engine, built as a tree: nothing that the analyst wrote is ever forwarded as text.

The bounds that the sensitivity rests on are enforced here: each row is clamped to its lattice before the first SUM,
`LimitRows` and `LimitGroups` keep the smallest keyed hashes of each person, `Clip` clamps each person's totals.

The keyed hash is hash(hash(salt, person, …)): one hash alone is not uniform in DuckDB. Uniformity matters for accuracy;
for privacy it is enough that the choice reads only the salt and the person's own rows and groups.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from discreet.catalog.model import Table, Type
from discreet.engines.functions import compiled, literal
from discreet.engines.names import ROW_NUMBER, column_name, table_name
from discreet.engines.quantities import clamped, quantity
from discreet.engines.relations import PERSON, rows_of
from discreet.plan.expressions import Literal
from discreet.plan.nodes import (
    Aggregate,
    Clip,
    Filter,
    Key,
    LimitGroups,
    LimitRows,
    PersonGroup,
    Project,
    Scan,
    Total,
    project_of,
)


def columns_of(table: Table) -> Mapping[str, exp.Expression]:
    """How each declared column of a table is written in the engine."""
    return {column.name: exp.column(column_name(index)) for index, column in enumerate(table.columns)}


def statement(plan: Aggregate, table: Table, salt: str) -> exp.Select:
    """The SELECT whose rows are a group's keys followed by its totals, all exact integers."""
    project = project_of(plan)
    keys = [exp.column(f"k{index}") for index in range(len(project.keys))]
    if isinstance(plan.child, Clip):
        inner = plan.child.child
        grouped = _person_groups(inner.child if isinstance(inner, LimitGroups) else inner, plan.totals, table, salt)
        if isinstance(inner, LimitGroups):
            grouped = _limited(grouped, [exp.column(PERSON)], [*keys], inner.groups, salt)
        totals = [_over_persons(total, index) for index, total in enumerate(plan.totals)]
    else:
        grouped = _rows(plan.child, table, salt)
        totals = [_or_zero(_total(total)) for total in plan.totals]
    select = exp.select(*keys, *totals).from_(grouped.subquery("bounded"))
    return select.group_by(*(key.copy() for key in keys)) if keys else select


def _rows(node: Project | LimitRows, table: Table, salt: str) -> exp.Select:
    """Person, keys and quantities of each row that counts."""
    project = node.child if isinstance(node, LimitRows) else node
    scan = project.child.child if isinstance(project.child, Filter) else project.child
    columns, source, person, ids = _source(scan, table)
    selected = [exp.alias_(columns[key.name].copy(), f"k{index}") for index, key in enumerate(project.keys)]
    selected += [exp.alias_(quantity(one, columns), f"q{index}") for index, one in enumerate(project.quantities)]
    conditions = [_key_condition(key, columns) for key in project.keys]
    if isinstance(project.child, Filter):
        conditions.append(compiled(project.child.predicate, columns))
    if person is not None:
        selected.append(exp.alias_(person.copy(), PERSON))
        conditions.append(_not_null(person))
        selected += [column.copy() for column in ids]
    if not selected:
        selected.append(exp.alias_(exp.Literal.number(1), "one"))
    select = exp.select(*selected).from_(source)
    for condition in conditions:
        select = select.where(condition)
    if isinstance(node, LimitRows):
        select = _limited(select, [exp.column(PERSON)], ids, node.rows, salt)
    return select


def _source(
    scan: Scan, table: Table
) -> tuple[Mapping[str, exp.Expression], exp.Expression, exp.Expression | None, list[exp.Expression]]:
    """What is read: how its columns are written, the person, and what tells one person's rows apart."""
    if scan.relation is None:
        columns = columns_of(table)
        person = columns[scan.person] if scan.person is not None else None
        several = person is not None and not scan.one_row_per_person
        return columns, exp.to_table(table_name(table)), person, [exp.column(ROW_NUMBER)] if several else []
    rows = rows_of(scan.relation)
    ids: list[exp.Expression] = [] if scan.one_row_per_person else [exp.column(f"r{i}") for i in range(rows.ids)]
    person = exp.column(PERSON) if rows.person else None
    return rows.columns(), rows.select.subquery("source"), person, ids


def _not_null(node: exp.Expression) -> exp.Expression:
    return exp.Not(this=exp.Is(this=node.copy(), expression=exp.null()))


def _key_condition(key: Key, columns: Mapping[str, exp.Expression]) -> exp.Expression:
    column = columns[key.name]
    if key.values is None or key.type is Type.BOOLEAN:
        return _not_null(column)
    if key.type is Type.INTEGER:
        whole = sorted(value for value in key.values if isinstance(value, int))
        if whole[-1] - whole[0] + 1 == len(whole):
            low, high = (literal(Literal(bound, Type.INTEGER)) for bound in (whole[0], whole[-1]))
            return exp.Between(this=column.copy(), low=low, high=high)
    return exp.In(this=column.copy(), expressions=[literal(Literal(value, key.type)) for value in key.values])


def _total(total: Total) -> exp.Expression:
    """A total over rows; NULL where a sum has nothing to add."""
    if total.kind in ("rows", "persons"):
        return exp.Count(this=exp.Star(), big_int=True)
    column = exp.column(f"q{total.quantity}")
    return exp.Count(this=column, big_int=True) if total.kind == "present" else exp.Sum(this=column)


def _or_zero(node: exp.Expression) -> exp.Expression:
    return exp.Coalesce(this=node, expressions=[exp.Literal.number(0)])


def _person_groups(node: PersonGroup, totals: tuple[Total, ...], table: Table, salt: str) -> exp.Select:
    """Each person's totals in each group."""
    keys = [exp.column(f"k{index}") for index in range(len(project_of(node).keys))]
    selected = [exp.alias_(_total(total), f"a{index}") for index, total in enumerate(totals) if total.kind != "persons"]
    person = exp.column(PERSON)
    rows = _rows(node.child, table, salt)
    return (
        exp.select(person, *keys, *selected)
        .from_(rows.subquery("row"))
        .group_by(person.copy(), *(key.copy() for key in keys))
    )


def _over_persons(total: Total, index: int) -> exp.Expression:
    """A total over persons, each clamped to the bounds."""
    if total.kind == "persons":
        return exp.Count(this=exp.Star(), big_int=True)
    column: exp.Expression = exp.column(f"a{index}")
    if total.bounds is not None:
        low, high = (exp.Literal.number(bound) for bound in total.bounds)
        nothing = exp.Is(this=column.copy(), expression=exp.null())
        inside = exp.cast(clamped(column, low, high), "BIGINT")
        column = exp.Case(ifs=[exp.If(this=nothing, true=exp.null())], default=inside)
    return _or_zero(exp.Sum(this=column))


def _limited(
    source: exp.Select, person: list[exp.Expression], among: list[exp.Expression], most: int, salt: str
) -> exp.Select:
    """Keeps, of each person, the `most` rows with the smallest keyed hash of what tells them apart."""
    inner = exp.Anonymous(
        this="hash", expressions=[exp.Literal.string(salt), *(node.copy() for node in (*person, *among))]
    )
    outer = exp.Anonymous(this="hash", expressions=[inner])
    order = exp.Order(expressions=[exp.Ordered(this=node) for node in (outer, *(node.copy() for node in among))])
    rank = exp.Window(this=exp.RowNumber(), partition_by=[node.copy() for node in person], order=order)
    ranked = exp.select(exp.Star(), exp.alias_(rank, "rank_of_person")).from_(source.subquery("candidate"))
    between = exp.Between(this=exp.column("rank_of_person"), low=exp.Literal.number(1), high=exp.Literal.number(most))
    return exp.select(exp.Star()).from_(ranked.subquery("ranked")).where(between)
