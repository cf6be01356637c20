"""Compiles relations to SELECT statements of the engine.

Each gives the columns c0, c1, … of the relation; where it is about people and they can be told, `person`; and r0, r1, …
that tell one person's rows apart (by the person's own rows alone, or by rows of public tables).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, assert_never

from sqlglot import exp

from discreet.dialect.normal import TURNED
from discreet.trusted.ring_a.casts import cast
from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.expressions import Call, Expression
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.names import NOBODY, column_name, named, table_name
from discreet.trusted.ring_a.nodes import Quantity
from discreet.trusted.ring_a.quantities import clamped, quantity
from discreet.trusted.ring_a.statement import PERSON, Keep, RelationRows, relation_rows
from discreet.trusted.ring_a.table import LARGEST, Relation, Type
from discreet.trusted.ring_a.terms import as_double, compiled, double_literal, held_whole, scaled
from discreet.trusted.ring_a.windows import PLACE
from discreet.trusted.ring_b.relations import (
    Attributed,
    Base,
    Computed,
    Joined,
    JoinKind,
    ListedKeys,
    Matched,
    PerPerson,
    PersonTotal,
    PersonTotalKind,
    RelationShape,
    Renamed,
    RowBefore,
    Stacked,
    Where,
    bases,
    columns_of,
    conjuncts,
    shape,
)

_LATE = "10000-01-01"
_LARGEST = 2**62
"""Whole sums of one person are clamped to ±this, so that they stay 64-bit integers."""


@dataclass(frozen=True)
class RelationSelect:
    """A relation in the engine: its SELECT, how its columns are named there, and the types of the columns r0, r1, …
    that tell rows apart."""

    select: exp.Select
    shape: RelationShape
    person: bool
    ids: tuple[Type, ...]

    def columns(self, table: str | None = None) -> Mapping[str, exp.Expression]:
        """How each column of the relation is written by whoever selects from it."""
        return {column.name: exp.column(f"c{place}", table=table) for place, column in enumerate(self.shape.columns)}


def rows_of(relation: Relation, keep: Keep) -> RelationSelect:
    """The SELECT of a relation.

    `keep` cuts each person's rows to the declared number where they are read, before any join can multiply them: so how
    much work one person makes is bounded by declarations. It is no part of the argument for sensitivities, which rests
    on the limits above all joins.
    """
    build: Callable[[Any, Keep], RelationSelect] = _BUILDERS[type(relation)]
    return build(relation, keep)


@relation_rows.register
def of_question(relation: Relation, predicate: Expression | None, keep: Keep) -> RelationRows:
    """The rows that a question's own predicate leaves."""
    rows = rows_of(relation if predicate is None else Where(relation, predicate), keep)
    return RelationRows(rows.select, rows.columns(), rows.person, rows.ids)


def _base(relation: Base, keep: Keep) -> RelationSelect:
    table = relation.table
    selected = [named(exp.column(column_name(i)), f"c{i}") for i in range(len(table.columns))]
    if table.person is not None:
        place = next(i for i, column in enumerate(table.columns) if column.name == table.person)
        selected.append(named(exp.column(column_name(place)), PERSON))
    several = table.public or not table.one_row_per_person
    if several:
        selected.append(named(exp.column(PLACE), "r0"))
    select = exp.select(*selected, copy=False).from_(exp.table_(table_name(table)), copy=False)
    if (condition := keep(table)) is not None:
        select = select.where(condition, copy=False)
    return RelationSelect(select, shape(relation), table.person is not None, (Type.INTEGER,) * several)


