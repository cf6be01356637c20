"""The same key, salt and question give the same exact vectors on PostgreSQL as on DuckDB, bit for bit."""

from __future__ import annotations

import datetime
import math
import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dialect_tools import ARROW
from discreet.audit.maker import Maker
from discreet.catalog import Declaration, Table, declare
from discreet.engines.driver import _key
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.postgresql.dialect import POSTGRESQL
from discreet.errors import QuestionError
from discreet.sql import lower
from discreet.synthesis.related import related
from discreet.trusted.ring_a.nodes import Filter
from discreet.trusted.ring_a.table import Relation, Type, Value, as_table
from discreet.trusted.ring_a.windows import Salt
from discreet.trusted.ring_b.dialect import Lacking
from discreet.trusted.ring_b.relation_statements import rows_of, several_owners
from discreet.trusted.ring_b.relations import RowBefore, shape
from discreet.trusted.ring_c.coded import CodedRows, build, counts, drop, true_cells
from discreet.trusted.ring_c.coding import Binned, Coding, ListedCells
from discreet.trusted.ring_c.vectors import VectorColumn, select
from engine_tools import COLUMNS, declaration
from kinds import examples, some
from two_engines import both

VERSIONS = some([18, 15], pytest.mark.power)
NUMBERS = [None, 0.0, -0.0, 0.5, 1.2, -2.5, 3.25, 9.999, 1e308, -1e308, 5e-324, math.inf, -math.inf, 123456.789]
VALUES: Mapping[Type, Sequence[Any]] = {
    Type.INTEGER: [None, *range(-2, 8), 2**31, 2**53 + 1, 2**63 - 1, -(2**63)],
    Type.NUMBER: NUMBERS,
    Type.TEXT: [None, "", "x", "y", "z", "ü", "X", "🙂", "e\u0301", "a\\%_'", "m" * 300, *(f"p{n}" for n in range(12))],
    Type.BOOLEAN: [None, True, False],
    Type.DATE: [None, *(datetime.date(y, 2, d) for y in (1, 1969, 2020, 2021, 9999) for d in (1, 28))],
    Type.TIMESTAMP: [
        *(None, datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        *(datetime.datetime(2020, 2, 29, 12, 0, 0, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999)),
    ],
}
"""What a source holds; not NUL, which no text of PostgreSQL has."""


def loaded(version: int, table: Table, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The table in both engines: they hold the same rows, with the same places and words."""
    engines, types = both(version), {column.name: column.type or Type.TEXT for column in table.columns}
    source = f"source_of_{table.name}"
    frame = {name: pyarrow.array([row.get(name) for row in rows], ARROW[kind]) for name, kind in types.items()}
    engines.make(source, pyarrow.table(frame), types)
    known, ours, theirs = engines.load(table, source)
    assert ours == theirs
    return known


def made_up(table: Table, count: int, chance: random.Random) -> list[dict[str, Any]]:
    few = {name: chance.sample(list(values), min(len(values), 9)) for name, values in VALUES.items()}
    return [
        {column.name: chance.choice(few[column.type or Type.TEXT]) for column in table.columns} for _ in range(count)
    ]


UNITS: Sequence[Mapping[str, Any]] = (
    {"person": "p", "rows_per_person": 5, "groups_per_person": 2},
    {"person": "p", "one_row_per_person": True},
    {"one_row_per_person": True},
    {"person": "u", "rows_per_person": 3, "groups_per_person": 2},
    {"person": "d", "rows_per_person": 4, "groups_per_person": 3},
    {"public": True},
)
QUESTIONS = (
    "SELECT COUNT(*) FROM t",
    "SELECT g, COUNT(*), SUM(v), AVG(w) FROM t GROUP BY g",
    "SELECT h, COUNT(*) FROM t GROUP BY h",
    "SELECT h, k, COUNT(*), SUM(w) FROM t WHERE b GROUP BY h, k",
    "SELECT g, SUM(s), COUNT(v) FROM t WHERE b AND w > 1 GROUP BY g",
    "SELECT k, b, SUM(w) FROM t GROUP BY k, b",
    "SELECT SUM(v * w, contribution_bounds_per_row => (0, 30)) FROM t",
    "SELECT g, SUM(LEAST(w / v, s) + 1, contribution_bounds_per_row => (0, 3)) FROM t WHERE NULLIF(v, 2) > 1 "
    "GROUP BY g",
    "SELECT AVG(SQRT(w) * LN(s + 1)) FROM t WHERE LOWER(h) <> 'x' OR h IS NULL",
    "SELECT MEDIAN(w), COUNT(DISTINCT h), COUNT(*) FROM t WHERE h LIKE 'p%'",
    "SELECT APPROX_QUANTILES(w, 4) FROM t",
    "SELECT g, VAR_SAMP(v), CORR(v, w) FROM t GROUP BY g",
    "SELECT AVG(f), SUM(u) FROM t",
    "SELECT YEAR(d) AS y, COUNT(*) FROM t GROUP BY y",
    "SELECT UPPER(h) AS y, SUM(MOD(v, 3) * s) FROM t GROUP BY y",
    "SELECT FLOOR(w / 2.0) * 2.0 AS y, ROUND(f, 1) AS z, COUNT(*) FROM t GROUP BY y, z",
    "SELECT s, w - w % 3 AS y, f - MOD(f, 7) AS z, COUNT(*) FROM t GROUP BY s, y, z",
    "SELECT COUNT(*) FROM t WHERE d + INTERVAL 1 MONTH > DATE '2020-01-01'",
    "SELECT COUNT(*) FROM (SELECT p, SUM(v * 2.5 + 1) AS z, AVG(w * s) AS y, MAX(b) AS x FROM t GROUP BY p) "
    "WHERE z > 1 AND y < 100 OR x",
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_questions_of_one_table(version: int, unit: Mapping[str, Any]) -> None:
    known = declaration(unit, COLUMNS)
    table = loaded(version, known.tables["t"], made_up(known.tables["t"], 400, random.Random(7)))
    asked = 0
    for text in QUESTIONS if not unit.get("public") else ():
        try:
            question = lower(text, known)
        except QuestionError:  # a subquery of p where p is no person
            continue
        for salt in ("salt", "another"):
            for root in question.plan.roots:
                ours, theirs = both(version).vectors(root, question.table, salt)
                assert ours == theirs, text
                asked += len(ours)
    assert asked > 60 or unit.get("public")
    assert table.name == "t"


WHOLE, WORD, NUMBER = {"type": "integer"}, {"type": "text"}, {"type": "number"}
SHOP: Declaration = declare(
    {
        "budget": {"epsilon": 1000, "delta": Fraction(1, 1000)},
        "tables": {
            name: {"source": "no.csv", **one}
            for name, one in {
                "customers": {
                    "person": "id",
                    "one_row_per_person": True,
                    "columns": {
                        "id": WHOLE,
                        "city": {"type": "text", "values": ["x", "ü", "it's"]},
                        "age": {"type": "integer", "min": 0, "max": 9},
                        "born": {"type": "date"},
                        "well": {"type": "boolean"},
                        "h": WORD,
                    },
                },
                "orders": {
                    "person": "cust",
                    "rows_per_person": 3,
                    "groups_per_person": 2,
                    "columns": {
                        "oid": WORD,
                        "cust": WHOLE,
                        "total": {"type": "number", "min": 0, "max": 10},
                        "price": {"type": "number", "min": 0, "max": 100, "step": 0.25},
                        "at": {"type": "timestamp"},
                        "paid": {"type": "boolean"},
                        "f": NUMBER,
                    },
                },
                "lines": {
                    "person": "oid -> orders.oid",
                    "rows_per_person": 4,
                    "groups_per_person": 2,
                    "columns": {"oid": WORD, "qty": {"type": "integer", "min": 0, "max": 5}, "on": {"type": "date"}},
                },
                "rates": {
                    "public": True,
                    "columns": {"cur": WORD, "rate": NUMBER, "n": WHOLE, "since": {"type": "date"}},
                },
            }.items()
        },
    }
)
JOINED = (
    "SELECT COUNT(*) FROM orders o JOIN rates r ON o.oid = r.cur WHERE (o.total - r.rate) / 2 > 0.1",
    "SELECT SUM((o.total + 1) * (r.rate - 0.5), contribution_bounds_per_row => (0, 3)) FROM orders o JOIN rates r "
    "ON o.oid = r.cur AND SQRT(o.total * r.rate) < 7",
    "SELECT COUNT(*), SUM(o.total) FROM orders o LEFT JOIN rates r ON o.oid = r.cur AND (o.total - r.rate) / 2 > 0.1 "
    "AND GREATEST(r.rate * 2, r.n + 1) > 0",
    "SELECT COUNT(*), COUNT(c.age) FROM customers c FULL JOIN orders o ON c.id = o.cust "
    "AND (c.age + 1) * 2 > NULLIF(o.total * o.f, 3)",
    "SELECT c.city, SUM(MOD(o.total, 3) * c.age) FROM customers c JOIN orders o ON c.id = o.cust GROUP BY c.city",
    "SELECT COUNT(*) FROM orders o LEFT JOIN customers c ON o.cust = c.id AND SQRT(ABS(o.f)) > POWER(c.age, 2) / 3",
    "SELECT COUNT(*), SUM(l.qty) FROM lines l JOIN rates r ON l.qty = r.n WHERE l.on > r.since OR r.rate / l.qty > 1",
    "SELECT COUNT(*), AVG(z) FROM (SELECT cust, SUM(total * price) AS z, COUNT(DISTINCT FLOOR(total / 3)) AS n "
    "FROM orders WHERE f / 3 < 100 GROUP BY cust, MOD(price, 2)) WHERE z / n > 0.5",
    "SELECT MONTH(at) AS m, COUNT(*) FROM orders WHERE cust IN (SELECT id FROM customers WHERE age * 2.5 > 3) "
    "GROUP BY m",
    "SELECT SUM(x) FROM (SELECT cust, total, COUNT(*) AS x FROM orders GROUP BY cust, total UNION ALL "
    "SELECT cust, f, COUNT(*) FROM orders GROUP BY cust, f)",
    "SELECT SUM(x, contribution_bounds_per_row => (0, 9)) FROM (SELECT cust, total / 3 AS x FROM orders UNION ALL "
    "SELECT id, LN(age) FROM customers)",
)


@pytest.fixture(scope="module", params=VERSIONS)
def shop(request: pytest.FixtureRequest) -> int:
    """The version of a server that has the shop, as DuckDB has."""
    version: int = request.param
    chance = random.Random(8)
    for name, table in SHOP.tables.items():
        count = 8 if table.public else 70
        rows = made_up(table, count, chance)
        for row in rows:  # keys that meet
            for column in row.keys() & {"id", "cust", "n"}:
                row[column] = chance.choice([None, *range(9)])
            for column in row.keys() & {"oid", "cur"}:
                row[column] = chance.choice([None, *(f"o{n}" for n in range(6))])
        loaded(version, table, rows)
        assert name == table.name
    return version


def asked(version: int, text: str, salt: str) -> int:
    """How many rows both engines give for a question."""

    def values(relation: Relation) -> list[tuple[Value, ...]]:
        columns = shape(relation).columns
        public = exp.select(*(f"c{place}" for place in range(len(columns)))).distinct()
        public = public.from_(rows_of(relation, lambda _: None).select.subquery("p"))
        ours, theirs = both(version).asked(public)
        assert sorted(ours, key=repr) == sorted(theirs, key=repr)
        kinds = [column.type or Type.TEXT for column in columns]
        found = [
            tuple(_key(_plain(value, kind), kind) for value, kind in zip(row, kinds, strict=True))
            for row in ours
            if all(value is not None and value not in ENDLESS for value in row)
        ]
        return sorted(found)

    question, count = lower(text, SHOP, values), 0  # type: ignore[arg-type]
    for root in question.plan.roots:
        ours, theirs = both(version).vectors(root, question.table, salt)
        assert ours == theirs, text
        count += len(ours)
    return count


ENDLESS = ("7ff0000000000000", "fff0000000000000")


def _plain(value: Any, kind: Type) -> Any:
    """A value as an engine's process hands it on."""
    if kind is Type.NUMBER:
        return struct.unpack(">d", bytes.fromhex(value))[0]
    return (
        value.isoformat(" ")
        if isinstance(value, datetime.datetime)
        else value.isoformat()
        if isinstance(value, datetime.date)
        else value
    )


@pytest.mark.parametrize("text", JOINED)
def test_questions_of_several_tables(shop: int, text: str) -> None:
    assert asked(shop, text, "salt") > 0


def test_nobody_else_owns_what_is_referred_to(shop: int) -> None:
    """The statement that an engine asks at the load of a table with a path, over persons of every type."""
    for kind in ("lines",):
        question = lower(f"SELECT COUNT(*) FROM {kind}", SHOP)
        relation = question.table.relation
        assert relation is not None
        ours, theirs = both(shop).asked(several_owners(relation))  # type: ignore[arg-type]
        assert len(ours) == len(theirs)


CODINGS = (
    "city = 'x' OR city < 'y' AND age > 3",
    "LENGTH(city) * 2 > age OR well",
    "MOD(age, 3) * 2.5 / age > 0.5 AND GREATEST(age, 2) < 7",
    "born > DATE '2000-01-01' OR UPPER(city) LIKE 'X%'",
)


def test_rows_as_cells_and_the_cells_of_a_predicate(shop: int) -> None:
    engines, table = both(shop), SHOP.tables["customers"]
    columns = {column.name: column for column in table.columns}
    listed = {
        "city": ("x", "ü", "it's"),
        "age": (0, 3, 5, 7),
        "well": (False, True),
        "born": (datetime.date(1, 2, 1), datetime.date(2020, 2, 28)),
    }
    many = tuple(sorted({str(one) for one in VALUES[Type.TEXT] if one} | {f"a {n}" for n in range(20)}))
    for place, coded in enumerate(
        [
            *(
                ListedCells(columns[name], values, other=place == 1)
                for name, values in listed.items()
                for place in (0, 1)
            ),
            ListedCells(columns["h"], many, other=True, null=False),
            Binned(columns["age"], (1, 2, 4, 6)),
            Binned(columns["h"], ("a", "p", "y")),
            Binned(columns["born"], (datetime.date(1970, 1, 1),)),
        ]
    ):
        rows = CodedRows(f"coded_{place}", table, Coding((coded,)))
        for run, dialect in ((engines.duck.execute, DUCKDB), (engines.server.execute, POSTGRESQL)):
            run(f"DROP TABLE IF EXISTS {rows.name}")
            run(build(rows, Salt.of("salt"), dialect))
        texts = (counts(rows, [coded.column.name], dialect) for dialect in (DUCKDB, POSTGRESQL))
        ours, theirs = (run(text) for run, text in zip((engines.of_duck, engines.of_server), texts, strict=True))
        assert sorted(ours) == sorted(theirs)
        for run in (engines.duck.execute, engines.server.execute):
            run(drop(rows))
    coding = Coding(tuple(ListedCells(columns[name], values) for name, values in listed.items()))
    for text in CODINGS:
        question = lower(f"SELECT COUNT(*) FROM customers WHERE {text}", SHOP)
        predicate = next(node.predicate for node in _nodes(question.plan.root) if isinstance(node, Filter))
        ours, theirs = (
            engines.of_duck(true_cells(coding, predicate, DUCKDB)),
            engines.of_server(true_cells(coding, predicate, POSTGRESQL)),
        )
        assert sorted(ours) == sorted(theirs), text
        assert ours


@pytest.mark.parametrize("evenly", [False, True])
def test_views_over_several_tables_as_cells(shop: int, *, evenly: bool) -> None:
    """Orders beside their customers, how many lines they have, and the order before; what a customer's rows weigh."""
    engines, relation = both(shop), related(SHOP, ["customers", "orders", "lines"])[1].view.relation
    assert relation is not None
    view = as_table(RowBefore(relation, ("cust",), "total", (("total before", "total"),)))
    column = {one.name: one for one in view.columns}
    known = Coding(
        (
            Binned(column["total"], (Fraction(1), Fraction(4))),
            Binned(column["customers.age"], (1, 2, 4, 6)),
            Binned(column["rows of lines"], (2, 3)),
            Binned(column["total before"], (Fraction(1), Fraction(4))),
        )
    )
    rows = CodedRows("coded_view", view, known, evenly)
    found = []
    for run, read, dialect in (
        (engines.duck.execute, engines.of_duck, DUCKDB),
        (engines.server.execute, engines.of_server, POSTGRESQL),
    ):
        run(f"DROP TABLE IF EXISTS {rows.name}")
        run(build(rows, Salt.of("salt"), dialect))
        found.append([sorted(read(counts(rows, names, dialect, evenly=evenly))) for names in ((), known.names)])
        run(drop(rows))
    assert found[0] == found[1]
    assert len(found[0][1]) > 5


def _nodes(node: Any) -> Iterator[Any]:
    """A plan's nodes, each above the one that it reads."""
    while node is not None:
        yield node
        node = getattr(node, "child", None)


def test_rows_as_vectors(shop: int) -> None:
    """Person by person. Rows of nobody have no order of their own that engines share."""
    for table in (SHOP.tables["customers"], SHOP.tables["orders"]):
        wanted = [VectorColumn(column) for column in table.columns]
        wanted += [VectorColumn(column, column.values) for column in table.columns if column.values]
        ours, theirs = both(shop).asked(select(table, wanted))
        assert ours == theirs
        assert len(ours) > 5


@settings(max_examples=examples(25, quick=10), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), salt=st.text("0123456789abcdef", min_size=1, max_size=8))
def test_questions_made_up_at_random(shop: int, seed: int, salt: str) -> None:
    """Every operator, join, option and kind of key; what PostgreSQL lacks is refused by its name."""
    maker = Maker(SHOP, seed)
    for _ in range(8):
        text = maker.question()
        try:
            asked(shop, text, salt)
        except (QuestionError, Lacking):
            continue
