"""Groups of persons that are kept ready beside a table, so that no question finds and ranks them anew.

A limit on groups, over groups of plain columns of one table, is then a window over the positions of a person's groups
(`ring_a.windows`, which says why that is a bound), and `held` says how the positions are built when a question first
needs them. Where there is no WHERE, the totals of each person and group are kept with them. Both follow from the plan
alone. A position depends on the load's key and on what the person's own rows hold, so what holds of positions of rows
holds here. Ring A's own form limits the same groups without any of it; which of a person's groups are kept differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.trusted.ring_a.names import column_name, named, table_name
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Clip,
    Filter,
    LimitGroups,
    Project,
    Scan,
    Total,
    TotalKind,
    project_of,
)
from discreet.trusted.ring_a.statement import (
    PERSON,
    Grouped,
    person_groups,
    ready,
    rows_that_count,
    within_bounds,
)
from discreet.trusted.ring_a.statement import columns_of as declared
from discreet.trusted.ring_a.table import Table, Type
from discreet.trusted.ring_a.windows import WORD, Salt, kept, mixed_rows, over_person, places_of, plain, words_of

_USUAL = (TotalKind.ROWS, TotalKind.NON_NULL, TotalKind.SUM, TotalKind.PERSONS)

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


def over_groups(plan: Aggregate) -> LimitGroups | None:
    """The limit on groups that is a window: over groups of plain columns of one table, rows not limited before."""
    limited = plan.child.child if isinstance(plan.child, Clip) else None
    usual = all(total.kind in _USUAL for total in plan.totals)
    below = limited.child.child if isinstance(limited, LimitGroups) else None
    if usual and isinstance(limited, LimitGroups) and isinstance(below, Project) and plain(below):
        return limited
    return None


def stored(plan: Aggregate) -> bool:
    """Whether a limit on groups can be taken on stored totals of each person and group: where there is no WHERE."""
    limited = over_groups(plan)
    return limited is not None and isinstance(_project(limited).child, Scan)


def _project(limited: LimitGroups) -> Project:
    assert isinstance(limited.child.child, Project)
    return limited.child.child


@ready
def windowed(plan: Aggregate, table: Table, salt: Salt) -> Grouped | None:
    """Each person's totals in the groups that are in the window; None where the plan's limit is none over groups that
    can be kept."""
    limited = over_groups(plan)
    if limited is None:
        return None
    if not stored(plan):
        return _windowed_groups(plan, limited, table, salt), False
    window = kept("place", "places", limited.groups, salt)
    totals = exp.table_(totals_name(table_name(table), plan))
    return exp.select(exp.Star(), copy=False).from_(totals, copy=False).where(window, copy=False), True


def held(plan: Aggregate, table: Table) -> Held:
    """What the plan's statement reads beside the table, where groups are limited by windows."""
    limited = _limited(plan)
    project = project_of(plan)
    keys, kinds = [f"k{index}" for index in range(len(project.keys))], [key.type for key in project.keys]
    person = next(place for place, column in enumerate(table.columns) if column.name == table.person)
    name = table_name(table)
    word = named(exp.Min(this=exp.column(WORD)), WORD)
    if stored(plan):
        cells = person_groups(
            rows_that_count(limited.child.child, table, Salt.of(""), also=[WORD]), len(keys), plan.totals, [word]
        )
        totals = [
            _stored(total, index) for index, total in enumerate(plan.totals) if total.kind is not TotalKind.PERSONS
        ]
        columns = [*(exp.column(key) for key in keys), *totals, exp.column(WORD)]
        return held_totals(totals_name(name, plan), placed(cells, kinds, columns))
    scan = project.child.child if isinstance(project.child, Filter) else project.child
    every = rows_that_count(Project(scan, project.keys, ()), table, Salt.of(""), also=[WORD])
    size = named(exp.Count(this=exp.Star(), big_int=True), "size")
    cells = person_groups(every, len(keys), (), [word, size])
    names = [PERSON, *keys]
    cells = placed(cells, kinds, [exp.column(one) for one in (*names, "size")])
    known = declared(table)
    same: list[tuple[exp.Expression, str, bool]] = [(exp.column(column_name(person)), PERSON, False)]
    same += [(known[key.name], place, key.null) for key, place in zip(project.keys, keys, strict=True)]
    return held_columns(name, columns_of(name, plan), cells, same)


