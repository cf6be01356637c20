"""Windows as numbers: what statements compute of rows, beside the same in Python's integers."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.trusted.ring_a import windows
from discreet.trusted.ring_a.expressions import Literal
from discreet.trusted.ring_a.names import named
from discreet.trusted.ring_a.nodes import Filter, LimitRows, Project, Scan
from discreet.trusted.ring_a.table import Column, Relation, Source, SourceKind, Table, Type
from discreet.trusted.ring_a.windows import PLACE, ROWS, WORD, P, Salt

NUMBERS = (1.5, 2.0**-17, 2.0**-16, 2.0**36, 2.0**36 - 2.0**-16, 12345.678, 1e300, math.inf)
EPOCH = datetime.datetime(1970, 1, 1)
VALUES: dict[Type, tuple[str, list[Any]]] = {
    Type.INTEGER: ("BIGINT", [0, 1, -1, P, -P, P - 1, 2**30, 2**30 - 1, -(2**30), 2**60 + 7, -(2**63), 2**63 - 1]),
    Type.NUMBER: (
        "DOUBLE",
        [0.0, *(sign * one for sign in (1, -1) for one in NUMBERS)],
    ),
    Type.TEXT: ("TEXT", ["", "a", "A", "ü", "it's", "\U0001f600" * 9]),
    Type.BOOLEAN: ("BOOLEAN", [False, True]),
    Type.DATE: ("DATE", [datetime.date(1, 1, 1), datetime.date(1970, 1, 2), datetime.date(9999, 12, 31)]),
    Type.TIMESTAMP: (
        "TIMESTAMP",
        [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(9999, 12, 31, 23, 59, 59), EPOCH],
    ),
}
"""Of each type the engine's name, and values at the edges of what words are made of."""


def number(*parts: object) -> int:
    """From 1 to P − 1, by the first sixteen bytes of a hash."""
    return int(hashlib.sha256(" ".join(str(part) for part in parts).encode()).hexdigest()[:32], 16) % (P - 1) + 1


def text_word(text: str) -> int:
    return int(hashlib.md5(text.encode()).hexdigest()[:8], 16) % 2**31 % P


def words(value: Any, kind: Type) -> list[int]:
    """The words of a value, 1 for each that is NULL."""
    if kind is Type.BOOLEAN:
        return [int(value is True)]
    if kind is Type.NUMBER:  # NULL is as the lowest
        value = math.floor(2**16 * Fraction(min(2.0**36, max(-(2.0**36), -math.inf if value is None else value))))
    if value is None:
        return [1] if kind is Type.TEXT else [1, 1]
    if kind is Type.TEXT:
        return [text_word(value)]
    if kind in (Type.DATE, Type.TIMESTAMP):
        moment = value if isinstance(value, datetime.datetime) else datetime.datetime(*value.timetuple()[:3])
        value = (moment - EPOCH) // datetime.timedelta(microseconds=1)
    towards_zero = abs(value) // 2**30 * (-1 if value < 0 else 1)
    return [value % P, towards_zero % P]


def mixed(of: Sequence[int], key: str, name: str) -> int:
    """The fifth power of a sum of multiples."""
    total = number(key, name) + sum(word * number(key, name, place) for place, word in enumerate(of))
    return pow(total, 5, P)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def asked(engine: duckdb.DuckDBPyConnection, tree: exp.Expression) -> list[tuple[Any, ...]]:
    return engine.execute(DUCKDB.text(tree)).fetchall()


def test_a_salt_is_two_numbers_below_the_prime_that_follow_from_its_text() -> None:
    assert Salt.of("salt") == Salt(str(number("salt", 0)), str(number("salt", 1)), "salt")
    assert (number("salt", 0), number("salt", 1)) == (116968632, 505341974)
    assert all(0 < int(one) < P for text in range(50) for one in (Salt.of(f"{text}").factor, Salt.of(f"{text}").shift))
    assert P == 2147483647
    assert math.gcd(5, P - 1) == 1


