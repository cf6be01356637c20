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
    project_of,
)
from discreet.trusted.ring_a.quantities import clamped_column, quantity, steps_of
from discreet.trusted.ring_a.table import Relation, Table, Type, Value
from discreet.trusted.ring_a.terms import compiled, literal
from discreet.trusted.ring_a.windows import PLACE, ROWS, WORD, Held, Salt

PERSON = "person"
"""The engine's name of whose row it is, in whatever is made of a table."""


def columns_of(table: Table) -> Mapping[str, exp.Expression]:
    """How each declared column of a table is written in the engine."""
    return {column.name: exp.column(column_name(index)) for index, column in enumerate(table.columns)}


def statement(plan: Root, table: Table, salt: Salt) -> exp.Select:
    """The SELECT whose rows are a group's keys followed by its totals, all exact integers. With `windows` it reads what
    `held` says."""
    if not isinstance(plan, Aggregate):
        return other_statement(plan, table, salt)
    project = project_of(plan)
    keys = [exp.column(f"k{index}") for index in range(len(project.keys))]
    if isinstance(plan.child, Clip):
        grouped = _bounded_groups(plan, table, salt)
        stored = rotating.stored(plan)
        totals = [_over_persons(total, index, stored=stored) for index, total in enumerate(plan.totals)]
    else:
        grouped = rows_that_count(plan.child, table, salt)
        totals = [_or_zero(_total(total)) for total in plan.totals]
    select = exp.select(*keys, *totals, copy=False).from_(grouped.subquery("bounded", copy=False), copy=False)
    return select.group_by(*(key.copy() for key in keys), copy=False) if keys else select


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


def held(plan: Aggregate, table: Table) -> Held:
    """What the plan's statement reads beside the table, where groups are limited by windows."""
    limited = rotating.over_groups(plan)
    assert limited is not None
    project = project_of(plan)
    keys, kinds = [f"k{index}" for index in range(len(project.keys))], [key.type for key in project.keys]
    person = next(place for place, column in enumerate(table.columns) if column.name == table.person)
    name = table_name(table)
    word = named(exp.Min(this=exp.column(WORD)), WORD)
    if rotating.stored(plan):
        cells = _person_groups(limited.child, plan.totals, table, Salt.of(""), also=[word])
        totals = [_stored(total, index) for index, total in enumerate(plan.totals) if total.kind != "persons"]
        columns = [*(exp.column(key) for key in keys), *totals, exp.column(WORD)]
        return rotating.held_totals(rotating.totals_name(name, plan), rotating.placed(cells, kinds, columns))
    scan = project.child.child if isinstance(project.child, Filter) else project.child
    every = PersonGroup(Project(scan, project.keys, ()))
    size = named(exp.Count(this=exp.Star(), big_int=True), "size")
    cells = _person_groups(every, (), table, Salt.of(""), also=[word, size])
    names = [PERSON, *keys]
    placed = rotating.placed(cells, kinds, [exp.column(one) for one in (*names, "size")])
    known = columns_of(table)
    same: list[tuple[exp.Expression, str, bool]] = [(exp.column(column_name(person)), PERSON, False)]
    same += [(known[key.name], place, key.null) for key, place in zip(project.keys, keys, strict=True)]
    return rotating.held_columns(name, rotating.columns_of(name, plan), placed, same)


def _bounded_groups(plan: Aggregate, table: Table, salt: Salt) -> exp.Select:
    """Each person's totals in each group that counts."""
    assert isinstance(plan.child, Clip)
    inner = plan.child.child
    if rotating.stored(plan) and isinstance(inner, LimitGroups):
        name = rotating.totals_name(table_name(table), plan)
        window = rotating.kept("place", "places", inner.groups, salt)
        return exp.select(exp.Star(), copy=False).from_(exp.table_(name), copy=False).where(window, copy=False)
    if rotating.over_groups(plan) and isinstance(inner, LimitGroups):
        return _windowed_groups(plan, inner, table, salt)
    if isinstance(inner, PersonGroup):
        return _person_groups(inner, plan.totals, table, salt)
    grouped = _person_groups(inner.child, plan.totals, table, salt)
    keys = [(exp.column(f"k{index}"), key.type) for index, key in enumerate(project_of(plan).keys)]
    return _limited(grouped, keys, inner.groups, salt)


def _windowed_groups(plan: Aggregate, limited: LimitGroups, table: Table, salt: Salt) -> exp.Select:
    """Totals of persons and groups in the window. A row that is all there is of its person and group needs no grouping:
    its totals are written down as they are."""
    columns = rotating.columns_of(table_name(table), plan)
    window = rotating.kept(columns.position, columns.number, limited.groups, salt)
    alone = exp.column(columns.alone)
    project = project_of(plan)
    keys = [exp.column(f"k{index}") for index in range(len(project.keys))]
    indices = [index for index, total in enumerate(plan.totals) if total.kind != "persons"]
    single = exp.select(
        *keys, *(named(_total_of_row(plan.totals[index]), f"a{index}") for index in indices), copy=False
    ).from_(
        rows_that_count(project, table, salt).where(alone, window, copy=False).subquery("row", copy=False), copy=False
    )
    several = _person_groups(limited.child, plan.totals, table, salt, where=[exp.Not(this=alone.copy()), window.copy()])
    chosen = [*(key.copy() for key in keys), *(exp.column(f"a{index}") for index in indices)]
    several = exp.select(*chosen, copy=False).from_(several.subquery("several", copy=False), copy=False)
    both = exp.Union(this=single, expression=several, distinct=False)
    return exp.select(exp.Star(), copy=False).from_(both.subquery("together", copy=False), copy=False)


