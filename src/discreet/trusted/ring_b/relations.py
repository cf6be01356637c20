"""Relations that a question may read: declared tables, and what is computed from them row by row or person by person.

Every relation about people obeys one rule, from which everything follows that is said about neighbours:

    the rows that carry a person depend on that person's own rows, on public tables and on the question alone.

So adding or removing a person adds or removes exactly the rows that carry this person, however tables are combined.
The rule holds for each node if it holds below:

* Base       a declared table; a person's rows are the rows that hold the person's value;
* Attributed a declared table whose rows belong to whom the row that they refer to belongs to;
* Where, Computed    row by row;
* Joined     of two relations about people, only rows of one person meet (the engine compares the persons, whatever the
             condition says); an outer join adds rows of a person without a partner among the person's own rows. With a
             public table, rows meet as the condition says, and rows of the public side alone are never kept: whether
             they exist would depend on everybody;
* PerPerson  groups by the person first, so that a total reads one person's rows;
* RowBefore  each row with values of another row of its person, chosen among the person's rows alone;
* Stacked    rows one after another;
* Matched    keeps rows by whether a value stands in a public column, or whether the person's own rows exist elsewhere.

How many rows a person has above a join or a stack is bounded by nothing here. The limits of rows and groups are applied
above all of this, on what finally counts (`ring_a.nodes`); only the promise of at most one row a person is carried
along, where it survives: it decides which plan is cheapest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from discreet.dialect.cases import case_results
from discreet.dialect.nulls import may_be_null, without_nulls
from discreet.dialect.ranges import interval
from discreet.dialect.steps import step_of
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression, Literal, typed
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.table import (
    Column,
    Relation,
    Source,
    SourceKind,
    Table,
    Type,
    Value,
    as_table,
)

Group = tuple[Value | None, ...]


def columns_of(expression: Expression) -> frozenset[str]:
    """The names of the columns that the expression reads."""
    if isinstance(expression, ColumnOf):
        return frozenset([expression.name])
    if isinstance(expression, Literal):
        return frozenset()
    return frozenset().union(*(columns_of(argument) for argument in expression.arguments))


def own_name(word: str, number: int = 0) -> str:
    """The name of a column that a plan makes. No declaration and no question can write it, in whatever quotes: a name
    with a control character is refused in both. So it is never the name of a column that somebody else made."""
    return f"\x1f{word} {number}"


HIDDEN = own_name("person")
"""The name of the person where no column of a relation shows it."""


@dataclass(frozen=True)
class Over(Relation):
    """A relation computed from one other relation."""

    child: Relation

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.child,)


@dataclass(frozen=True)
class Base(Relation):
    """The rows of a declared table. Where its file lies is no part of a plan."""

    table: Table

    @property
    def children(self) -> tuple[Relation, ...]:
        return ()

    @classmethod
    def of(cls, table: Table) -> Base:
        """The table as plans have it: of its source the kind alone."""
        return cls(replace(table, source=Source(table.source.kind)))


@dataclass(frozen=True)
class Attributed(Relation):
    """The rows of a table whose person is found along a foreign key: `column` holds what `target` holds in `owner`.

    A row belongs to whoever the row there belongs to. Where several rows there carry the same value, each gets a copy:
    a copy depends on that person's rows alone.

    What is protected. Where no value leads to two persons, which is held against the rows when they are loaded unless
    the table is declared `shared`, a person's rows here are the rows that lead to the person: to remove all of them
    is to remove the person's copies and no others. (Taking persons out never makes a value lead to two, so neighbours
    of such tables are such tables.) Where the table is `shared`, a person's rows are those of the tables that hold the
    person: without these the person's copies are gone, those of others stay, and so does the row. That there is such
    a row is then not hidden: taken out itself, it takes the copies of all its persons along.
    """

    child: Base
    column: str
    owner: Relation
    target: str

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.child, self.owner)


@dataclass(frozen=True)
class Renamed(Over):
    """The same rows, with other names for the columns, in their order."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Where(Over):
    """The rows for which the predicate is true."""

    predicate: Expression


@dataclass(frozen=True)
class Computed(Over):
    """Each row's columns made anew. The person stays with the row, shown or not."""

    columns: tuple[tuple[str, Expression], ...]

    def __post_init__(self) -> None:
        _told_apart([name for name, _ in self.columns])


