"""Relations as SELECTs of the engine: what stands below a question's groups.

Each gives the columns c0, c1, … of the relation; where it is about people and they can be told, `person`; and r0, r1, …
that tell one person's rows apart (by the person's own rows alone, or by rows of public tables).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from discreet.catalog.model import Table, Type
from discreet.engines.functions import as_double, compiled, double_literal
from discreet.engines.names import ROW_NUMBER, column_name, table_name
from discreet.engines.quantities import clamped, quantity
from discreet.plan.expressions import Call, Expression
from discreet.plan.nodes import Quantity
from discreet.plan.relations import (
    Attributed,
    Base,
    Computed,
    Exact,
    Joined,
    Listed,
    Matched,
    PerPerson,
    Relation,
    Renamed,
    Shape,
    Stacked,
    Where,
    shape,
)

PERSON = "person"
_LARGEST = 2**62
"""Whole sums of one person are clamped to ±this, so that they stay 64-bit integers."""


@dataclass(frozen=True)
class Rows:
    """A relation in the engine: its SELECT, how its columns are named there, and how many columns tell rows apart."""

    select: exp.Select
    shape: Shape
    person: bool
    ids: int

    def columns(self, table: str | None = None) -> Mapping[str, exp.Expression]:
        """How each column of the relation is written by whoever selects from it."""
        return {column.name: exp.column(f"c{place}", table=table) for place, column in enumerate(self.shape.columns)}


Keep = Callable[[Table], exp.Expression | None]
"""Which rows of a declared table count, by the person's own rows alone; None where all do."""


def rows_of(relation: Relation, keep: Keep) -> Rows:
    """The SELECT of a relation.

    `keep` cuts each person's rows to the declared number where they are read, before any join can multiply them: so how
    much work one person makes is bounded by declarations. It is no part of the argument for sensitivities, which rests
    on the limits above all joins.
    """
    build: Callable[[Any, Keep], Rows] = _BUILDERS[type(relation)]
    return build(relation, keep)


def _base(relation: Base, keep: Keep) -> Rows:
    table = relation.table
    selected = [exp.alias_(exp.column(column_name(i)), f"c{i}") for i in range(len(table.columns))]
    if table.person is not None:
        place = next(i for i, column in enumerate(table.columns) if column.name == table.person)
        selected.append(exp.alias_(exp.column(column_name(place)), PERSON))
    number = "rowid" if table.public else ROW_NUMBER
    several = table.public or not table.one_row_per_person
    if several:
        selected.append(exp.alias_(exp.column(number), "r0"))
    select = exp.select(*selected).from_(exp.to_table(table_name(table)))
    if (condition := keep(table)) is not None:
        select = select.where(condition)
    return Rows(select, shape(relation), table.person is not None, int(several))


def _attributed(relation: Attributed, keep: Keep) -> Rows:
    child, owner = rows_of(relation.child, keep), rows_of(relation.owner, keep)
    key, target = child.columns("l")[relation.column], owner.columns("o")[relation.target]
    selected = [exp.alias_(exp.column(f"c{i}", table="l"), f"c{i}") for i in range(len(child.shape.columns))]
    selected += [exp.alias_(exp.column(PERSON, table="o"), PERSON), *_ids(child, owner, ("l", "o"))]
    select = exp.select(*selected).from_(child.select.subquery("l"))
    select = select.join(owner.select.subquery("o"), on=exp.EQ(this=key, expression=target), join_type="inner")
    return Rows(select, shape(relation), True, child.ids + owner.ids)


def _renamed(relation: Renamed | Listed, keep: Keep) -> Rows:
    below = rows_of(relation.child, keep)
    return Rows(below.select, shape(relation), below.person, below.ids)


def _where(relation: Where, keep: Keep) -> Rows:
    below = rows_of(relation.child, keep)
    select = exp.select("*").from_(below.select.subquery("s")).where(compiled(relation.predicate, below.columns()))
    return Rows(select, below.shape, below.person, below.ids)


def _computed(relation: Computed, keep: Keep) -> Rows:
    below = rows_of(relation.child, keep)
    columns = below.columns()
    selected = [exp.alias_(_typed(one, columns), f"c{i}") for i, (_, one) in enumerate(relation.columns)]
    select = exp.select(*selected, *_carried(below)).from_(below.select.subquery("s"))
    return Rows(select, shape(relation), below.person, below.ids)