def _total_of_row(total: Total) -> exp.Expression:
    """What `_total` gives for one row."""
    if total.kind == "rows":
        return exp.Literal.number(1)
    column = exp.column(f"q{total.quantity}")
    if total.kind == "sum":
        return column
    absent = exp.Is(this=column, expression=exp.null())
    return exp.Case(ifs=[exp.If(this=absent, true=exp.Literal.number(0))], default=exp.Literal.number(1))


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
    select = exp.select(*selected, copy=False).from_(source, copy=False)
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
        several = person is not None and not scan.one_row_per_person
        return columns, exp.table_(table_name(table)), person, [(exp.column(PLACE), Type.INTEGER)] if several else []
    rows = relation_rows(scan.relation, predicate, keep)
    kinds = () if scan.one_row_per_person else rows.ids
    ids: list[rotating.Typed] = [(exp.column(f"r{i}"), kind) for i, kind in enumerate(kinds)]
    person = exp.column(PERSON) if rows.person else None
    return rows.columns, rows.select.subquery("source", copy=False), person, ids


def not_null(node: exp.Expression) -> exp.Expression:
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


def _total(total: Total) -> exp.Expression:
    """A total over rows; NULL where a sum has nothing to add."""
    if total.kind in ("rows", "persons"):
        return exp.Count(this=exp.Star(), big_int=True)
    column = exp.column(f"q{total.quantity}")
    count = exp.Count(this=column, big_int=True)
    if total.kind == "present":
        return count
    if total.kind in ("average", "holders"):  # of one person in one group: NULL without a value
        some = exp.GT(this=count, expression=exp.Literal.number(0))
        mean = function("whole_quotient", function("whole_sum", column.copy()), count.copy())
        value = mean if total.kind == "average" else exp.Literal.number(1)
        return exp.Case(ifs=[exp.If(this=some, true=value)])
    return function("whole_sum", column)


def _or_zero(node: exp.Expression) -> exp.Expression:
    return exp.Coalesce(this=node, expressions=[exp.Literal.number(0)])


def _person_groups(
    node: PersonGroup,
    totals: tuple[Total, ...],
    table: Table,
    salt: Salt,
    *,
    where: Sequence[exp.Expression] = (),
    also: Sequence[exp.Expr] = (),
) -> exp.Select:
    """Each person's totals in each group, of the rows where more holds; also other aggregates, which may read WORD."""
    keys = [exp.column(f"k{index}") for index in range(len(project_of(node).keys))]
    selected = [named(_total(total), f"a{index}") for index, total in enumerate(totals) if total.kind != "persons"]
    person = exp.column(PERSON)
    rows = rows_that_count(node.child, table, salt, also=[WORD] if also else ())
    for condition in where:
        rows = rows.where(condition, copy=False)
    return (
        exp.select(person, *keys, *selected, *also, copy=False)
        .from_(rows.subquery("row", copy=False), copy=False)
        .group_by(person.copy(), *(key.copy() for key in keys), copy=False)
    )


def _over_persons(total: Total, index: int, *, stored: bool) -> exp.Expression:
    """A total over persons, each clamped to the bounds. Sums that are stored were clamped before: see `_stored`."""
    if total.kind == "persons":
        return exp.Count(this=exp.Star(), big_int=True)
    within = stored and total.kind == "sum"
    return _or_zero(function("whole_sum", exp.column(f"a{index}") if within else _within(total, index)))


def _within(total: Total, index: int) -> exp.Expression:
    """A person's total in a group, clamped to its bounds; NULL stays NULL."""
    column = exp.column(f"a{index}")
    if total.bounds is None:
        return column
    return clamped_column(column, *total.bounds)


def _stored(total: Total, index: int) -> exp.Expr:
    """A total as it is stored: sums within their bounds, which makes them narrow; counts as they are."""
    return _within(total, index).as_(f"a{index}") if total.kind == "sum" else exp.column(f"a{index}")


def _limited(source: exp.Select, among: Sequence[rotating.Typed], most: int, salt: Salt) -> exp.Select:
    """Keeps, of each person, the `most` rows with the smallest keyed numbers of what tells them apart."""
    rank = rotating.rank(exp.column(PERSON), [node for node, _ in among])
    mixed = rotating.mixed_by_salt(source, exp.column(PERSON), among, salt)
    candidates = mixed.subquery("candidate", copy=False)
    ranked = exp.select(exp.Star(), named(rank, "rank_of_person")).from_(candidates, copy=False)
    between = exp.Between(this=exp.column("rank_of_person"), low=exp.Literal.number(1), high=exp.Literal.number(most))
    return (
        exp.select(exp.Star(), copy=False)
        .from_(ranked.subquery("ranked", copy=False), copy=False)
        .where(between, copy=False)
    )
