"""Several tables of the same persons: which refers to which, and the views whose marginals are measured.

The first of them has one row a person. Each other is below one that it refers to: the persons' table where a column
holds the person, else the table at the end of its foreign key. Of each table one view is made, a relation of declared
tables (`ring_b.relations`), with a row for each of its rows that leads to a row above:

* its own columns;
* beside them, those of the row that it refers to, and of the row above that one, up to the person, with how many
  rows of this table, and of the tables on the way, refer to each;
* for each table below, how many rows there refer to the row: at most as many as a person may have there;
* where its rows are in time, its own columns once more, as the row before has them that refers to the same row.

All follows from declarations. What a person can move in a view's marginals follows from the view (`ring_c.marginals`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from discreet.catalog import Declaration
from discreet.catalog.model import MOST_WORK
from discreet.errors import QuestionError, refused
from discreet.plan.work import default_work, demand
from discreet.synthesis.columns import PublishedColumn, published
from discreet.synthesis.row_before import called
from discreet.synthesis.sums import Summed, summed_columns
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Expression
from discreet.trusted.ring_a.nodes import Aggregate, LimitRows, Project, Scan, Total, TotalKind
from discreet.trusted.ring_a.table import Column, Relation, Table, Type, as_table
from discreet.trusted.ring_b.belonging import declared
from discreet.trusted.ring_b.relations import (
    Computed,
    Joined,
    JoinKind,
    PerPerson,
    PersonTotal,
    PersonTotalKind,
    RowBefore,
    own_name,
    shape,
)
from discreet.trusted.ring_c.coded import UNIT
from discreet.trusted.ring_c.coding import rows_of_person

_EXAMPLE = 'write publish(["patients", "conditions"]), a table with one row a person and others of these persons'


@dataclass(frozen=True)
class Above:
    """A column of a view that is another table's: `column` of a row above."""

    name: str
    table: str
    column: str
    type: Type