class JoinKind(StrEnum):
    """Which rows without a partner a join keeps."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"

    __repr__ = str.__repr__
    """As the text that it once was: keys of stored answers are made of a plan's repr."""


@dataclass(frozen=True)
class Joined(Relation):
    """Pairs of rows for which the condition is true. Raises ValueError where `kind` is no `JoinKind`.

    Names of columns are told apart before. Without `condition` every pair counts, of the same person where both sides
    are about people.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    condition: Expression | None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, JoinKind):
            raise ValueError("the kind of a join is one of JoinKind")

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.left, self.right)


class PersonTotalKind(StrEnum):
    """What is made of the rows of one person."""

    ROWS = "rows"
    PRESENT = "present"
    DISTINCT = "distinct"
    SUM = "sum"
    MEAN = "mean"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"

    __repr__ = str.__repr__
    """As the text that it once was: keys of stored answers are made of a plan's repr."""


@dataclass(frozen=True)
class PersonTotal:
    """A total over the rows of one person, as an integer or a value of one of these rows.

    Sums are made on a lattice: a sum of doubles depends on the order of its terms, and so on more than one person's
    rows.
    """

    kind: PersonTotalKind
    expression: Expression | None = None
    lattice: Lattice | None = None


@dataclass(frozen=True)
class PerPerson(Over):
    """One row for each person and value of the keys (of a public relation: for each value of the keys)."""

    keys: tuple[tuple[str, Expression], ...]
    totals: tuple[tuple[str, PersonTotal, Column], ...]


@dataclass(frozen=True)
class RowBefore(Over):
    """The same rows, beside each what the row before it holds: for each pair of `columns` a new name, and the column
    there. The row before is one of the same person, with the same values in the columns `within`. These rows stand by
    the column `order`, NULL first, and where that is equal by what tells a person's rows apart (r0, r1, … of
    `relation_statements`). Of the first row of them the new columns are NULL.

    What a person can do. Which row is before which follows from the person's own rows, so the rule above holds: without
    a person, that person's rows are gone with their pairs, and no row of anybody else has another row before it. No row
    is added or left out, so pairs need no bound of their own: R rows that count hold at most R pairs of a row and the
    one before, among them that of the first row and none. Each weighs what the row weighs.
    """

    within: tuple[str, ...]
    order: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Stacked(Relation):
    """All rows of several relations with the same columns, under the names of the first."""

    parts: tuple[Relation, ...]

    @property
    def children(self) -> tuple[Relation, ...]:
        return self.parts


@dataclass(frozen=True)
class Matched(Over):
    """The rows whose `value` stands, or with `negated` does not stand, in the only column of `among`.

    That one is public; or it holds persons, and `value` is the row's person: then the row is kept by whether its person
    has a row there. With `value` None the person itself is looked up.
    """

    value: Expression | None
    among: Relation
    negated: bool = False

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.child, self.among)


@dataclass(frozen=True)
class ListedKeys(Over):
    """The same rows, with public keys for some columns: `rows` are those that a public table lists, `names` says which
    columns hold each of their values."""

    names: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class RelationShape:
    """The properties of a relation that follow from declarations alone.

    `persons` are the columns that always hold the row's person. `single`: no person has more than one row. `rows` and
    `groups` are the limits that a question over it takes unless it names its own.
    """

    columns: tuple[Column, ...]
    private: bool
    persons: tuple[str, ...] = ()
    single: bool = False
    person_type: Type | None = None
    """None where a row's person is told by nothing but that it is a row."""
    rows: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        _told_apart([column.name for column in self.columns])

    def column(self, name: str) -> Column:
        """The column of this name, which must be one of them."""
        return next(column for column in self.columns if column.name == name)

    @property
    def by_name(self) -> Mapping[str, Column]:
        """The columns by their names."""
        return {column.name: column for column in self.columns}


def _told_apart(names: Sequence[str]) -> None:
    """Raises ValueError where two columns have one name: what is checked would be one of them, what is read the other,
    of another type or with other bounds."""
    if len(set(names)) < len(names):
        raise ValueError("the columns of a relation must have different names")