def _attributed(relation: Attributed, keep: Keep) -> RelationSelect:
    """The engine reads the owners whole, as `_joined` has it: a condition on the key stays with the rows, and there is
    always an owner, under a key that no loaded row has."""
    child, owner = rows_of(relation.child, keep), rows_of(relation.owner, keep)
    key, target = child.columns("l")[relation.column], owner.columns()[relation.target]
    owners = _never_empty(owner, (), relation, [(target, _unheld(child.shape.column(relation.column).type, relation))])
    selected = [named(exp.column(f"c{i}", table="l"), f"c{i}") for i in range(len(child.shape.columns))]
    selected += [named(exp.column(PERSON, table="o"), PERSON), *_ids(child, owner, ("l", "o"))]
    select = exp.select(*selected, copy=False).from_(child.select.subquery("l", copy=False), copy=False)
    met = exp.EQ(this=exp.Case(ifs=[exp.If(this=_there(key.copy()), true=key)]), expression=exp.column("k0", table="o"))
    _join(select, owners.subquery("o", copy=False), met, JoinKind.INNER)
    return RelationSelect(select, shape(relation), True, child.ids + owner.ids)


def _join(select: exp.Select, other: exp.Expression, on: exp.Expr, kind: JoinKind) -> None:
    """Joins one more. sqlglot's own way reads the kind as a text of its own."""
    select.append("joins", exp.Join(this=other, on=on, **{"kind" if kind is JoinKind.INNER else "side": kind.upper()}))


def several_owners(relation: Attributed) -> exp.Select:
    """One row if some value of the column that is referred to stands in rows of several persons, else none."""
    owner = rows_of(relation.owner, lambda _: None)
    target, person = owner.columns()[relation.target], exp.column(PERSON)
    several = exp.NEQ(this=exp.Min(this=person), expression=exp.Max(this=person.copy()))
    select = exp.select(exp.Literal.number(1)).from_(owner.select.subquery("o")).where(_there(target))
    return select.group_by(target.copy()).having(several).limit(1)


def _renamed(relation: Renamed | ListedKeys, keep: Keep) -> RelationSelect:
    below = rows_of(relation.child, keep)
    return RelationSelect(below.select, shape(relation), below.person, below.ids)


def _where(relation: Where, keep: Keep) -> RelationSelect:
    if isinstance(relation.child, Joined) and relation.child.kind is JoinKind.INNER:  # asked of one side: asked below
        join = relation.child
        every = (*(conjuncts(join.condition) if join.condition is not None else ()), *conjuncts(relation.predicate))
        return rows_of(replace(join, condition=reduce(_and, every)), keep)
    below = rows_of(relation.child, keep)
    select = (
        exp.select(exp.Star())
        .from_(below.select.subquery("s", copy=False), copy=False)
        .where(compiled(relation.predicate, below.columns()), copy=False)
    )
    return RelationSelect(select, below.shape, below.person, below.ids)


def _and(left: Expression, right: Expression) -> Expression:
    return Call("and", (left, right), Type.BOOLEAN)


def _computed(relation: Computed, keep: Keep) -> RelationSelect:
    below = rows_of(relation.child, keep)
    columns = below.columns()
    selected = [named(_typed(one, columns), f"c{i}") for i, (_, one) in enumerate(relation.columns)]
    select = exp.select(*selected, *_carried(below), copy=False).from_(
        below.select.subquery("s", copy=False), copy=False
    )
    return RelationSelect(select, shape(relation), below.person, below.ids)


def _typed(expression: Expression, columns: Mapping[str, exp.Expression]) -> exp.Expression:
    """An expression with the engine's type for ours: what is computed in doubles and called an integer becomes one."""
    node = compiled(expression, columns)
    if expression.type is Type.INTEGER:
        return cast(node if held_whole(expression) else function("whole_number", node), "BIGINT")
    if expression.type is Type.NUMBER:
        node = cast(as_double(expression, columns), "DOUBLE")
        if isinstance(expression, Call):  # columns hold no NaN and no -0.0; what is computed here is one above:
            # of two zeros that are one group, which stands for it would follow from the order in which rows come
            node = function("number_sum", node, double_literal(Fraction(0)))
            return exp.Case(ifs=[exp.If(this=function("is_nan", node.copy()), true=exp.null())], default=node)
        return node
    return cast(node, {Type.TEXT: "TEXT", Type.BOOLEAN: "BOOLEAN"}.get(expression.type, str(expression.type)))


def _carried(below: RelationSelect) -> list[exp.Expression]:
    """The person and what tells rows apart, as they are below."""
    carried = [exp.column(PERSON)] if below.person else []
    return [*carried, *(exp.column(f"r{i}") for i in range(len(below.ids)))]