def _typed(expression: Expression, columns: Mapping[str, exp.Expression]) -> exp.Expression:
    """An expression with the engine's type for ours: what is computed in doubles and called an integer becomes one."""
    node = compiled(expression, columns)
    if expression.type is Type.INTEGER:
        return exp.TryCast(this=node, to=exp.DataType.build("BIGINT"), safe=True)
    if expression.type is Type.NUMBER:
        node = exp.cast(as_double(expression, columns), "DOUBLE")
        if isinstance(expression, Call):  # columns hold no NaN, and what is computed here is a column above
            return exp.Case(ifs=[exp.If(this=exp.IsNan(this=node.copy()), true=exp.null())], default=node)
        return node
    return exp.cast(node, {Type.TEXT: "TEXT", Type.BOOLEAN: "BOOLEAN"}.get(expression.type, str(expression.type)))


def _carried(below: Rows) -> list[exp.Expression]:
    """The person and what tells rows apart, as they are below."""
    carried = [exp.column(PERSON)] if below.person else []
    return [*carried, *(exp.column(f"r{i}") for i in range(below.ids))]


def _ids(left: Rows, right: Rows, names: tuple[str, str]) -> list[exp.Expression]:
    places = [(names[0], i) for i in range(left.ids)] + [(names[1], i) for i in range(right.ids)]
    return [_as(exp.column(f"r{place}", table=name), f"r{new}") for new, (name, place) in enumerate(places)]


def _as(node: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=node, alias=exp.to_identifier(name))


def _joined(relation: Joined, keep: Keep) -> Rows:
    left, right = rows_of(relation.left, keep), rows_of(relation.right, keep)
    whole = shape(relation)
    width = len(left.shape.columns)
    columns = {
        column.name: exp.column(
            f"c{place}" if place < width else f"c{place - width}", table="l" if place < width else "r"
        )
        for place, column in enumerate(whole.columns)
    }
    selected = [exp.alias_(columns[column.name].copy(), f"c{place}") for place, column in enumerate(whole.columns)]
    persons = [exp.column(PERSON, table=name) for name, side in (("l", left), ("r", right)) if side.person]
    if len(persons) == 2 and relation.kind == "full":
        selected.append(exp.alias_(exp.Coalesce(this=persons[0], expressions=[persons[1]]), PERSON))
    elif persons:
        selected.append(exp.alias_(persons[-1 if relation.kind == "right" else 0].copy(), PERSON))
    condition: exp.Expression = exp.true()
    if relation.condition is not None:
        condition = exp.Paren(this=compiled(relation.condition, columns))
    if left.shape.private and right.shape.private:  # whatever was written: only rows of one person may meet
        same = exp.EQ(this=persons[0].copy(), expression=persons[1].copy())
        condition = exp.And(this=same, expression=condition)
    ids = _ids(left, right, ("l", "r"))
    if relation.kind == "full":  # a row without a partner on the left, and one without on the right, are two
        ids.append(_as(exp.Is(this=persons[0].copy(), expression=exp.null()), f"r{len(ids)}"))
    select = exp.select(*selected, *ids).from_(left.select.subquery("l"))
    select = select.join(right.select.subquery("r"), on=condition, join_type=relation.kind)
    return Rows(select, whole, bool(persons), len(ids))


def _per_person(relation: PerPerson, keep: Keep) -> Rows:
    below = rows_of(relation.child, keep)
    columns = below.columns()
    keys = [_typed(one, columns) for _, one in relation.keys]
    totals = [_exact(total, columns) for _, total, _ in relation.totals]
    selected = [exp.alias_(node, f"c{place}") for place, node in enumerate([*keys, *totals])]
    groups = [node.copy() for node in keys]
    if below.person:
        selected.append(exp.column(PERSON))
        groups = [exp.column(PERSON), *groups]
    # a person's rows are told apart by the keys: the columns themselves
    selected += [exp.alias_(node.copy(), f"r{place}") for place, node in enumerate(keys)]
    select = exp.select(*selected).from_(below.select.subquery("s"))
    select = select.group_by(*groups) if groups else select
    return Rows(select, shape(relation), below.person, len(keys))


