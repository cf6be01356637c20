"""How columns relate to persons: keys that identify a row's person, and columns that are constant for a person.

**How many groups a person touches** (`touched`). A column is *own* in a relation where its value, on each row of a
person, is a function of that person and of some *switches*, each of which is on or off on a row. A person whose rows
are grouped by own columns that depend on s switches together touches at most 2^s groups: without switches one. By
induction over the relation, with the person's other rows, the public tables, the question and the salt fixed:

* a relation with at most one row a person: every column is own, without switches. So are the columns that hold the
  person, of any relation;
* Computed    an expression of own columns alone is own, with their switches; constants are. Operators are functions of
              one row: none draws, none reads a clock;
* Where, Matched, Renamed, Listed    leave rows out or name columns anew: what is own stays own;
* Joined      inner: a row has the values of a row of either side, so what is own there is own, with the same switches.
              Outer: a row of the kept side stands without a partner if its condition is true for none. Where condition
              and persons read own columns alone, that too is decided by their switches: a person's rows on the other
              side are the same for all of them. Else whether a partner is missing is one more switch, and columns of
              the other side (NULL where it is on) depend on it too. FULL has such a switch for each side.
              Of a public table that meets each row once at most, for values that are compared with own columns: its row
              is found by these, so its columns are own, with the switches of what they are compared with;
* PerPerson   a key is own as a computed column is. Totals are functions of the person and the keys: own where all keys
              are, with their switches;
* Stacked     rows of several relations, which may hold different values for one person: only the person is own;
* Attributed  rows as many as refer to the person's: nothing is own.

Limits take rows or groups away, and never make one. Groups by own columns and others: of each of the 2^s values, at
most as many as there are values of the others together.

**Persons found along foreign keys** (`same_keys`). A column *leads* to the person by a column T.c where each of its
values, NULL aside, stands in T.c in a row of the same person. In T every column does; a foreign key to T.c does, and
what is handed on as it is keeps doing so. If two columns lead by the same T.c, and one of them is a foreign key, by
which rows get their persons, then rows in which they are equal belong to the same persons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from discreet.trusted.ring_a.expressions import ColumnOf, Expression
from discreet.trusted.ring_a.table import Relation, Table, own_columns
from discreet.trusted.ring_b.relations import (
    Attributed,
    Base,
    Computed,
    Joined,
    JoinKind,
    Over,
    PerPerson,
    Renamed,
    Stacked,
    columns_of,
    found_by,
    shape,
)


def declared(table: Table, tables: Mapping[str, Table]) -> Base | Attributed:
    """The rows of a declared table; where its person is found along a foreign key, with that."""
    whole = Base.of(table)
    if table.path is None:
        return whole
    owner, target = table.path
    assert table.person is not None
    return Attributed(whole, table.person, declared(tables[owner], tables), target)


Switch: TypeAlias = tuple[int, ...]
"""Whether rows of one side of one outer join stand without a partner: where the join is in the tree (0 and 1 are the
ways down to its sides), with 2 or 3 behind it for the sides of a FULL one, so that no two switches have one name."""

Own: TypeAlias = Mapping[str, frozenset[Switch]]
"""The own columns of a relation, each with the switches that its value depends on."""

NONE: frozenset[Switch] = frozenset()


@own_columns.register
def own(relation: Relation, at: Switch = ()) -> Own:
    """The columns of a relation of whose values a person has one for each setting of their switches."""
    known = shape(relation)
    if not known.private:
        return {}
    if known.single:
        return dict.fromkeys((column.name for column in known.columns), NONE)
    if isinstance(relation, Base | Attributed | Stacked):
        return dict.fromkeys(known.persons, NONE)
    if isinstance(relation, Joined):
        return _joined(relation, at)
    assert isinstance(relation, Over)
    below = own(relation.child, (*at, 0))
    if isinstance(relation, Renamed):
        names = [column.name for column in shape(relation.child).columns]
        return {new: below[old] for old, new in zip(names, relation.names, strict=True) if old in below}
    if isinstance(relation, Computed):
        return _made(relation.columns, below)
    if isinstance(relation, PerPerson):
        keys = _made(relation.keys, below)
        if len(keys) < len(relation.keys):
            return keys
        return {**keys, **dict.fromkeys((name for name, _, _ in relation.totals), NONE.union(*keys.values()))}
    return below


def _made(columns: tuple[tuple[str, Expression], ...], below: Own) -> dict[str, frozenset[Switch]]:
    """Computed columns that read own columns alone."""
    return {name: switches for name, one in columns if (switches := _read(one, below)) is not None}


def _read(expression: Expression, below: Own) -> frozenset[Switch] | None:
    """The switches of an expression; None where it reads what is not own."""
    names = columns_of(expression)
    return NONE.union(*(below[name] for name in names)) if names <= below.keys() else None


def _joined(relation: Joined, at: Switch) -> Own:
    left, right = own(relation.left, (*at, 0)), own(relation.right, (*at, 1))
    about = shape(relation.left).private, shape(relation.right).private
    if about[0] is not about[1]:
        if relation.kind not in (JoinKind.INNER, JoinKind.LEFT if about[0] else JoinKind.RIGHT):
            return {}  # rows of nobody: no such question is read
        mine = left if about[0] else right
        found = _of_public(relation, mine, about[0])
        left, right = (mine, found) if about[0] else (found, mine)
    switches = NONE if relation.condition is None else _read(relation.condition, {**left, **right})
    alone = frozenset([at]) if switches is None else switches
    match relation.kind:
        case JoinKind.INNER:
            return {**left, **right}
        case JoinKind.FULL:
            return {**_beside(left, frozenset([(*at, 2)])), **_beside(right, frozenset([(*at, 3)]))}
        case JoinKind.LEFT:
            return {**left, **_beside(right, alone)}
        case JoinKind.RIGHT:
            return {**_beside(left, alone), **right}
        case _:
            assert_never(relation.kind)


def _beside(columns: Own, switches: frozenset[Switch]) -> Own:
    """The same columns where they are NULL for some settings of these switches."""
    return {name: known | switches for name, known in columns.items()}


def _of_public(relation: Joined, mine: Own, left_is_private: bool) -> Own:
    """The columns of a public table of which each row meets one at most, the same one for the same own values."""
    compared = found_by(relation, left_is_private)
    if compared is None:
        return {}
    switches = NONE
    for expressions in compared.values():
        known = [found for one in expressions if (found := _read(one, mine)) is not None]
        if not known:
            return {}
        switches |= known[0]
    public = shape(relation.right if left_is_private else relation.left)
    return dict.fromkeys((column.name for column in public.columns), switches)


Leads: TypeAlias = Mapping[str, frozenset[tuple[str, str, bool]]]
"""For each column the columns of declared tables (table, column) by which it leads, and whether as a foreign key."""


def leads(relation: Relation) -> Leads:
    """By which columns of declared tables the columns of a relation lead to the person."""
    if isinstance(relation, Base):
        table = relation.table
        return {} if table.public else {c.name: frozenset([(table.name, c.name, False)]) for c in table.columns}
    if isinstance(relation, Attributed):
        own = dict(leads(relation.child))
        found = {(table, column, True) for table, column, _ in leads(relation.owner).get(relation.target, ())}
        own[relation.column] |= found
        return own
    if isinstance(relation, Joined):
        return {**leads(relation.left), **leads(relation.right)}
    if isinstance(relation, Stacked):
        each = [leads(child) for child in relation.children]
        places = zip(*(shape(child).columns for child in relation.children), strict=True)
        return {
            same[0].name: frozenset.intersection(
                *(one.get(column.name, frozenset()) for one, column in zip(each, same, strict=True))
            )
            for same in places
        }
    assert isinstance(relation, Over)
    below = leads(relation.child)
    if isinstance(relation, Renamed):
        names = [column.name for column in shape(relation.child).columns]
        return {new: below.get(old, frozenset()) for old, new in zip(names, relation.names, strict=True)}
    if isinstance(relation, Computed | PerPerson):
        pairs = relation.columns if isinstance(relation, Computed) else relation.keys
        return {name: below.get(one.name, frozenset()) for name, one in pairs if isinstance(one, ColumnOf)}
    return below


def same_keys(one: Leads, other: Leads) -> list[tuple[str, str]]:
    """The pairs of columns that, where they are equal, are of the same persons: one is the foreign key that leads to
    them, the other leads to them by the same column."""
    return [
        (mine, yours)
        for mine, left in one.items()
        for yours, right in other.items()
        if any((a, b) == (c, d) and (f or g) for a, b, f in left for c, d, g in right)
    ]