def _ids(left: RelationSelect, right: RelationSelect, names: tuple[str, str]) -> list[exp.Expression]:
    places = [(names[0], i) for i in range(len(left.ids))] + [(names[1], i) for i in range(len(right.ids))]
    return [named(exp.column(f"r{place}", table=name), f"r{new}") for new, (name, place) in enumerate(places)]


_TURNED = {JoinKind.RIGHT: JoinKind.LEFT, JoinKind.LEFT: JoinKind.RIGHT}
"""The same join, its sides the other way round."""


def _joined(relation: Joined, keep: Keep) -> RelationSelect:
    """Pairs of rows. The engine reads the second side whole before the first, and where it finds it empty, nothing of
    the first: so that no person's row decides how much work is done on others', a public side comes second, and a
    second side about people is never empty (`_never_empty`); what the question asks of that side alone is asked below.

    Every join is by an equality. By anything else the engine pairs blocks of rows, in each of which one side's row
    stands still: which side, and so how often an expression of it is computed, follows from how many rows either has.
    """
    left, right = rows_of(relation.left, keep), rows_of(relation.right, keep)
    whole = shape(relation)
    sides, kind = [(left, "l"), (right, "r")], relation.kind
    if kind is JoinKind.RIGHT or (right.shape.private and not left.shape.private):
        sides, kind = sides[::-1], _TURNED.get(kind, kind)
    (first, start), (second, last) = sides
    both = first.shape.private and second.shape.private
    written = {**left.columns("l"), **right.columns("r")}
    conditions = conjuncts(relation.condition) if relation.condition is not None else ()
    persons = {name: exp.column(PERSON, table=name) for side, name in sides if side.person}
    origin, source = first.select, second.select
    meeting: list[Any] = []
    if both:
        own = second.shape.by_name.keys()
        inside = [part for part in conditions if kind is not JoinKind.FULL and columns_of(part) <= own]
        pairs = [pair for part in conditions if (pair := _compared(part, first, second, start)) is not None]
        known = [part for part, *_ in pairs]
        conditions = tuple(part for part in conditions if part not in inside and part not in known)
        source = _never_empty(second, inside, relation, [(node, _some(kind)) for _, _, (node, kind) in pairs])
        # whatever was written: only rows of one person may meet
        meeting.append(exp.EQ(this=persons["l"].copy(), expression=persons["r"].copy()))
        for place, (_, comparison, _) in enumerate(pairs):
            comparison.set("expression", exp.column(f"k{place}", table=last))
            meeting.append(comparison)
    elif not any(_compared(part, first, second, start, equal=True) for part in conditions):
        origin, source = _always(origin), _always(source)
        meeting.append(exp.EQ(this=exp.column("k", table=start), expression=exp.column("k", table=last)))
    columns = dict(written)
    if both:
        columns |= {name: _of_both(node, persons) for name, node in second.columns(last).items()}
    selected = [named(columns[column.name].copy(), f"c{place}") for place, column in enumerate(whole.columns)]
    if conditions:
        meeting.append(exp.Paren(this=compiled(reduce(_and, conditions), written)))
    ids, kinds = _ids(left, right, ("l", "r")), left.ids + right.ids
    if kind is JoinKind.FULL:
        either: exp.Expression = exp.Coalesce(this=persons["l"].copy(), expressions=[persons["r"].copy()])
        selected.append(named(either, PERSON))
        # a row without a partner on the left, and one without on the right, are two
        alone = exp.Is(this=persons["l"].copy(), expression=exp.null())
        ids.append(named(exp.Case(ifs=[exp.If(this=alone, true=_one(1))], default=_one(0)), f"r{len(ids)}"))
        kinds += (Type.INTEGER,)
    elif persons:
        selected.append(named(next(iter(persons.values())).copy(), PERSON))
    select = exp.select(*selected, *ids, copy=False)
    select = select.from_(origin.subquery(start, copy=False), copy=False)
    _join(select, source.subquery(last, copy=False), exp.and_(*meeting, copy=False), kind)
    if kind is JoinKind.FULL and (nobody := _unheld(whole.person_type, relation)) is not None:
        select = select.where(exp.NEQ(this=exp.paren(either.copy()), expression=nobody), copy=False)
    return RelationSelect(select, whole, bool(persons), kinds)


