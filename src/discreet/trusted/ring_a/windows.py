"""Rotating windows: which rows and groups of a person count, as a filter without any sort.

A person's n rows have positions 1 … n, and so have the person's m groups, in an order that was fixed when the positions
were made. A question with the limit K draws a fresh salt and keeps, of a person with more than K, the window

    (position + offset) mod n < K,     offset = hash(hash(salt, word)) mod n.

Why that is a bound. `word` is one value of the person (a hash of the person's id under a secret key of the load, one
value by construction: the least over the person's rows), so all positions of the person meet one offset o, and
p ↦ (p + o) mod n is one-to-one from {1, …, n} onto {0, …, n − 1}. So exactly K positions are kept where n > K, and
all of them otherwise: at most K for every key, every salt, and whatever the hash is worth. Hashes, positions and
numbers are unsigned in the engine, so no remainder is negative; and n ≥ 1 wherever there is a row.

Why neighbours are told apart by one person alone. Positions, n and word are functions of the load's key and of the
person's own rows and id: not of ranks over everybody, nor of other persons' rows. For a fixed key and salt a person who
leaves moves nobody's window, so the exact vectors differ by what that one person contributed, as in
`ring_a.sensitivity`; and what holds for each key and salt holds for keys and salts that are drawn.

Why it is fair. Over an offset uniform on {0, …, n − 1} each position is kept with probability exactly K/n: for a
position p the values (p + o) mod n are all of {0, …, n − 1}. A 64-bit hash modulo n is uniform up to n/2^64. Rows and
groups stand in keyed orders, so that a window is a mixture of what the person has, and not one stretch of the source.
What is left out is never made up for by a weight: a weight n/K would undo the bound.

WHERE is applied beside the window, not before it: the limit counts all rows, or all groups, that the person has under
the question's keys (of public ones, those that WHERE leaves), and then WHERE reads the person's own rows that are left.
That is a bound for the same reason, and loses something only of persons above the limit.

Which form a plan takes follows from the plan and the declaration's switch alone. Positions of groups are kept beside
the table, by key columns: `Held` says how they are built, when a question first needs them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.trusted.ring_a.dialect import function
from discreet.trusted.ring_a.names import ROW_NUMBER
from discreet.trusted.ring_a.nodes import Aggregate, Clip, Filter, LimitGroups, LimitRows, Project, Scan

PLACE = "place_of_row"
"""The row's position in a keyed order of the person's rows."""
ROWS = "rows_of_person"
"""How many rows the person has."""
WORD = "word_of_person"
"""A keyed hash of the person's id."""
_NUMBER, _WORD = exp.DType.UINT, exp.DType.UBIGINT

MOST_HELD = 4
"""How many sets of group positions are kept beside one table; the one that was used longest ago makes room."""


@dataclass(frozen=True)
class Held:
    """What a plan needs beside its table: the statements that build it, and those that drop it."""

    name: str
    build: tuple[exp.Expression, ...]
    drop: tuple[exp.Expression, ...]


@dataclass(frozen=True)
class GroupColumns:
    """The columns that place a row's group among the person's groups: its position, their number, and whether the
    row is the only one of its group."""

    position: str
    number: str
    alone: str


def over_rows(node: Project | LimitRows) -> bool:
    """Whether a limit on rows is a window: straight over the rows of one table."""
    return isinstance(node, LimitRows) and _plain(node.child)


def over_groups(plan: Aggregate) -> LimitGroups | None:
    """The limit on groups that is a window: over groups of plain columns of one table, rows not limited before."""
    limited = plan.child.child if isinstance(plan.child, Clip) else None
    usual = all(total.kind in ("rows", "present", "sum", "persons") for total in plan.totals)
    below = limited.child.child if isinstance(limited, LimitGroups) else None
    if usual and isinstance(limited, LimitGroups) and isinstance(below, Project) and _plain(below):
        return limited
    return None


def _plain(project: Project) -> bool:
    """Whether the rows below are those of one table with several rows a person, filtered or not."""
    scan = project.child.child if isinstance(project.child, Filter) else project.child
    several = isinstance(scan, Scan) and scan.person is not None and not scan.one_row_per_person
    return several and isinstance(scan, Scan) and scan.relation is None


def stored(plan: Aggregate) -> bool:
    """Whether a limit on groups can be taken on stored totals of each person and group: where there is no WHERE."""
    limited = over_groups(plan)
    return limited is not None and isinstance(_project(limited).child, Scan)


def _project(limited: LimitGroups) -> Project:
    assert isinstance(limited.child.child, Project)
    return limited.child.child


def kept(position: str, number: str, most: int, salt: str) -> exp.Expression:
    """The condition that a row or group lies in the person's window; NULL where there is no position.

    A CASE, because the engine then computes the window for those above the limit only."""
    place, among, word = (exp.column(name) for name in (position, number, WORD))
    limit = exp.Literal.number(most)
    offset = exp.Mod(this=hashed(hashed(exp.Literal.string(salt), word)), expression=among)
    turned = exp.Mod(this=exp.paren(exp.Add(this=place, expression=offset)), expression=among.copy())
    all_count = exp.If(this=exp.LTE(this=among.copy(), expression=limit), true=exp.true())
    return exp.Case(ifs=[all_count], default=exp.LT(this=turned, expression=limit.copy()))


def hashed(*nodes: exp.Expression) -> exp.Expression:
    """The engine's hash: an unsigned 64-bit number."""
    return function("hash", *nodes)