def shape(relation: Relation) -> RelationShape:
    """The columns of a relation, whose rows they are, and how many a person may have.

    It is kept beside the relation's fields, which never change: each level asks for those below it several times."""
    known: RelationShape | None = vars(relation).get("_shape")
    if known is None:
        known = _shape(relation)
        object.__setattr__(relation, "_shape", known)
    return known


def _shape(relation: Relation) -> RelationShape:
    if isinstance(relation, Base):
        return _base(relation.table)
    if isinstance(relation, Attributed):
        table = relation.child.table
        limits = table.rows_per_person or 1, table.groups_per_person or 1
        columns = _known(table.columns, [relation.column])  # without a value it leads to nobody
        return RelationShape(columns, True, (), False, shape(relation.owner).person_type, *limits)
    if isinstance(relation, Joined):
        return _joined(relation)
    if isinstance(relation, Stacked):
        return _stacked(relation)
    assert isinstance(relation, Over)
    below = shape(relation.child)
    if isinstance(relation, Where):
        return replace(below, columns=without_nulls(below.columns, relation.predicate))
    if isinstance(relation, Matched) and isinstance(relation.value, ColumnOf) and not relation.negated:
        return replace(below, columns=_known(below.columns, [relation.value.name]))
    if isinstance(relation, Renamed):
        names = dict(zip((column.name for column in below.columns), relation.names, strict=True))
        columns = tuple(replace(column, name=names[column.name]) for column in below.columns)
        return replace(below, columns=columns, persons=tuple(names[name] for name in below.persons))
    if isinstance(relation, Computed):
        known = below.by_name
        columns = tuple(derived(name, expression, known) for name, expression in relation.columns)
        persons = tuple(name for name, expression in relation.columns if holds_person(expression, below))
        return replace(below, columns=columns, persons=persons)
    if isinstance(relation, RowBefore):
        lagged = [replace(below.column(old), name=new, nulls=True) for new, old in relation.columns]
        return replace(below, columns=(*below.columns, *lagged))
    if isinstance(relation, ListedKeys):
        keyed = {
            name: Column(
                name,
                below.column(name).type,
                step=below.column(name).step,
                values=tuple(dict.fromkeys(row[place] for row in relation.rows)),
                nulls=False,
            )
            for place, names in enumerate(relation.names)
            for name in names
        }
        return replace(below, columns=tuple(keyed.get(column.name, column) for column in below.columns))
    if isinstance(relation, PerPerson):
        known = below.by_name
        keys = tuple(derived(name, expression, known) for name, expression in relation.keys)
        persons = tuple(name for name, expression in relation.keys if holds_person(expression, below))
        single = below.private and len(persons) == len(relation.keys)
        limits = (1, 1) if single else (below.rows, below.groups)
        columns = (*keys, *(column for _, _, column in relation.totals))
        return RelationShape(columns, below.private, persons, below.single or single, below.person_type, *limits)
    return below


def _known(columns: tuple[Column, ...], names: Sequence[str]) -> tuple[Column, ...]:
    """The columns, some of them without NULL."""
    return tuple(replace(column, nulls=False) if column.name in names else column for column in columns)


def holds_person(expression: Expression, below: RelationShape) -> bool:
    """Whether the expression is a row's person, as it stands: what is computed from a person is none."""
    return isinstance(expression, ColumnOf) and expression.name in below.persons


def _base(table: Table) -> RelationShape:
    column = table.column(table.person) if table.person is not None else None
    return RelationShape(
        _known(table.columns, [column.name] if column is not None else []),  # rows of nobody are not loaded
        not table.public,
        (column.name,) if column is not None else (),
        not table.public and table.one_row_per_person,
        column.type if column is not None else None,
        table.rows_per_person or 1,
        table.groups_per_person or 1,
    )