def _windowed_groups(plan: Aggregate, limited: LimitGroups, table: Table, salt: Salt) -> exp.Select:
    """Totals of persons and groups in the window. A row that is all there is of its person and group needs no grouping:
    its totals are written down as they are."""
    columns = columns_of(table_name(table), plan)
    window = kept(columns.position, columns.number, limited.groups, salt)
    alone = exp.column(columns.alone)
    project = project_of(plan)
    keys = [exp.column(f"k{index}") for index in range(len(project.keys))]
    indices = [index for index, total in enumerate(plan.totals) if total.kind is not TotalKind.PERSONS]
    single = exp.select(
        *keys, *(named(_total_of_row(plan.totals[index]), f"a{index}") for index in indices), copy=False
    ).from_(
        rows_that_count(project, table, salt).where(alone, window, copy=False).subquery("row", copy=False), copy=False
    )
    others = rows_that_count(project, table, salt).where(exp.Not(this=alone.copy()), window.copy(), copy=False)
    several = person_groups(others, len(keys), plan.totals)
    chosen = [*(key.copy() for key in keys), *(exp.column(f"a{index}") for index in indices)]
    several = exp.select(*chosen, copy=False).from_(several.subquery("several", copy=False), copy=False)
    both = exp.Union(this=single, expression=several, distinct=False)
    return exp.select(exp.Star(), copy=False).from_(both.subquery("together", copy=False), copy=False)


def _total_of_row(total: Total) -> exp.Expression:
    """What `total_of` gives for one row."""
    if total.kind is TotalKind.ROWS:
        return exp.Literal.number(1)
    column = exp.column(f"q{total.quantity}")
    if total.kind is TotalKind.SUM:
        return column
    absent = exp.Is(this=column, expression=exp.null())
    return exp.Case(ifs=[exp.If(this=absent, true=exp.Literal.number(0))], default=exp.Literal.number(1))


def _stored(total: Total, index: int) -> exp.Expr:
    """A total as it is stored: sums within their bounds, which makes them narrow; counts as they are."""
    return within_bounds(total, index).as_(f"a{index}") if total.kind is TotalKind.SUM else exp.column(f"a{index}")


def placed(cells: exp.Select, keys: Sequence[Type], columns: Sequence[exp.Expr]) -> exp.Select:
    """Each row of person, keys and word, with its position among the person's groups and their number. The order is one
    of the person's own, by the word."""
    person = exp.column("person")
    names = [exp.column(f"k{index}") for index in range(len(keys))]
    values = [one for name, kind in zip(names, keys, strict=True) for one in words_of(name.copy(), kind)]
    return exp.select(
        *columns,
        exp.alias_(places_of(person, names), "place"),
        exp.alias_(exp.cast(over_person(exp.Count(this=exp.Star()), person), exp.DType.INT), "places"),
    ).from_(mixed_rows(cells, [exp.column(WORD), *values], "groups", "mixed").subquery("ordered"))


def name_of(table: str, plan: Aggregate) -> str | None:
    """The name of what a plan reads beside its table; None where that is nothing."""
    if over_groups(plan) is None:
        return None
    return totals_name(table, plan) if stored(plan) else columns_of(table, plan).position


def totals_name(table: str, plan: Aggregate) -> str:
    """The table of stored totals of a plan. Bounds of counts are left to the question; sums are stored clamped."""
    project, totals = _project(_limited(plan)), plan.totals
    wanted = [total if total.kind is TotalKind.SUM else replace(total, bounds=None) for total in totals]
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
