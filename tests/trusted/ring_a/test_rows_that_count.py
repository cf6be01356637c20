"""What statements make of rows, piece by piece: which rows have a key, what totals are, who is limited and how."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.trusted.ring_a.expressions import Call, ColumnOf, Literal
from discreet.trusted.ring_a.lattice import Lattice
from discreet.trusted.ring_a.names import table_name
from discreet.trusted.ring_a.nodes import (
    Aggregate,
    Clip,
    Filter,
    Key,
    LimitGroups,
    LimitRows,
    PersonGroup,
    Project,
    Quantity,
    Scan,
    Total,
    TotalKind,
)
from discreet.trusted.ring_a.statement import (
    RelationRows,
    kept_rows,
    other_statement,
    relation_rows,
    rows_that_count,
    statement,
    total_of,
    within_bounds,
)
from discreet.trusted.ring_a.storing import load_statement
from discreet.trusted.ring_a.table import Column, Relation, Source, SourceKind, Table, Type, Value
from discreet.trusted.ring_a.windows import PLACE, ROWS, WORD, P, Salt

COLUMNS = (
    Column("p", Type.TEXT),
    Column("i", Type.INTEGER),
    Column("b", Type.BOOLEAN),
    Column("d", Type.DATE),
    Column("v", Type.INTEGER),
)
TABLE = Table("t", Source(SourceKind.CSV), COLUMNS, person="p", rows_per_person=2)
SEVERAL = Scan("t", "p", False)
EACH_ROW = Scan("t", None, True)
SALT = Salt("3", "5", "salt")
VALUE = Quantity(ColumnOf("v", Type.INTEGER), Lattice(Fraction(1), -4, 9))
DAYS = [datetime.date(2020, 1, day) for day in (1, 2, 3)]

Row = tuple[Any, ...]
ROWS_OF_TABLE: list[Row] = [
    (person, i, b, day, v)
    for place, (person, i, b) in enumerate(product(("a", "b", "c", None), (None, 1, 2, 4), (None, False, True)))
    for day, v in [([None, *DAYS][place % 4], [None, -9, 0, 3, 20][place % 5])]
]
"""Each person has twelve rows."""


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        columns = f"c0 TEXT, c1 BIGINT, c2 BOOLEAN, c3 DATE, c4 BIGINT, {PLACE} INT, {ROWS} INT, {WORD} INT"
        connection.execute(f"CREATE TABLE {table_name(TABLE)} ({columns})")
        connection.executemany(f"INSERT INTO {table_name(TABLE)} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", placed())
        yield connection


def placed() -> list[Row]:
    """The rows, each with its position, how many its person has, and a word of the person."""
    places: dict[Any, int] = defaultdict(int)
    found = []
    for row in ROWS_OF_TABLE:
        places[row[0]] += 1
        found.append((*row, places[row[0]], 12, {"a": 0, "b": 1, "c": P - 1, None: 7}[row[0]]))
    return found


def asked(engine: duckdb.DuckDBPyConnection, tree: exp.Expression) -> list[Row]:
    return sorted(engine.execute(DUCKDB.text(tree)).fetchall(), key=repr)


def in_window(row: Row, most: int) -> bool:
    return bool((row[5] + (3 * row[7] + 5) % P) % row[6] < most)


KEYS: list[tuple[str, tuple[Value, ...] | None]] = [
    ("i", None),
    ("i", ()),
    ("i", (1,)),
    ("i", (1, 2)),
    ("i", (2, 1)),
    ("i", (1, 4)),
    ("i", (2, 4)),
    ("i", (1, 2, 3, 4)),
    ("b", None),
    ("b", ()),
    ("b", (True,)),
    ("b", (False,)),
    ("b", (False, True)),
    ("p", ("a", "c")),
    ("p", None),
    ("d", (DAYS[0], DAYS[2])),
    ("d", (DAYS[1],)),
]


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize(("name", "values"), KEYS, ids=str)
def test_rows_count_that_have_a_key(
    engine: duckdb.DuckDBPyConnection, name: str, values: tuple[Value, ...] | None, null: bool
) -> None:
    """A declared one, or where NULL is a key, none; without declared ones, all. Of none declared, NULL alone."""
    place = [column.name for column in COLUMNS].index(name)
    key = Key(name, COLUMNS[place].type or Type.TEXT, values, null)
    expected = [
        (row[place],)
        for row in ROWS_OF_TABLE
        if (row[place] is None and (null or values == ()))
        or (row[place] is not None and (values is None or row[place] in values))
    ]
    found = asked(engine, rows_that_count(Project(EACH_ROW, (key,), ()), TABLE, SALT))
    assert found == sorted(expected, key=repr)


def test_declared_integers_without_a_gap_are_a_range_and_others_a_list() -> None:
    for values, kind in (((1, 2, 3), exp.Between), ((3, 1, 2), exp.Between), ((1, 3), exp.In), ((7,), exp.Between)):
        select = rows_that_count(Project(EACH_ROW, (Key("i", Type.INTEGER, values),), ()), TABLE, SALT)
        assert isinstance(select.args["where"].this, kind)
    select = rows_that_count(Project(EACH_ROW, (Key("p", Type.TEXT, ("a",)),), ()), TABLE, SALT)
    assert isinstance(select.args["where"].this, exp.In)


def test_no_condition_is_made_where_every_row_has_a_key() -> None:
    for key in (Key("i", Type.INTEGER, None, null=True), Key("b", Type.BOOLEAN, (False, True), null=True)):
        assert rows_that_count(Project(EACH_ROW, (key,), ()), TABLE, SALT).args.get("where") is None


def test_a_row_that_nothing_is_read_of_counts(engine: duckdb.DuckDBPyConnection) -> None:
    assert asked(engine, rows_that_count(Project(EACH_ROW, (), ()), TABLE, SALT)) == [(1,)] * len(ROWS_OF_TABLE)
    also = rows_that_count(Project(EACH_ROW, (), ()), TABLE, SALT, also=["c4"])
    assert asked(engine, also) == sorted([(row[4],) for row in ROWS_OF_TABLE], key=repr)


NOT_TRUE = Call("not", (ColumnOf("b", Type.BOOLEAN),), Type.BOOLEAN)


@pytest.mark.parametrize("filtered", [False, True])
def test_rows_of_somebody_within_the_window_count(engine: duckdb.DuckDBPyConnection, filtered: bool) -> None:
    """Key, quantity, person; of nobody none; where the predicate is true; with a limit, those in the window alone."""
    scan = Filter(SEVERAL, NOT_TRUE) if filtered else SEVERAL
    project = Project(scan, (Key("i", Type.INTEGER, (1, 2)),), (VALUE,))
    expected = [
        (row[1], None if row[4] is None else max(-4, min(9, row[4])), row[0], row)
        for row in placed()
        if row[0] is not None and row[1] in (1, 2) and (not filtered or row[2] is False)
    ]
    assert asked(engine, rows_that_count(project, TABLE, SALT)) == sorted([row[:3] for row in expected], key=repr)
    for most in (1, 5, 11, 12):
        left = [row[:3] for row in expected if most >= 12 or in_window(row[3], most)]
        assert asked(engine, rows_that_count(LimitRows(project, most), TABLE, SALT)) == sorted(left, key=repr)


@pytest.mark.parametrize(
    ("table", "limited"),
    [
        (TABLE, True),
        (replace(TABLE, public=True), False),
        (replace(TABLE, one_row_per_person=True), False),
        (replace(TABLE, rows_per_person=None), False),
    ],
)
def test_below_joins_rows_are_limited_where_persons_have_several(
    engine: duckdb.DuckDBPyConnection, table: Table, limited: bool
) -> None:
    condition = kept_rows(SALT, table)
    assert (condition is not None) is limited
    if condition is not None:
        found = asked(engine, exp.select("c0", "c4").from_(table_name(table)).where(condition))
        assert found == sorted([(row[0], row[4]) for row in placed() if in_window(row, 2)], key=repr)


SOME = [None, -7, 0, 3, 3, 20]
TOTALS: list[tuple[TotalKind, Any]] = [
    (TotalKind.ROWS, lambda values: len(values)),
    (TotalKind.PERSONS, lambda values: len(values)),
    (TotalKind.NON_NULL, lambda values: len([one for one in values if one is not None])),
    (TotalKind.SUM, lambda values: sum(known) if (known := [one for one in values if one is not None]) else None),
    (
        TotalKind.MEAN_PER_PERSON,
        lambda values: (
            int(Fraction(sum(known), len(known))) if (known := [one for one in values if one is not None]) else None
        ),
    ),
    (TotalKind.PERSONS_WITH_VALUE, lambda values: 1 if any(one is not None for one in values) else None),
]


@pytest.mark.parametrize(("kind", "formula"), TOTALS, ids=[str(kind) for kind, _ in TOTALS])
@pytest.mark.parametrize("values", [[], [None], [None, None], [0], [5], SOME, [-7, None], [2, 3], [-1, -2]], ids=str)
def test_totals_over_rows(
    engine: duckdb.DuckDBPyConnection, kind: TotalKind, formula: Any, values: Sequence[int | None]
) -> None:
    engine.execute("CREATE OR REPLACE TABLE q (q0 BIGINT, q1 BIGINT)")
    for value in values:
        engine.execute("INSERT INTO q VALUES (99, ?)", [value])
    assert asked(engine, exp.select(total_of(Total(kind, 1))).from_("q")) == [(formula(values),)]


def test_a_persons_total_is_clamped_to_its_bounds(engine: duckdb.DuckDBPyConnection) -> None:
    engine.execute("CREATE OR REPLACE TABLE a AS SELECT UNNEST([NULL, -9, -2, 0, 3, 4, 5, 90]) AS a2")
    found = asked(engine, exp.select("a2", within_bounds(Total(TotalKind.SUM, 0, (-2, 4)), 2)).from_("a"))
    assert dict(found) == {None: None, -9: -2, -2: -2, 0: 0, 3: 3, 4: 4, 5: 4, 90: 4}
    assert within_bounds(Total(TotalKind.SUM, 0), 2) == exp.column("a2")


EVERY = (
    Total(TotalKind.PERSONS),
    Total(TotalKind.ROWS, None, (1, 3)),
    Total(TotalKind.NON_NULL, 0, (1, 2)),
    Total(TotalKind.SUM, 0, (-3, 8)),
    Total(TotalKind.SUM, 0),
)


def of_persons(rows: Sequence[Row], key: Any) -> dict[Any, tuple[int, ...]]:
    """Each group's totals, over persons whose totals are clamped."""
    groups: dict[Any, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row[0] is not None:
            groups[key(row)][row[0]].append(row)
    found = {}
    for group, persons in groups.items():
        totals = [0] * len(EVERY)
        for mine in persons.values():
            values = [max(-4, min(9, row[4])) for row in mine if row[4] is not None]
            clamped = max(-3, min(8, sum(values))) if values else 0
            each = (1, max(1, min(3, len(mine))), max(1, min(2, len(values))), clamped, sum(values))
            totals = [one + more for one, more in zip(totals, each, strict=True)]
        found[group] = tuple(totals)
    return found


@pytest.mark.parametrize("keys", [(), (Key("i", Type.INTEGER, None, null=True),)], ids=["all", "by key"])
def test_totals_of_persons_are_clamped_before_persons_are_added_up(
    engine: duckdb.DuckDBPyConnection, keys: tuple[Key, ...]
) -> None:
    project = Project(SEVERAL, keys, (VALUE,))
    expected = of_persons(placed(), lambda row: row[1:2] if keys else ())
    plan = Aggregate(Clip(PersonGroup(project)), EVERY)
    assert asked(engine, statement(plan, TABLE, SALT)) == sorted(
        [key + totals for key, totals in expected.items()], key=repr
    )
    windowed = Aggregate(Clip(PersonGroup(LimitRows(project, 5))), EVERY)
    some = of_persons([row for row in placed() if in_window(row, 5)], lambda row: row[1:2] if keys else ())
    assert asked(engine, statement(windowed, TABLE, SALT)) == sorted(
        [key + totals for key, totals in some.items()], key=repr
    )


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_a_person_counts_in_so_many_groups_and_wholly_there(engine: duckdb.DuckDBPyConnection, most: int) -> None:
    """Each person has four groups, and the totals of one person in one are 1 person and 3 rows, where it counts."""
    keys = (Key("p", Type.TEXT, None, null=True), Key("i", Type.INTEGER, None, null=True))
    groups = LimitGroups(PersonGroup(LimitRows(Project(SEVERAL, keys, (VALUE,)), 12)), most)
    found = asked(engine, statement(Aggregate(Clip(groups), EVERY), TABLE, SALT))
    whole = of_persons(placed(), lambda row: row[:2])
    assert {row[:2]: row[2:] for row in found} == {row[:2]: whole[row[:2]] for row in found}
    persons = [row[0] for row in found]
    assert {person: persons.count(person) for person in persons} == dict.fromkeys("abc", most)


def test_totals_over_rows_of_nobody_and_of_each_row(engine: duckdb.DuckDBPyConnection) -> None:
    """Without a bound by group, rows are added up as they are, and nothing to add is 0."""
    totals = (Total(TotalKind.ROWS), Total(TotalKind.NON_NULL, 0), Total(TotalKind.SUM, 0))
    values = [max(-4, min(9, row[4])) for row in placed() if row[4] is not None]
    plan = Aggregate(Project(EACH_ROW, (), (VALUE,)), totals)
    assert asked(engine, statement(plan, TABLE, SALT)) == [(48, len(values), sum(values))]
    nothing = Filter(EACH_ROW, Literal(False, Type.BOOLEAN))
    assert asked(engine, statement(Aggregate(Project(nothing, (), (VALUE,)), totals), TABLE, SALT)) == [(0, 0, 0)]


@dataclass(frozen=True)
class Made(Relation):
    """The table's rows as a relation, with a person or without, and two columns that tell them apart."""

    person: bool = True


MADE: list[exp.Select] = []
"""What was made of such a relation, the newest last."""


@relation_rows.register
def _(relation: Made, predicate: Any, keep: Any) -> RelationRows:
    assert predicate is None or isinstance(predicate, Call)
    assert keep(TABLE) == kept_rows(SALT, TABLE)
    rows = exp.select("c4 AS v", "c0 AS person", "c1 AS r0", "c2 AS r1")
    MADE.append(rows.from_(table_name(TABLE), copy=False))
    return RelationRows(MADE[-1], {"v": exp.column("v")}, relation.person, (Type.INTEGER, Type.BOOLEAN))


@pytest.mark.parametrize("most", [1, 5, 11, 12])
def test_of_a_relation_each_person_has_so_many_rows(engine: duckdb.DuckDBPyConnection, most: int) -> None:
    """Ranked by what tells them apart; whoever is not limited has all rows. A relation has taken the predicate in."""
    project = Project(Scan("t", "p", False, Made()), (), (VALUE,))
    every = [(None if row[4] is None else max(-4, min(9, row[4])), row[0]) for row in ROWS_OF_TABLE if row[0]]
    assert asked(engine, rows_that_count(project, TABLE, SALT)) == sorted(every, key=repr)
    assert asked(
        engine, rows_that_count(replace(project, child=Filter(project.child, NOT_TRUE)), TABLE, SALT)
    ) == sorted(every, key=repr)
    select = rows_that_count(LimitRows(project, most), TABLE, SALT)
    limited = engine.execute(DUCKDB.text(exp.select("q0", "person", "r0", "r1").from_(select.subquery("l")))).fetchall()
    assert len(limited) == 3 * most
    assert set(limited) <= {(q0, row[0], row[1], row[2]) for row, q0 in zip(ROWS_OF_TABLE, _values(), strict=True)}
    for person in "abc":
        assert len({row[2:] for row in limited if row[1] == person}) == most


def _values() -> list[int | None]:
    return [None if row[4] is None else max(-4, min(9, row[4])) for row in ROWS_OF_TABLE]


def test_of_one_row_a_person_nothing_tells_rows_apart_and_of_nobody_no_person_is_read(
    engine: duckdb.DuckDBPyConnection,
) -> None:
    one = rows_that_count(LimitRows(Project(Scan("t", "p", True, Made()), (), (VALUE,)), 1), TABLE, SALT)
    assert not {"r0", "r1"} & {node.name for node in one.find_all(exp.Column) if node.find_ancestor(exp.Subquery)}
    of_nobody = rows_that_count(Project(Scan("t", None, True, Made(person=False)), (), (VALUE,)), TABLE, SALT)
    assert asked(engine, of_nobody) == sorted([(one,) for one in _values()], key=repr)


def test_whole_numbers_of_steps_are_read_of_declared_tables_alone() -> None:
    """A relation's columns have none beside them, whatever their names are."""
    step = Fraction(1, 2)
    table = replace(TABLE, columns=(Column("p", Type.TEXT), Column("v", Type.NUMBER, 0, 3, step)))
    value = Quantity(ColumnOf("v", Type.NUMBER), Lattice(step, 0, 6))
    for scan, read in ((SEVERAL, True), (Scan("t", "p", False, Made()), False)):
        select = rows_that_count(Project(scan, (), (value,)), table, SALT)
        assert ("s1" in {one.name for one in select.find_all(exp.Column)}) is read


def test_no_tree_of_rows_is_copied() -> None:
    """Copies of copies would take time that grows with the square of the depth: the relation's own SELECT stands in the
    statement."""
    key = Key("v", Type.INTEGER, None, null=True)
    project = Project(Scan("t", "p", False, Made()), (key,), (VALUE,))
    groups = Clip(LimitGroups(PersonGroup(LimitRows(project, 2)), 1))
    for node in (project, LimitRows(project, 2), Clip(PersonGroup(project)), groups):
        select = statement(Aggregate(node, EVERY), TABLE, SALT)
        assert any(one is MADE[-1] for one in select.find_all(exp.Select))


def test_what_nobody_has_made_known_is_refused() -> None:
    with pytest.raises(TypeError, match="no rows are known of str"):
        relation_rows("t", None, lambda _: None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no statement is known of str over t"):
        other_statement("plan", TABLE, SALT)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no statement is known of object over t"):
        statement(object(), TABLE, SALT)  # type: ignore[arg-type]


def test_no_statement_of_a_table_copies_what_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither rows nor what is selected of them, for a question or for a load: single columns alone."""

    def copied(tree: exp.Expr) -> exp.Expr:
        raise AssertionError(f"a {type(tree).__name__} is copied")

    monkeypatch.setattr(exp.Subquery, "copy", copied)
    monkeypatch.setattr(exp.Alias, "copy", copied)
    monkeypatch.setattr(exp.Select, "copy", lambda tree: copied(tree) if tree.expressions else exp.Select())
    key = Key("v", Type.INTEGER, (1, 2), null=True)
    for scan in (SEVERAL, Scan("t", "p", True), Scan("t", None, True), Scan("t", "p", False, Made())):
        rows = scan if scan.relation is not None else Filter(scan, Literal(True, Type.BOOLEAN))
        project = Project(rows, (key,), (VALUE,))
        limited = LimitRows(project, 2)
        for node in (project, limited, Clip(PersonGroup(project)), Clip(LimitGroups(PersonGroup(limited), 1))):
            assert statement(Aggregate(node, EVERY), TABLE, SALT)
    more = (Column("step", Type.NUMBER, 0, 3, Fraction(1, 2)), Column("name", Type.TEXT, identifies=True))
    wide = replace(TABLE, columns=(*TABLE.columns, *more))
    for table in (wide, replace(wide, person="i"), replace(TABLE, person=None, public=True)):
        assert load_statement(table, exp.to_table("source"), "a key", lambda one: exp.column(one.name))