def _joined(relation: Joined) -> RelationShape:
    left, right = shape(relation.left), shape(relation.right)
    columns = (*_extended(left.columns, relation, "right"), *_extended(right.columns, relation, "left"))
    if relation.kind is JoinKind.INNER:
        columns = without_nulls(columns, relation.condition)
    if not (left.private and right.private):
        about = left if left.private else right
        single = about.single and _at_most_one(relation, about is left)
        return replace(about, columns=columns, single=single, private=left.private or right.private)
    persons = {
        JoinKind.INNER: (*left.persons, *right.persons),
        JoinKind.LEFT: left.persons,
        JoinKind.RIGHT: right.persons,
        JoinKind.FULL: (),
    }[relation.kind]
    rows, groups = max(left.rows, right.rows), max(left.groups, right.groups)
    if relation.kind in (JoinKind.INNER, JoinKind.LEFT) and _at_most_one(relation, True):
        rows, groups = left.rows, left.groups  # each row meets one of its person's at most: there are no more
    # of a FULL join a person whose two rows do not meet keeps both
    single = left.single and right.single and relation.kind is not JoinKind.FULL
    return RelationShape(columns, True, persons, single, left.person_type, rows, groups)


def _extended(columns: tuple[Column, ...], relation: Joined, other: str) -> tuple[Column, ...]:
    """The columns of one side: NULL where the `other` side keeps rows without a partner."""
    return tuple(replace(one, nulls=True) for one in columns) if relation.kind in (other, JoinKind.FULL) else columns


def beside(relation: Joined) -> Relation | None:
    """The side about people of a join with a public table that meets each of its rows once at most; None of others."""
    left, right = shape(relation.left).private, shape(relation.right).private
    if left == right or not _at_most_one(relation, left):
        return None
    return relation.left if left else relation.right


def _at_most_one(relation: Joined, left_is_private: bool) -> bool:
    """Whether a row of the private side meets at most one row."""
    return found_by(relation, left_is_private) is not None


def found_by(relation: Joined, left_is_private: bool) -> Mapping[str, Sequence[Expression]] | None:
    """By what a row of the private side finds the only row of the public side that it can meet; None where it may meet
    several: the public side has one row for each value of some columns, and each of these is compared, without
    rounding, with something that the private row alone decides. Of two sides about people, the other one's rows of the
    same person are meant."""
    public = relation.right if left_is_private else relation.left
    keys = _distinct_by(public)
    if keys is None:
        return None
    mine = {column.name for column in shape(public).columns}
    met: dict[str, list[Expression]] = {}
    for part in conjuncts(relation.condition) if relation.condition is not None else ():
        if not isinstance(part, Call) or part.operator != "equal":
            continue
        for one, other in (part.arguments, part.arguments[::-1]):
            exact = one.type is not Type.INTEGER or (isinstance(other, ColumnOf) and other.type is Type.INTEGER)
            if isinstance(one, ColumnOf) and one.name in keys and exact and not columns_of(other) & mine:
                met.setdefault(one.name, []).append(other)
    return met if met.keys() == keys else None


def _distinct_by(relation: Relation) -> frozenset[str] | None:
    """Columns of whose values a relation has no two rows (of one person) alike; None where that is not known."""
    if isinstance(relation, PerPerson):
        return frozenset(name for name, _ in relation.keys)
    if isinstance(relation, Where | Matched | ListedKeys | Renamed | Computed):
        below = _distinct_by(relation.child)
        names: dict[str, str] = {column.name: column.name for column in shape(relation.child).columns}
        if isinstance(relation, Renamed):
            names = dict(zip(names, relation.names, strict=True))
        if isinstance(relation, Computed):
            names = {one.name: name for name, one in relation.columns if isinstance(one, ColumnOf)}
        return frozenset(names[name] for name in below) if below is not None and below <= names.keys() else None
    return None