def _there(node: exp.Expression) -> exp.Expression:
    return exp.Not(this=exp.Is(this=node, expression=exp.null()))


def _one(value: int) -> exp.Expression:
    return cast(exp.Literal.string(str(value)), "BIGINT")


def _always(select: exp.Select) -> exp.Select:
    """The rows, with a column in which all are equal."""
    return exp.select(exp.Star(), named(exp.Literal.number(0), "k")).from_(select.subquery("s", copy=False), copy=False)


def _compared(
    part: Expression, first: RelationSelect, second: RelationSelect, start: str, *, equal: bool = False
) -> tuple[Expression, exp.Binary, tuple[exp.Expression, Type]] | None:
    """A condition that compares something of the first side with something of the second: itself; the comparison, whose
    left side the engine cannot recognise, so that no condition on it is carried over to the other; and what stands on
    the second, as that side's own rows have it."""
    if not isinstance(part, Call) or part.operator not in (("equal",) if equal else TURNED):
        return None
    names = first.shape.by_name.keys(), second.shape.by_name.keys()
    left, right = part.arguments
    turned = part
    if columns_of(left) <= names[1] and columns_of(right) <= names[0]:
        turned = Call(TURNED[part.operator], (right, left), part.type)
    mine, theirs = turned.arguments
    if not (
        columns_of(mine) and columns_of(mine) <= names[0] and columns_of(theirs) and columns_of(theirs) <= names[1]
    ):
        return None
    comparison = compiled(turned, {**first.columns(start), **second.columns()}).unnest()
    if not isinstance(comparison, exp.Binary):
        return None
    if first.person:
        known = _there(exp.column(PERSON, table=start))
        comparison.set("this", exp.Case(ifs=[exp.If(this=known, true=comparison.this.copy())]))
    return part, comparison, (comparison.expression.copy(), theirs.type)


def _of_both(node: exp.Expression, persons: Mapping[str, exp.Expression]) -> exp.Expression:
    """A column of the second side that the engine cannot look at before the sides have met: it would carry a condition
    on it below, and find the side empty. One of the two persons is always there."""
    known = [_there(person.copy()) for person in persons.values()]
    return exp.Case(ifs=[exp.If(this=exp.or_(*known, copy=False), true=node.copy())])


def _never_empty(
    rows: RelationSelect,
    conditions: Sequence[Expression],
    relation: Relation,
    compared: Sequence[tuple[exp.Expression, exp.Expression | None]] = (),
) -> exp.Select:
    """The rows for which the conditions are true, and one of nobody, which meets no row. What is `compared` with the
    other side is a column of its own, in which nobody's row has a value: the engine leaves rows out that have none.
    Where there is no such person or value, the rows alone."""
    keys = [named(node, f"k{place}") for place, (node, _) in enumerate(compared)]
    kept = exp.select(exp.Star(), *keys).from_(rows.select.subquery("s", copy=False), copy=False)
    for condition in conditions:
        kept = kept.where(compiled(condition, rows.columns()), copy=False)
    nobody = _unheld(shape(relation).person_type, relation)
    if nobody is None or any(value is None for _, value in compared):
        return kept
    empty = [named(exp.null(), f"c{place}") for place in range(len(rows.shape.columns))]
    ids = [named(exp.null(), f"r{place}") for place in range(len(rows.ids))]
    values = [named(value, f"k{place}") for place, (_, value) in enumerate(compared) if value is not None]
    union = exp.Union(this=kept, expression=exp.select(*empty, named(nobody, PERSON), *ids, *values), distinct=False)
    return exp.select(exp.Star()).from_(union.subquery("u", copy=False), copy=False)


def _some(type_: Type) -> exp.Expression:
    """A value of a type; of numbers the narrowest, so that whatever stands beside it keeps its own."""
    if type_ is Type.TEXT:
        return exp.Literal.string("")
    if type_ is Type.BOOLEAN:
        return exp.false()
    return exp.Literal.number(0) if type_.numeric else cast(exp.Literal.string("2000-01-01"), "DATE")