def _exact(total: Exact, columns: Mapping[str, exp.Expression]) -> exp.Expression:
    """A total over rows of one person. Every sum is one of integers."""
    if total.expression is None:
        return exp.Count(this=exp.Star(), big_int=True)
    if total.kind in ("present", "distinct", "minimum", "maximum"):
        node = _typed(total.expression, columns)
        if total.kind == "distinct":
            return exp.Count(this=exp.Distinct(expressions=[node]), big_int=True)
        if total.kind == "present":
            return exp.Count(this=node, big_int=True)
        return exp.Min(this=node) if total.kind == "minimum" else exp.Max(this=node)
    assert total.lattice is not None
    steps = quantity(Quantity(total.expression, total.lattice), columns)
    summed = exp.Sum(this=steps)
    if total.kind == "sum" and total.expression.type is Type.INTEGER and total.lattice.step == 1:
        inside = clamped(summed, exp.Literal.number(-_LARGEST), exp.Literal.number(_LARGEST))
        unknown = exp.Is(this=summed.copy(), expression=exp.null())
        return exp.Case(ifs=[exp.If(this=unknown, true=exp.null())], default=exp.cast(inside, "BIGINT"))
    scaled = exp.Mul(this=exp.cast(summed, "DOUBLE"), expression=double_literal(total.lattice.step))
    if total.kind == "sum":
        return scaled
    count = exp.Nullif(this=exp.Count(this=steps.copy(), big_int=True), expression=exp.Literal.number(0))
    return exp.Div(this=exp.Paren(this=scaled), expression=exp.cast(count, "DOUBLE"), typed=True)


def _stacked(relation: Stacked, keep: Keep) -> Rows:
    whole = shape(relation)
    parts = [rows_of(child, keep) for child in relation.children]
    ids = max(part.ids for part in parts)
    selects = []
    for number, part in enumerate(parts):
        selected = []
        for place, (mine, common) in enumerate(zip(part.shape.columns, whole.columns, strict=True)):
            node: exp.Expression = exp.column(f"c{place}")
            if mine.type is not common.type:
                node = exp.cast(node, "DOUBLE")
            selected.append(exp.alias_(node, f"c{place}"))
        if part.person:
            selected.append(exp.column(PERSON))
        selected.append(exp.alias_(exp.Literal.number(number), "r0"))
        for place in range(ids):  # identifiers of several kinds meet in one column: as text
            held = place < part.ids
            node = exp.cast(exp.column(f"r{place}"), "TEXT") if held else exp.cast(exp.null(), "TEXT")
            selected.append(exp.alias_(node, f"r{place + 1}"))
        selects.append(exp.select(*selected).from_(part.select.subquery("s")))
    union: exp.Expression = selects[0]
    for other in selects[1:]:
        union = exp.Union(this=union, expression=other, distinct=False)
    names = [f"c{i}" for i in range(len(whole.columns))] + ([PERSON] if parts[0].person else [])
    outer = exp.select(*names, *(f"r{i}" for i in range(ids + 1))).from_(
        exp.Subquery(this=union, alias=exp.TableAlias(this=exp.to_identifier("u")))
    )
    return Rows(outer, whole, parts[0].person, ids + 1)


def _matched(relation: Matched, keep: Keep) -> Rows:
    below, among = rows_of(relation.child, keep), rows_of(relation.among, keep)
    if relation.value is None:
        value: exp.Expression = exp.column(PERSON)
        column: exp.Expression = exp.column(PERSON)
    else:
        value, column = _typed(relation.value, below.columns()), exp.column("c0")
    inner = exp.select(column).from_(among.select.subquery("m"))
    if relation.negated or relation.value is not None:
        inner = inner.where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.null())))
    test: exp.Expression = exp.In(this=value, query=inner.subquery())
    if relation.negated:
        test = exp.Not(this=exp.Paren(this=test))
    select = exp.select("*").from_(below.select.subquery("s")).where(test)
    return Rows(select, below.shape, below.person, below.ids)


_BUILDERS: dict[type, Callable[[Any, Keep], Rows]] = {
    Base: _base,
    Attributed: _attributed,
    Renamed: _renamed,
    Where: _where,
    Computed: _computed,
    Joined: _joined,
    PerPerson: _per_person,
    Stacked: _stacked,
    Matched: _matched,
    Listed: _renamed,
}