def depth(relation: Relation) -> int:
    """How many SELECTs stand one in another where the engine reads this relation, at most."""
    if isinstance(relation, Matched):
        return 1 + max(depth(relation.child), depth(relation.among) + 1)
    own = 0 if isinstance(relation, Renamed | ListedKeys) else 2 if isinstance(relation, Stacked) else 1
    return own + max(map(depth, relation.children), default=0)


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The conditions that are joined by AND."""
    if isinstance(expression, Call) and expression.operator == "and":
        return tuple(part for argument in expression.arguments for part in conjuncts(argument))
    return (expression,)


def _stacked(relation: Stacked) -> RelationShape:
    shapes = [shape(child) for child in relation.children]
    columns = []
    for place, first in enumerate(shapes[0].columns):
        same = [one.columns[place] for one in shapes]
        columns.append(_either(first, same))
    persons = tuple(
        column.name
        for place, column in enumerate(shapes[0].columns)
        if all(one.columns[place].name in one.persons for one in shapes)
    )
    rows, groups = sum(one.rows for one in shapes), sum(one.groups for one in shapes)
    return RelationShape(tuple(columns), shapes[0].private, persons, False, shapes[0].person_type, rows, groups)


def _either(first: Column, same: list[Column]) -> Column:
    """A column that holds values of any of these."""
    kind = first.type if all(one.type is first.type for one in same) else Type.NUMBER
    values = None
    if all(one.values is not None for one in same):
        values = tuple(dict.fromkeys(value for one in same for value in one.values or ()))
    low = high = None
    if all(one.minimum is not None and one.maximum is not None for one in same):
        low = min(one.minimum for one in same)  # type: ignore[type-var]
        high = max(one.maximum for one in same)  # type: ignore[type-var]
    step = first.step if all(one.step == first.step for one in same) else None
    return Column(first.name, kind, low, high, step, values, any(one.nulls for one in same))


def derived(name: str, expression: Expression, known: Mapping[str, Column]) -> Column:
    """What is known of a computed column: its type, bounds by interval arithmetic, its step, and values where it lists
    them."""
    if isinstance(expression, ColumnOf):
        return replace(known[expression.name], name=name)
    bounds = interval(expression, known) if expression.type.numeric else None
    nulls = may_be_null(expression, known)
    low = high = None
    if bounds is not None:
        low, high = bounds
        if expression.type is Type.INTEGER:
            low, high = Fraction(-(-low // 1)), Fraction(high // 1)
            return Column(name, expression.type, int(low), int(high), None, _listed(expression, known), nulls)
    step = step_of(expression, known) if expression.type is Type.NUMBER else None
    return Column(name, expression.type, low, high, step, _listed(expression, known), nulls)


def _listed(expression: Expression, known: Mapping[str, Column]) -> tuple[Value, ...] | None:
    """The values of a CASE whose results are constants, or of arithmetic on one column with public keys; None where
    there are others."""
    if expression.type is Type.INTEGER and (whole := _mapped(expression, known)) is not None:
        return whole
    if not isinstance(expression, Call) or expression.operator != "case" or expression.type is Type.NUMBER:
        return None
    results = case_results(expression)
    if not all(isinstance(result, Literal) for result in results):
        return None
    found = [result.value for result in results if isinstance(result, Literal) and result.value is not None]
    return tuple(dict.fromkeys(found))


_ARITHMETIC: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "modulo": math.fmod,
    "negate": lambda a: -a,
    "absolute": abs,
    "from_steps": lambda count, numerator, denominator: count * numerator / denominator,
    "floor": math.floor,
    "ceiling": math.ceil,
}
"""Operators that doubles compute alike here and in the engine."""


def _mapped(expression: Expression, known: Mapping[str, Column]) -> tuple[Value, ...] | None:
    """What whole-numbered arithmetic makes of the public keys of the only column it reads: FLOOR(age / 10) * 10."""
    names = columns_of(expression)
    if len(names) != 1 or not isinstance(expression, Call):
        return None
    (name,) = names
    keys = known[name].keys()
    if keys is None or known[name].type is not Type.INTEGER:
        return None
    try:
        found = {_computed(expression, float(key)) for key in keys if isinstance(key, int)}
    except (KeyError, ZeroDivisionError, OverflowError, ValueError):
        return None
    if not found or not all(value.is_integer() and abs(value) < 2**53 for value in found):
        return None
    return tuple(sorted(int(value) for value in found))


def _computed(expression: Expression, value: float) -> float:
    if isinstance(expression, ColumnOf):
        return value
    if isinstance(expression, Literal):
        if not isinstance(expression.value, int | Fraction):
            raise KeyError
        return float(expression.value)
    return float(_ARITHMETIC[expression.operator](*(_computed(one, value) for one in expression.arguments)))


def bases(relation: Relation) -> tuple[Table, ...]:
    """The declared tables below a relation, each once."""
    if isinstance(relation, Base):
        return (relation.table,)
    found = [table for child in relation.children for table in bases(child)]
    named = {table.name: table for table in found}
    if any(named[table.name] != table for table in found):
        raise ValueError("two tables have the same name")
    return tuple(named.values())


def check(relation: Relation) -> None:
    """Raises ValueError where the rows that carry a person could depend on other persons' rows: what this page's rule
    asks of each node, held against the declared tables at its bottom.

    A table whose persons are told along a path is read along that path alone; a private side that rows are matched with
    holds persons and is looked up by the row's own; a total is of one person's rows; what is stacked is all about
    people or all public; and terms read columns as what they are."""
    for child in relation.children:
        if not (isinstance(relation, Attributed) and child is relation.child):
            check(child)
    if isinstance(relation, Base) and relation.table.path is not None:
        raise ValueError("a table's person is found along its path")
    if isinstance(relation, Attributed):
        _check_path(relation)
    elif isinstance(relation, Matched):
        _check_matched(relation)
    elif isinstance(relation, Stacked) and len({shape(child).private for child in relation.parts}) != 1:
        raise ValueError("UNION ALL cannot mix tables about people and public tables")
    elif isinstance(relation, PerPerson) and _of_nobody(shape(relation.child)):
        raise ValueError("a relation without persons has no totals per person")
    elif isinstance(relation, RowBefore):
        _check_before(relation)
    if isinstance(relation, Over):
        types = {column.name: column.type for column in shape(relation.child).columns}
    elif isinstance(relation, Joined):
        types = {c.name: c.type for side in relation.children for c in shape(side).columns}
    else:
        return
    if not all(typed(one, types) for one in _terms(relation)):
        raise ValueError("a term reads a column under another type than its own")


def _of_nobody(known: RelationShape) -> bool:
    """Whether rows are of persons that nothing tells apart, and a person may have several."""
    return known.private and not known.single and known.person_type is None


def _check_path(relation: Attributed) -> None:
    """Raises ValueError unless the table is read along the path that it declares."""
    table, owner = relation.child.table, relation.owner
    held = owner.child.table if isinstance(owner, Attributed) else owner.table if isinstance(owner, Base) else None
    if held is None or table.path != (held.name, relation.target) or table.person != relation.column:
        raise ValueError("a table's person is found along its path")


def _check_matched(relation: Matched) -> None:
    """Raises ValueError where rows are matched with a private side by anything but their person."""
    among, below = shape(relation.among), shape(relation.child)
    if not among.private:
        return
    persons = [column.name for column in among.columns if column.name in among.persons]
    own = relation.value is None or holds_person(relation.value, below)
    if not (own and below.private and len(persons) == len(among.columns) == 1):
        raise ValueError("rows are matched with private ones by their person alone")


def _check_before(relation: RowBefore) -> None:
    """Raises ValueError where no column tells whose rows are, so that the row before might be another person's, or a
    column is not there."""
    below = shape(relation.child)
    if not below.private or below.person_type is None:
        raise ValueError("a row has one before it among those of its person, told by a column")
    if not {relation.order, *relation.within, *(old for _, old in relation.columns)} <= below.by_name.keys():
        raise ValueError("the row before has no such column")


def _terms(relation: Relation) -> list[Expression]:
    """What a relation computes of the rows below it."""
    if isinstance(relation, Where):
        return [relation.predicate]
    if isinstance(relation, Computed):
        return [one for _, one in relation.columns]
    if isinstance(relation, PerPerson):
        totals = [one.expression for _, one, _ in relation.totals if one.expression is not None]
        return [*(one for _, one in relation.keys), *totals]
    condition = relation.condition if isinstance(relation, Joined) else None
    return [one for one in (condition, getattr(relation, "value", None)) if one is not None]


@as_table.register
def view(relation: Relation) -> Table:
    """A relation as a table that a question can be asked of. Raises ValueError where it breaks the rule above."""
    check(relation)
    known = shape(relation)
    parts = bases(relation)
    person = known.persons[0] if known.persons else HIDDEN
    return Table(
        " + ".join(table.name for table in parts),
        Source(SourceKind.RELATION),
        known.columns,
        person if known.person_type is not None else None,
        known.single,
        1 if known.single else known.rows,
        1 if known.single else known.groups,
        parts=parts,
        relation=relation,
    )