def _unheld(kind: Type | None, relation: Relation) -> exp.Expression | None:
    """What no loaded column that identifies holds, so a person that no row has: a text longer than any id, the integer
    that is left out when a table is loaded, a date beyond those that are kept. None where there is none: of booleans
    there are two."""
    if kind is Type.TEXT:
        longest = max(column.longest for table in bases(relation) for column in table.columns if column.identifies)
        return exp.Literal.string("x" * (longest + 1))
    written = {Type.INTEGER: (NOBODY, "BIGINT"), Type.DATE: (_LATE, "DATE"), Type.TIMESTAMP: (_LATE, "TIMESTAMP")}
    text, name = written.get(kind, (None, "")) if kind is not None else (None, "")
    return cast(exp.Literal.string(text), name) if text is not None else None


def _per_person(relation: PerPerson, keep: Keep) -> RelationSelect:
    below = rows_of(relation.child, keep)
    columns = below.columns()
    keys = [_typed(one, columns) for _, one in relation.keys]
    totals = [_exact(total, columns) for _, total, _ in relation.totals]
    selected = [named(node, f"c{place}") for place, node in enumerate([*keys, *totals])]
    groups = [node.copy() for node in keys]
    if below.person:
        selected.append(exp.column(PERSON))
        groups = [exp.column(PERSON), *groups]
    # a person's rows are told apart by the keys: the columns themselves
    selected += [named(node.copy(), f"r{place}") for place, node in enumerate(keys)]
    select = exp.select(*selected, copy=False).from_(below.select.subquery("s", copy=False), copy=False)
    select = select.group_by(*groups, copy=False) if groups else select
    return RelationSelect(select, shape(relation), below.person, tuple(one.type for _, one in relation.keys))


def _exact(total: PersonTotal, columns: Mapping[str, exp.Expression]) -> exp.Expression:
    """A total over rows of one person. Every sum is one of integers."""
    if total.kind is PersonTotalKind.ROWS:
        return exp.Count(this=exp.Star(), big_int=True)
    assert total.expression is not None
    match total.kind:
        case PersonTotalKind.PRESENT:
            return exp.Count(this=_typed(total.expression, columns), big_int=True)
        case PersonTotalKind.DISTINCT:
            return exp.Count(this=exp.Distinct(expressions=[_typed(total.expression, columns)]), big_int=True)
        case PersonTotalKind.MINIMUM:
            return exp.Min(this=_typed(total.expression, columns))
        case PersonTotalKind.MAXIMUM:
            return exp.Max(this=_typed(total.expression, columns))
        case PersonTotalKind.SUM | PersonTotalKind.MEAN:
            assert total.lattice is not None
            return _summed(total.kind, total.expression, total.lattice, columns)
    assert_never(total.kind)


def _summed(
    kind: PersonTotalKind, expression: Expression, lattice: Lattice, columns: Mapping[str, exp.Expression]
) -> exp.Expression:
    steps = quantity(Quantity(expression, lattice), columns)
    summed = function("whole_sum", steps)
    if kind is PersonTotalKind.SUM and expression.type is Type.INTEGER and lattice.step == 1:
        inside = clamped(summed, exp.Literal.number(-_LARGEST), exp.Literal.number(_LARGEST))
        unknown = exp.Is(this=summed.copy(), expression=exp.null())
        return exp.Case(ifs=[exp.If(this=unknown, true=exp.null())], default=cast(inside, "BIGINT"))
    step = lattice.step
    if max(step.numerator, step.denominator) <= LARGEST:  # the nearest double, as steps are counted above
        number = scaled(cast(summed, "DOUBLE"), step.numerator, step.denominator)
    else:
        number = function("number_product", cast(summed, "DOUBLE"), double_literal(step))
    if kind is PersonTotalKind.SUM:
        return number
    count = exp.Nullif(this=exp.Count(this=steps.copy(), big_int=True), expression=exp.Literal.number(0))
    return function("number_quotient", number, cast(count, "DOUBLE"))