def of_rows(rows: exp.Select, person: exp.Expression, key: str, most: int, *, windows: bool) -> exp.Select:
    """For a table's load: of the numbered rows of each person at most so many, the first in a keyed order of the
    person's rows; with `windows`, each with its position in that order, their number, and the person's word. The order
    mixes neighbours of the source: what is kept of a person is spread over the rows.

    A position depends on the key and on the person's own rows alone, and those up to `most` are 1 … min(n, most)."""
    word = hashed(hashed(exp.Literal.string(key), person.copy()))
    number = exp.column(ROW_NUMBER)
    mixed = hashed(hashed(exp.Literal.string(key), person.copy(), number))
    place = exp.Window(this=exp.RowNumber(), partition_by=[person.copy()], order=_ordered([mixed, number]))
    limit = exp.Literal.number(most)
    among = exp.Least(this=_over(exp.Count(this=exp.Star()), person), expressions=[limit], ignore_nulls=True)
    placed = exp.select(
        exp.Star(),
        exp.alias_(exp.cast(place, _NUMBER), PLACE),
        exp.alias_(exp.cast(among, _NUMBER), ROWS),
        exp.alias_(exp.cast(_over(exp.Min(this=word), person), _WORD), WORD),
    ).from_(rows.subquery("numbered"))
    kept = exp.LTE(this=exp.column(PLACE), expression=limit.copy())
    star = exp.Star() if windows else exp.Star(except_=[exp.to_identifier(name) for name in (PLACE, ROWS, WORD)])
    return exp.select(star).from_(placed.subquery("placed")).where(kept)


def _over(node: exp.Expression, person: exp.Expression) -> exp.Window:
    return exp.Window(this=node, partition_by=[person.copy()])


def _ordered(nodes: Sequence[exp.Expression]) -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=node.copy()) for node in nodes])


def placed(cells: exp.Select, keys: int, columns: Sequence[exp.Expr]) -> exp.Select:
    """Each row of person, keys and word, with its position among the person's groups and their number."""
    person, word = exp.column("person"), exp.column(WORD)
    names = [exp.column(f"k{index}") for index in range(keys)]
    order = _ordered([hashed(hashed(word, *(name.copy() for name in names))), *names])
    place = exp.Window(this=exp.RowNumber(), partition_by=[person], order=order)
    number = _over(exp.Count(this=exp.Star()), person)
    return exp.select(
        *columns,
        exp.alias_(exp.cast(place, _NUMBER), "place"),
        exp.alias_(exp.cast(number, _NUMBER), "places"),
    ).from_(cells.subquery("cell"))


def name_of(table: str, plan: Aggregate) -> str | None:
    """The name of what a plan reads beside its table; None where that is nothing."""
    if over_groups(plan) is None:
        return None
    return totals_name(table, plan) if stored(plan) else columns_of(table, plan).position


def totals_name(table: str, plan: Aggregate) -> str:
    """The table of stored totals of a plan. Bounds of counts are left to the question; sums are stored clamped."""
    project, totals = _project(_limited(plan)), plan.totals
    wanted = [total if total.kind == "sum" else replace(total, bounds=None) for total in totals]
    return f"totals_{_digest(table, project.keys, project.quantities, wanted)}"


def columns_of(table: str, plan: Aggregate) -> GroupColumns:
    """The columns of group positions that a plan reads."""
    mark = _digest(table, _project(_limited(plan)).keys)
    return GroupColumns(f"place_{mark}", f"places_{mark}", f"alone_{mark}")


def _limited(plan: Aggregate) -> LimitGroups:
    limited = over_groups(plan)
    assert limited is not None
    return limited


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def held_totals(name: str, totals: exp.Select) -> Held:
    """A table of its own."""
    build = exp.Create(this=exp.to_table(name), kind="TABLE", expression=totals)
    return Held(name, (build,), (exp.Drop(tables=[exp.to_table(name)], kind="TABLE"),))


def held_columns(
    table: str, columns: GroupColumns, cells: exp.Select, same: Sequence[tuple[exp.Expression, str, bool]]
) -> Held:
    """Three more columns of the table: it is replaced by itself joined with the groups' positions, in one statement, so
    that a failure leaves it as it was. A row of no group has NULL there. `same` pairs a column with that of a
    group, and says whether NULL is one.

    Persons and groups are matched by value, each group of a person stands there once: no row is lost or doubled."""
    added = [
        exp.alias_(exp.column("place", table="cell"), columns.position),
        exp.alias_(exp.column("places", table="cell"), columns.number),
        exp.alias_(exp.EQ(this=exp.column("size", table="cell"), expression=exp.Literal.number(1)), columns.alone),
    ]
    matches = [
        (exp.NullSafeEQ if nulls else exp.EQ)(
            this=exp.column(node.name, table="base"), expression=exp.column(name, table="cell")
        )
        for node, name, nulls in same
    ]
    source = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier("base")), *added)
    source = source.from_(exp.alias_(exp.to_table(table), "base", table=True))
    source = source.join(cells.subquery("cell"), on=exp.and_(*matches), join_type="left")
    build = exp.Create(this=exp.to_table(table), kind="TABLE", replace=True, expression=source)
    drop = tuple(
        exp.Alter(this=exp.to_table(table), kind="TABLE", actions=[exp.Drop(tables=[exp.column(name)], kind="COLUMN")])
        for name in (columns.position, columns.number, columns.alone)
    )
    return Held(columns.position, (build,), drop)