@dataclass(frozen=True)
class RelatedTable:
    """A table of a publication of several.

    `columns` are its own that are published, by their own names, `counts` say how many rows of the tables `below` refer
    to a row, and `above` which columns of the rows above stand beside it in the `view`. `keys` are what others refer
    to, `reference` is the column that refers to the key `target` of the table `parent`: both get made-up values.
    `sums` are columns that are computed from others. `before` names its own columns as the row before has them, where
    rows stand by the column `time`.
    """

    table: Table
    view: Table
    columns: tuple[PublishedColumn, ...]
    counts: tuple[PublishedColumn, ...]
    below: tuple[str, ...]
    above: tuple[Above, ...]
    left_out: Mapping[str, str]
    keys: tuple[str, ...]
    reference: str | None
    parent: str | None
    target: str | None
    before: Mapping[str, str]
    time: str | None
    sums: tuple[Summed, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows of a person count in the view at most."""
        return rows_of_person(self.view)

    @property
    def evenly(self) -> bool:
        """Whether the person's rows share one weight in marginals: where there may be several."""
        return self.rows > 1

    @property
    def moved(self) -> int:
        """What a person moves in a marginal at most."""
        return UNIT if self.evenly else 1


def number_of_rows(view: Table) -> Aggregate:
    """The number of a view's rows that count, as a plan: by it is known how much work a person's rows make."""
    project = Project(Scan(view.name, view.person, view.one_row_per_person, view.relation), (), ())
    limited = project if view.one_row_per_person else LimitRows(project, rows_of_person(view))
    return Aggregate(limited, (Total(TotalKind.ROWS),))


def hold_work(declaration: Declaration, name: str, view: Table) -> None:
    """Raises QuestionError where the rows of one person in the view of a table are too much work for the engine."""
    _, needed = demand(number_of_rows(view), view, _NoPublic())
    most = declaration.limits.work or default_work(list(declaration.tables.values()))
    if needed > most:
        fix = f"declare fewer rows_per_person of {name}, or of the tables that it refers to"
        fix += f"; or write work = {needed} under [engine]" if needed <= MOST_WORK else ""
        message = f"one person's rows of {name} can take as long as {needed:,} joined rows, more than {most:,}"
        raise refused("work", message, f"tables.{name}.rows_per_person", fix)


class _NoPublic:
    """Of views of tables about people, which hold no public one: there is nothing to ask about."""

    def most(self, relation: Relation, names: tuple[str, ...]) -> int:
        raise NotImplementedError

    def longest(self, relation: Relation) -> Mapping[str, int]:
        raise NotImplementedError


def related(declaration: Declaration, names: Sequence[str]) -> tuple[RelatedTable, ...]:
    """The tables, each after the one that it refers to. Raises QuestionError where they are not of the same persons."""
    links = _links(_tables(declaration, names))
    found: list[RelatedTable] = []
    contexts: dict[str, Relation] = {}
    for link in links:
        one, beside = _viewed(declaration, link, links, found, contexts)
        contexts |= beside
        found.append(one)
    return tuple(found)


def connected(declaration: Declaration) -> dict[str, tuple[str, ...]]:
    """Which tables can be published together, and what the rows of each refer to: one of these has to be named too. Of
    a table with one row a person that is nothing, as it may stand above all others. Empty where no two can be."""
    tables = [one for one in declaration.tables.values() if not one.public and not one.shared]
    found: dict[str, tuple[str, ...]] = {one.name: () for one in tables if _whole(one)}
    wholes = [one for one in tables if _whole(one)]
    for _ in tables:  # each time those one step further below
        for one in tables:
            alike = [other.name for other in wholes if other is not one and _alike(one, other)]
            above = [one.path[0]] if one.path is not None else alike
            if not _whole(one) and (named := tuple(name for name in above if name in found)):
                found[one.name] = named
    return found if any(found.values()) or any(_alike(*pair) for pair in itertools.combinations(wholes, 2)) else {}


@dataclass(frozen=True)
class _TableReference:
    """What a table refers to: the table above, by a column, which holds what `target` holds there; of the persons'
    table nothing."""

    table: Table
    parent: Table | None = None
    column: str | None = None
    target: str | None = None


def neither(given: object) -> QuestionError:
    """Of what is to be published and is no name of a table, nor names of several."""
    if isinstance(given, Set):
        return refused("table", "a set of names has no order", "table", f"give a list: {_EXAMPLE}")
    one = isinstance(given, list | tuple) and len(given) == 1 and isinstance(given[0], str)
    alone = f'publish("{given[0]}")' if one else 'publish("patients")'  # type: ignore[index]
    message = "this is neither a table nor a list of at least two tables"
    return refused("table", message, "table", f"name one table, {alone}; or at least two: {_EXAMPLE}")


def _tables(declaration: Declaration, names: Sequence[str]) -> list[Table]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names) or len(names) < 2:
        raise neither(names)
    found: list[Table] = []
    for name in names:
        table = declaration.table(name)
        if table is None:
            known = ", ".join(declaration.tables)
            raise refused("table", f"the table {name} is not declared", "table", f"name some of {known}")
        if table in found:
            raise refused("table", f"{table.name} is named twice", "table", "name each table once")
        if table.public:
            raise refused("table", f"{table.name} is public", "table", "leave it out: it can be read directly")
        if table.shared:
            raise refused("table", f"rows of {table.name} are of several persons", "table", "leave it out")
        found.append(table)
    return found


def _links(tables: Sequence[Table]) -> tuple[_TableReference, ...]:
    """What refers to what, the persons' table first."""
    whole = next(filter(_whole, tables), None)
    if whole is None:
        fix = "name the table with one row a person too, and declare one_row_per_person and person of it"
        raise refused(
            "table", "none of these tables has one row a person, with a column that tells whose", "table", fix
        )
    names = {one.name: one for one in tables}
    links, waiting = [_TableReference(whole)], [one for one in tables if one is not whole]
    while waiting:
        ready = [one for one in waiting if one.path is None or any(one.path[0] == link.table.name for link in links)]
        if not ready:
            missing = next(one for one in waiting if one.path and one.path[0] not in names)
            assert missing.path is not None
            message = f"{missing.name} refers to {missing.path[0]}, which is not among these tables"
            raise refused("table", message, "table", f"name {missing.path[0]} too, or leave {missing.name} out")
        for one in ready:
            links.append(_link(one, whole, names))
            waiting.remove(one)
    return tuple(links)


def _whole(table: Table) -> bool:
    """Whether it has one row a person, and a column that tells whose."""
    return table.one_row_per_person and table.person is not None and table.path is None


def _alike(one: Table, other: Table) -> bool:
    """Whether a column of each tells whose its rows are, by the same type."""
    mine, theirs = (table.column(table.person) if table.person else None for table in (one, other))
    return mine is not None and theirs is not None and mine.type is theirs.type