def table_of(engine: duckdb.DuckDBPyConnection, kinds: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table `t` with the columns c0, c1, …"""
    engine.execute(f"CREATE OR REPLACE TABLE t ({', '.join(f'c{i} {kind}' for i, kind in enumerate(kinds))})")
    engine.executemany(f"INSERT INTO t VALUES ({', '.join('?' for _ in kinds)})", rows)


@pytest.mark.parametrize("kind", VALUES)
def test_words_are_numbers_below_the_prime_that_follow_from_the_value(
    engine: duckdb.DuckDBPyConnection, kind: Type
) -> None:
    name, values = VALUES[kind]
    table_of(engine, [name], [[value] for value in [*values, None]])
    made = windows.words_of(exp.column("c0"), kind)
    found = {row[0]: list(row[1:]) for row in asked(engine, exp.select(exp.column("c0"), *made).from_("t"))}
    assert [1 if one is None else one for one in found.pop(None)] == words(None, kind)
    assert found == {value: words(value, kind) for value in values}
    assert all(0 <= one < P for of in found.values() for one in of)


@pytest.mark.parametrize(("most", "number_of_rows"), [(1, 1), (1, 3), (2, 3), (3, 3), (4, 3), (5, 7), (1, 2)])
def test_a_window_is_so_many_positions_after_an_offset(
    engine: duckdb.DuckDBPyConnection, most: int, number_of_rows: int
) -> None:
    """Every position, words and salts at their ends: (position + (factor · word + shift) mod P) mod n < K."""
    ends = (0, 1, 2, 12345, P - 2, P - 1)
    rows = [[place, number_of_rows, word] for place in range(1, number_of_rows + 1) for word in ends]
    engine.execute(f"CREATE OR REPLACE TABLE t ({PLACE} INT, {ROWS} INT, {WORD} INT)")
    engine.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    for factor, shift in product((1, 2, 4321, P - 1), ends):
        condition = windows.kept(PLACE, ROWS, most, Salt(str(factor), str(shift), ""))
        found = asked(engine, exp.select(exp.column(PLACE), exp.column(WORD)).from_("t").where(condition))
        assert sorted(found) == sorted(
            (place, word) for place, n, word in rows if n <= most or (place + (factor * word + shift) % P) % n < most
        )
        assert set(Counter(word for _, word in found).values()) == {min(most, number_of_rows)}


def test_a_row_without_a_position_has_no_place_in_a_window(engine: duckdb.DuckDBPyConnection) -> None:
    condition = windows.kept(PLACE, ROWS, 2, Salt("1", "1", ""))
    engine.execute(
        f"CREATE OR REPLACE TABLE t AS SELECT NULL::INT AS {PLACE}, NULL::INT AS {ROWS}, NULL::INT AS {WORD}"
    )
    assert asked(engine, exp.select(condition).from_("t")) == [(None,)]


KINDS = tuple(VALUES)
TABLE = Table(
    "t",
    Source(SourceKind.CSV),
    (*(Column(kind.value, kind) for kind in KINDS), Column("who", Type.INTEGER)),
    person="who",
    rows_per_person=3,
)


def everything(most: int = 230) -> list[list[Any]]:
    """Rows of three persons with all values and NULLs, many of the first."""
    drawn = []
    for place in range(most):
        values = [VALUES[kind][1] for kind in KINDS]
        row = [None if (place + at) % 7 == 0 else of[(place * (at + 1)) % len(of)] for at, of in enumerate(values)]
        drawn.append([*row, (1, 2, -5)[min(2, place // 120)]])
    return drawn


def order(rows: Sequence[Sequence[Any]], key: str, *, mixing: bool) -> dict[int, list[Sequence[Any]]]:
    """Each person's rows in the order under the key."""

    def by(row: Sequence[Any]) -> Any:
        of = [word for value, kind in zip(row, [*KINDS, Type.INTEGER], strict=True) for word in words(value, kind)]
        return mixed(of, key, "mixed") if mixing else 0, [(value is not None, value or 0) for value in row[:-1]]

    persons: dict[int, list[Sequence[Any]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row[-1], by(row)[0], *_comparable(row))):
        persons[row[-1]].append(row)
    return persons


def _comparable(row: Sequence[Any]) -> list[Any]:
    """NULL comes before every value, and texts stand in the order of their bytes."""
    return [(one is not None, (one.encode() if isinstance(one, str) else one) if one is not None else 0) for one in row]


@pytest.mark.parametrize("mixing", [True, False])
@pytest.mark.parametrize("one_row", [True, False])
def test_positions_are_places_in_an_order_of_what_the_rows_hold(
    engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, mixing: bool, one_row: bool
) -> None:
    """Every row of every person, beside the order in Python; also where what mixes rows is alike for all, so that the
    values alone order them. At most `stored` rows of a person are left, numbered 1, 2, … in that order."""
    if not mixing:
        monkeypatch.setattr(windows, "_number", lambda *_: 0)
    table = replace(TABLE, one_row_per_person=True) if one_row else TABLE
    rows = everything()
    table_of(engine, [*(VALUES[kind][0] for kind in KINDS), "BIGINT"], rows)
    found = asked(engine, windows.of_rows(exp.select("*").from_("t"), table, "a key"))
    expected = []
    for person, mine in order(rows, "a key", mixing=mixing).items():
        word = mixed(words(person, Type.INTEGER), "a key", "owner") if mixing else 0
        most = min(len(mine), table.stored)
        expected += [(*row, place, most, word) for place, row in enumerate(mine[:most], 1)]
    assert sorted(found, key=lambda row: (row[-4], row[-3])) == sorted(expected, key=lambda row: (row[-4], row[-3]))
    assert max(row[-3] for row in found) == (1 if one_row else 100)


def test_what_ranks_rows_by_a_salt_follows_from_salt_person_and_columns(engine: duckdb.DuckDBPyConnection) -> None:
    """x^5 of a sum of multiples: of a word of salt and person, and of the columns' words times the salt's factor."""
    salt = Salt.of("some salt")
    rows = everything(40)
    table_of(engine, [*(VALUES[kind][0] for kind in KINDS), "BIGINT"], rows)
    among = [(exp.column(f"c{index}"), kind) for index, kind in enumerate(KINDS)]
    whose = exp.column(f"c{len(KINDS)}")
    tree = windows.mixed_by_salt(exp.select("*").from_("t"), whose, among, salt)
    found = asked(
        engine,
        exp.select(exp.Star(), named(windows.rank(whose, [one for one, _ in among]), "rank")).from_(tree.subquery("m")),
    )
    assert len(found) == len(rows)
    for row in found:
        of = [word for value, kind in zip(row, KINDS, strict=False) for word in words(value, kind)]
        fresh = [word * int(salt.factor) % P for word in of]
        assert row[-2] == mixed([text_word(f"{salt.text}{row[len(KINDS)]}"), *fresh], "", "mixed")
    ranks: dict[int, list[Any]] = defaultdict(list)
    for row in sorted(found, key=lambda row: (row[-2], *_comparable(row[: len(KINDS)]))):
        ranks[row[len(KINDS)]].append(row[-1])
    assert all(mine == list(range(1, len(mine) + 1)) for mine in ranks.values())


SEVERAL = Scan("t", "p", False)


@pytest.mark.parametrize(
    ("scan", "plain"),
    [
        (SEVERAL, True),
        (Scan("t", None, False), False),
        (Scan("t", None, True), False),
        (Scan("t", "p", True), False),
        (Scan("t", "p", False, Relation()), False),
    ],
)
def test_windows_are_for_rows_of_one_table_with_several_rows_a_person(scan: Scan, plain: bool) -> None:
    for child in (scan, Filter(scan, Literal(True, Type.BOOLEAN))):
        project = Project(child, (), ())
        assert windows.plain(project) is plain
        assert windows.over_rows(LimitRows(project, 2)) is plain
        assert windows.over_rows(project) is False


def test_what_is_made_of_rows_holds_their_tree_and_no_copy_of_it() -> None:
    """Copies of copies would take time that grows with the square of the depth."""
    for made in (
        lambda rows: windows.mixed_rows(rows, [exp.column("c0")], "key", "mixed"),
        lambda rows: windows.of_rows(rows, TABLE, "key"),
        lambda rows: windows.mixed_by_salt(rows, exp.column("p"), [(exp.column("c0"), Type.TEXT)], Salt.of("")),
    ):
        rows = exp.select("*").from_("t")
        assert any(one is rows for one in made(rows).find_all(exp.Select))