def _row_before(relation: RowBefore, keep: Keep) -> RelationSelect:
    """Windows over the rows of one person. What tells these apart comes last, so that no two have the same place."""
    below = rows_of(relation.child, keep)
    columns, ids = below.columns(), [exp.column(f"r{place}") for place in range(len(below.ids))]
    whose = [exp.column(PERSON), *(columns[name] for name in relation.within)]
    order = exp.Order(expressions=[exp.Ordered(this=one, nulls_first=True) for one in (columns[relation.order], *ids)])
    there = len(columns)
    selected = [
        named(exp.Window(this=exp.Lag(this=columns[old]), partition_by=whose, order=order).copy(), f"c{there + place}")
        for place, (_, old) in enumerate(relation.columns)
    ]
    select = exp.select(exp.Star(), *selected, copy=False).from_(below.select.subquery("s", copy=False), copy=False)
    return RelationSelect(select, shape(relation), below.person, below.ids)


def _stacked(relation: Stacked, keep: Keep) -> RelationSelect:
    whole = shape(relation)
    parts = [rows_of(child, keep) for child in relation.children]
    ids = max(len(part.ids) for part in parts)
    selects = []
    for number, part in enumerate(parts):
        selected = []
        for place, (mine, common) in enumerate(zip(part.shape.columns, whole.columns, strict=True)):
            node: exp.Expression = exp.column(f"c{place}")
            if mine.type is not common.type:
                node = cast(node, "DOUBLE")
            selected.append(named(node, f"c{place}"))
        if part.person:
            selected.append(exp.column(PERSON))
        selected.append(named(_one(number), "r0"))
        for place in range(ids):  # identifiers of several kinds meet in one column: as text
            held = place < len(part.ids)
            node = cast(exp.column(f"r{place}"), "TEXT") if held else cast(exp.null(), "TEXT")
            selected.append(named(node, f"r{place + 1}"))
        selects.append(exp.select(*selected, copy=False).from_(part.select.subquery("s", copy=False), copy=False))
    union: exp.Query = selects[0]
    for other in selects[1:]:
        union = exp.Union(this=union, expression=other, distinct=False)
    names = [*(f"c{i}" for i in range(len(whole.columns))), *[PERSON] * parts[0].person]
    columns = map(exp.column, (*names, *(f"r{i}" for i in range(ids + 1))))
    outer = exp.select(*columns, copy=False).from_(union.subquery("u", copy=False), copy=False)
    return RelationSelect(outer, whole, parts[0].person, (Type.INTEGER, *(Type.TEXT,) * ids))


def _matched(relation: Matched, keep: Keep) -> RelationSelect:
    below, among = rows_of(relation.child, keep), rows_of(relation.among, keep)
    if relation.value is None:
        value: exp.Expression = exp.column(PERSON)
        column: exp.Expression = exp.column(PERSON)
    else:
        value, column = _typed(relation.value, below.columns()), exp.column("c0")
    looked_up = _never_empty(among, (), relation.among) if among.person else among.select
    inner = exp.select(column, copy=False).from_(looked_up.subquery("m", copy=False), copy=False)
    # a NULL in the list changes nothing for IN; x NOT IN (1, NULL) is true of no x; of persons none is NULL
    if (relation.value is None) is relation.negated:
        inner = inner.where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.null())), copy=False)
    test: exp.Expression = exp.In(this=value, query=inner.subquery(copy=False))
    if relation.negated:
        test = exp.Not(this=exp.Paren(this=test))
    select = exp.select(exp.Star()).from_(below.select.subquery("s", copy=False), copy=False).where(test, copy=False)
    return RelationSelect(select, below.shape, below.person, below.ids)


_BUILDERS: dict[type, Callable[[Any, Keep], RelationSelect]] = {
    Base: _base,
    Attributed: _attributed,
    Renamed: _renamed,
    Where: _where,
    Computed: _computed,
    Joined: _joined,
    PerPerson: _per_person,
    RowBefore: _row_before,
    Stacked: _stacked,
    Matched: _matched,
    ListedKeys: _renamed,
}