def _link(one: Table, whole: Table, names: Mapping[str, Table]) -> _TableReference:
    if one.path is not None:
        return _TableReference(one, names[one.path[0]], one.person, one.path[1])
    if one.person is None or one.column(one.person) is None:
        fix = f"declare person of {one.name}, or leave it out"
        raise refused("table", f"no column of {one.name} tells whose its rows are", "table", fix)
    if not _alike(one, whole):
        message = f"persons are told by another type in {one.name} than in {whole.name}"
        raise refused("table", message, "table", f"declare one type for both, or leave {one.name} out")
    return _TableReference(one, whole, one.person, whole.person)


def _viewed(
    declaration: Declaration,
    link: _TableReference,
    links: Sequence[_TableReference],
    before: Sequence[RelatedTable],
    contexts: Mapping[str, Relation],
) -> tuple[RelatedTable, dict[str, Relation]]:
    """A table with its view; and for each table below what stands beside its rows: of the numbers of rows below, that
    of this table's alone."""
    table, parent = link.table, next((one for one in before if one.table is link.parent), None)
    children = [one for one in links if one.parent is table]
    # what any table refers to names a row, whether that one is published or not
    named = [one.path[1] for one in declaration.tables.values() if one.path is not None and one.path[0] == table.name]
    named += [table.person] if parent is None and table.person is not None else []
    keys = tuple(column.name for column in table.columns if column.name in named)
    for name in {*keys, link.column} - {None}:
        _hold_countable(table, name or "")
    ids = {*keys, table.person, link.column}
    columns, left_out = _published(table, ids)
    sums = _summed(declaration, table, columns, ids)
    summed = {column.name for column, _ in sums}
    columns = [one for one in columns if one.column.name not in summed]
    left_out = {name: why for name, why in left_out.items() if name not in summed}
    relation: Relation = declared(table, declaration.tables)
    above: tuple[Above, ...] = ()
    if parent is not None:
        own = [
            Above(f"{parent.table.name}.{one.column.name}", parent.table.name, one.column.name, _kind(one.column))
            for one in parent.columns
        ]
        number = parent.counts[parent.below.index(table.name)].column
        beside = Above(f"{parent.table.name}.{number.name}", parent.table.name, number.name, _kind(number))
        above = (*own, beside, *parent.above)
        # of a table with one row a person the person says which row it is, whom a join compares anyhow
        met = None if parent.parent is None else _equal(link, _key(parent.table, link.target))
        relation = Joined(JoinKind.INNER, relation, contexts[table.name], met)
    time = declaration.times.get(table.name) if parent is not None and rows_of_person(table) > 1 else None
    if time in summed:
        message = f"rows of {table.name} follow one another by {time}, which is computed from other columns"
        raise refused("sums", message, f"tables.{table.name}.time", "name one of its parts, or take the sum out")
    time = time if time in {one.column.name for one in columns} else None  # not where it is a key, made anew
    behind = {one.column.name: called(one.column.name) for one in columns} if time is not None else {}
    _hold_apart(table, [*(one.name for one in above), *map(_number, children), *behind.values()])
    plain = relation
    made_beside: dict[str, Relation] = {}
    counts = []
    for place, child in enumerate(children):
        counted = Column(_number(child), Type.INTEGER, 1, rows_of_person(child.table))
        name = own_name("reference", place)
        relation = _counted(declaration, relation, child, counted, name, alone=parent is None)
        with_number = _counted(declaration, plain, child, counted, name, alone=parent is None)
        told = () if parent is None else (child.target or "",)
        beside_child = _beside(table, [*(one.column for one in columns), counted], above, told)
        stands = Computed(with_number, beside_child)
        made_beside[child.table.name] = stands if parent is None else _once(stands, _key(table, child.target))
        one = published(counted, _numbers(rows_of_person(child.table)))
        assert one is not None
        counts.append(one)
    if not columns and not counts:
        raise refused("columns", f"no column of {table.name} can be published", "table", f"leave {table.name} out")
    if time is not None:
        relation = RowBefore(relation, (link.column or "",), time, tuple((new, old) for old, new in behind.items()))
    below = tuple(one.table.name for one in children)
    view, up = as_table(relation), parent.table.name if parent is not None else None
    made = RelatedTable(
        table,
        view,
        tuple(columns),
        tuple(counts),
        below,
        above,
        left_out,
        keys,
        link.column,
        up,
        link.target,
        behind,
        time,
        sums,
    )
    return made, made_beside


def _number(child: _TableReference) -> str:
    """What the number of rows of a table below is called."""
    return f"rows of {child.table.name}"


