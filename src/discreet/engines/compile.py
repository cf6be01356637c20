"""A plan as one SELECT of the engine, built as a tree: nothing that the analyst wrote is ever forwarded as text.

The bounds that the sensitivity rests on are enforced here: each row is clamped to its lattice before the first SUM,
`LimitRows` and `LimitGroups` keep the smallest keyed hashes of each person, `Clip` clamps each person's totals.

The keyed hash is hash(hash(salt, person, …)): one hash alone is not uniform in DuckDB. Uniformity matters for accuracy;
for privacy it is enough that the choice reads only the salt and the person's own rows and groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from discreet.catalog.model import Table, Type
from discreet.engines.functions import as_double, compiled, double_literal, is_whole, literal
from discreet.plan.expressions import Call, Literal
from discreet.plan.lattice import Lattice
from discreet.plan.nodes import (
    Aggregate,
    Clip,
    Filter,
    Key,
    LimitGroups,
    LimitRows,
    PersonGroup,
    Project,
    Quantity,
    Total,
    project_of,
)

ROW_NUMBER = "row_of_person"
"""The engine's column that numbers the rows of one person, in a table where a person may have several."""


def column_name(index: int) -> str:
    """The engine's name of the declared column at this position."""
    return f"c{index}"


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
            grouped = _limited(grouped, [exp.column("person")], [*keys], inner.groups, salt)
        totals = [_over_persons(total, index) for index, total in enumerate(plan.totals)]
    else:
        grouped = _rows(plan.child, table, salt)
        totals = [_or_zero(_total(total)) for total in plan.totals]
    select = exp.select(*keys, *totals).from_(grouped.subquery("bounded"))
    return select.group_by(*(key.copy() for key in keys)) if keys else select


def _rows(node: Project | LimitRows, table: Table, salt: str) -> exp.Select:
    """Person, keys and quantities of each row that counts."""
    project = node.child if isinstance(node, LimitRows) else node
    columns = columns_of(table)
    selected = [exp.alias_(columns[key.name].copy(), f"k{index}") for index, key in enumerate(project.keys)]
    selected += [
        exp.alias_(_quantity(quantity, columns), f"q{index}") for index, quantity in enumerate(project.quantities)
    ]
    scan = project.child.child if isinstance(project.child, Filter) else project.child
    conditions = [_key_condition(key, columns) for key in project.keys]
    if isinstance(project.child, Filter):
        conditions.append(compiled(project.child.predicate, columns))
    if scan.person is not None:
        selected.append(exp.alias_(columns[scan.person].copy(), "person"))
        conditions.append(_not_null(columns[scan.person]))
        if not scan.one_row_per_person:
            selected.append(exp.column(ROW_NUMBER))
    if not selected:
        selected.append(exp.alias_(exp.Literal.number(1), "one"))
    select = exp.select(*selected).from_(exp.to_table(table_name(table)))
    for condition in conditions:
        select = select.where(condition)
    if isinstance(node, LimitRows):
        select = _limited(select, [exp.column("person")], [exp.column(ROW_NUMBER)], node.rows, salt)
    return select


def table_name(table: Table) -> str:
    """The engine's name of a declared table, whatever letters the owner used."""
    return f"t_{table.name.encode().hex()}"


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


def _quantity(quantity: Quantity, columns: Mapping[str, exp.Expression]) -> exp.Expression:
    """An integer of the row, or NULL. Clamped to the lattice whatever the row holds, infinities included."""
    expression, lattice = quantity.expression, quantity.lattice
    if lattice is None:
        node = compiled(expression, columns)
        return exp.Case(ifs=[exp.If(this=_unknown(quantity, node), true=exp.null())], default=exp.Literal.number(1))
    if is_whole(expression) and lattice.step == 1:
        node = compiled(expression, columns)
        inside = _clamped(node, exp.Literal.number(lattice.low), exp.Literal.number(lattice.high))
    else:
        node = as_double(expression, columns)
        inside = _rounded(node, lattice)
    return exp.Case(ifs=[exp.If(this=_unknown(quantity, node), true=exp.null())], default=exp.cast(inside, "BIGINT"))


def _unknown(quantity: Quantity, node: exp.Expression) -> exp.Expression:
    """Whether a row's value is NULL or not a number. Columns hold no NaN; arithmetic in doubles may make one."""
    null = exp.Is(this=node.copy(), expression=exp.null())
    expression = quantity.expression
    if isinstance(expression, Call) and expression.type.numeric and not is_whole(expression):
        return exp.Or(this=null, expression=exp.IsNan(this=node.copy()))
    return null


def _rounded(node: exp.Expression, lattice: Lattice) -> exp.Expression:
    """The nearest lattice step, halves up, computed in doubles and clamped there, so that the cast cannot overflow."""
    inverse = 1 / lattice.step
    if inverse.denominator == 1:
        scaled: exp.Expression = exp.Mul(this=node.copy(), expression=double_literal(inverse))
    else:
        scaled = exp.Div(this=node.copy(), expression=double_literal(lattice.step), typed=True)
    nearest = exp.Floor(this=exp.Add(this=scaled, expression=double_literal(Fraction(1, 2))))
    return _clamped(nearest, double_literal(Fraction(lattice.low)), double_literal(Fraction(lattice.high)))


def _clamped(node: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    """Between low and high. NULL must not reach this: LEAST and GREATEST skip it."""
    least = exp.Least(this=node.copy(), expressions=[high], ignore_nulls=True)
    return exp.Greatest(this=least, expressions=[low], ignore_nulls=True)


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
    person = exp.column("person")
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
        inside = exp.cast(_clamped(column, low, high), "BIGINT")
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