def _published(table: Table, ids: set[str | None]) -> tuple[list[PublishedColumn], dict[str, str]]:
    columns, left_out = [], {}
    for column in table.columns:
        one = None if column.name in ids else published(column)
        if one is not None:
            columns.append(one)
        elif column.name not in ids:
            left_out[column.name] = "its bounds are not declared"
    return columns, left_out


def _summed(
    declaration: Declaration, table: Table, columns: Sequence[PublishedColumn], ids: set[str | None]
) -> tuple[Summed, ...]:
    """The columns that are sums of published ones; a key is made anew, whatever it is the sum of."""
    known = {one.column.name for one in columns}
    told = [(name, parts) for name, parts in declaration.sums.get(table.name, ()) if name not in ids]
    names = dict.fromkeys(one for name, parts in told if set(parts) <= known for one in (name, *parts))
    return summed_columns(declaration, table, list(names)) if names else ()


def _counted(
    declaration: Declaration, relation: Relation, child: _TableReference, counted: Column, name: str, *, alone: bool
) -> Relation:
    """The rows with one more column: how many rows of a table below refer to each; NULL where none does."""
    keys: tuple[tuple[str, Expression], ...] = ()
    met = None
    if not alone:
        assert child.column is not None
        column = child.table.column(child.column)
        assert column is not None
        keys = ((name, ColumnOf(column.name, _kind(column))),)
        met = Call("equal", (ColumnOf(child.target or "", _kind(column)), ColumnOf(name, _kind(column))), Type.BOOLEAN)
    totals = ((counted.name, PersonTotal(PersonTotalKind.ROWS), counted),)
    below = PerPerson(declared(child.table, declaration.tables), keys, totals)
    return Joined(JoinKind.LEFT, relation, below, met)


def _equal(link: _TableReference, key: str) -> Expression:
    """Which row above a row refers to."""
    assert link.column is not None
    column = link.table.column(link.column)
    assert column is not None
    return Call("equal", (ColumnOf(column.name, _kind(column)), ColumnOf(key, _kind(column))), Type.BOOLEAN)


def _key(table: Table, target: str | None) -> str:
    """The name under which a key stands beside the rows that refer to it."""
    place = next(place for place, column in enumerate(table.columns) if column.name == target)
    return own_name(f"key of {table.name}", place)


def _beside(
    table: Table, columns: Sequence[Column], above: Sequence[Above], keys: Sequence[str]
) -> tuple[tuple[str, Expression], ...]:
    """What stands beside a row that refers to one of this table: its columns, those above it, and its keys."""
    known = {column.name: column for column in table.columns}
    own = [(f"{table.name}.{one.name}", ColumnOf(one.name, _kind(one))) for one in columns]
    others = [(one.name, ColumnOf(one.name, one.type)) for one in above]
    told = [(_key(table, name), ColumnOf(name, _kind(known[name]))) for name in keys]
    return (*own, *others, *told)


def _once(relation: Relation, key: str) -> PerPerson:
    """The rows, those of a person under one key as one, of which each column has the least value: so a row that refers
    to them stands in the view once, and no person's rows make more of them than they are."""
    known = shape(relation)
    others = [column for column in known.columns if column.name != key]
    totals = ((one.name, PersonTotal(PersonTotalKind.MINIMUM, ColumnOf(one.name, _kind(one))), one) for one in others)
    return PerPerson(relation, ((key, ColumnOf(key, _kind(known.column(key)))),), tuple(totals))


def _numbers(most: int) -> list[int]:
    """Where the cells of a number of rows begin: each by itself up to 8, then two for each doubling."""
    starts, width = list(range(2, 10)), 4
    while starts[-1] < most:
        starts += [starts[-1] + width, starts[-1] + 2 * width]
        width *= 2
    return [start for start in starts if start <= most]


def _hold_countable(table: Table, name: str) -> None:
    """Raises QuestionError where a key is of a type that no made-up number can have."""
    column = table.column(name)
    if column is None or column.type not in (Type.INTEGER, Type.NUMBER, Type.TEXT):
        kind = None if column is None else column.type
        message = f"{table.name}.{name} is a key of type {kind}, which cannot be made anew"
        raise refused("columns", message, "table", "declare it as text")


def _kind(column: Column) -> Type:
    assert column.type is not None
    return column.type


def _hold_apart(table: Table, names: Sequence[str]) -> None:
    """Raises QuestionError where a column of the view would have the name of another."""
    every = [*(column.name.casefold() for column in table.columns), *(name.casefold() for name in names)]
    twice = next((name for name in every if every.count(name) > 1), None)
    if twice is not None:
        raise refused("columns", f"two columns beside {table.name} would be called {twice}", "table", "rename one")
