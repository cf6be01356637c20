"""Which bound of a release holds for which count: every count of a question, on made-up and on real rows."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from discreet.synthesis.known import KnownErrors, SyntheticTable, known_errors

KIND = "exact"
SEXES, CHANNELS, KINDS = ("F", "M", None), ("web", "shop"), (True, False)
Person = tuple[str | None, int]
Order = tuple[int, str, bool]
Shop = tuple[list[Person], list[Order]]
"""Customers with sex and age; orders with the place of their customer, channel and whether they are paid."""

customers = st.lists(st.tuples(st.sampled_from(SEXES), st.integers(0, 9)), min_size=1, max_size=5)


@st.composite
def shops(draw: st.DrawFn) -> Shop:
    people = draw(customers)
    whose = st.integers(0, len(people) - 1)
    orders = st.lists(st.tuples(whose, st.sampled_from(CHANNELS), st.sampled_from(KINDS)), max_size=8)
    return people, draw(orders)


def marginals(
    columns: Sequence[str], made: Sequence[tuple[Any, ...]], real: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """For each set of columns the exact distances: the least that a bound which holds may say."""
    for size in range(len(columns) + 1):
        for places in itertools.combinations(range(len(columns)), size):
            ours, theirs = (Counter(tuple(row[p] for p in places) for row in rows) for rows in (made, real))
            off = [abs(ours[key] - theirs[key]) for key in {*ours, *theirs}] or [0]
            yield {"columns": [columns[p] for p in places], "rows": float(sum(off)), "cell": float(max(off))}


def cells(values: Sequence[str] = (), *, nulls: bool = True) -> dict[str, Any]:
    return {"type": "text" if values else "boolean", "values": list(values), "nulls": nulls}


SEX, CHANNEL, PAID = {"sex": cells(("F", "M"))}, {"channel": cells(CHANNELS, nulls=False)}, {"paid": cells()}


def told(made: Shop, real: Shop) -> dict[str, SyntheticTable]:
    """What a release that knew all distances would say of the shop."""
    views = [[(*shop[0][whose], channel, paid) for whose, channel, paid in shop[1]] for shop in (made, real)]
    beside = ["customers.sex", "customers.age", "channel", "paid"]
    people = SyntheticTable(
        "customers", ["id", "sex", "age"], SEX, 1.0, list(marginals(["sex", "age"], made[0], real[0])), "one"
    )
    refers = {"column": "customer", "table": "customers", "key": "id"}
    orders = SyntheticTable(
        *("orders", ["number", "customer", "channel", "paid"], CHANNEL | PAID, 1.0),
        *(list(marginals(beside, *views)), "one", refers),
    )
    return {"customers": people, "orders": orders}


def answered(shop: Shop, questions: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE customers (id INTEGER, sex TEXT, age INTEGER)")
        connection.execute("CREATE TABLE orders (number INTEGER, customer INTEGER, channel TEXT, paid BOOLEAN)")
        for name, rows in zip(("customers", "orders"), shop, strict=True):
            if rows:
                values = ", ".join(["?"] * (len(rows[0]) + 1))
                connection.executemany(
                    f"INSERT INTO {name} VALUES ({values})", [[at, *one] for at, one in enumerate(rows)]
                )
        return [connection.execute(question).fetchall() for question in questions]


def known(question: str, tables: Mapping[str, SyntheticTable]) -> KnownErrors:
    return known_errors(sqlglot.parse_one(question, read="duckdb"), tables)


JOIN = "FROM orders AS o JOIN customers AS c ON o.customer = c.id"
TOLD = [
    "SELECT COUNT(*) FROM customers",
    "SELECT sex, COUNT(*) AS n FROM customers GROUP BY sex",
    "SELECT sex AS s, COUNT(*) AS n FROM customers GROUP BY s",
    "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM customers GROUP BY 1",
    "SELECT COUNT(*) FROM customers WHERE sex = 'F'",
    "SELECT COUNT(*) FROM customers WHERE sex IN ('F', 'M')",
    "SELECT paid, COUNT(paid) AS n FROM orders WHERE paid IS NOT NULL OR paid IS NULL GROUP BY paid",
    "SELECT COUNT(*) FROM orders WHERE paid IS NULL",
    "SELECT CASE WHEN sex = 'F' THEN 1 ELSE 0 END AS f, COUNT(*) FROM customers GROUP BY 1",
    "SELECT COUNT(*) FILTER (WHERE sex = 'F') AS f, COUNT(*) AS n FROM customers",
    "SELECT channel, paid, COUNT(*) FROM orders GROUP BY ALL",
    "SELECT channel, COUNT(*) FROM orders WHERE paid GROUP BY channel",
    "SELECT channel, COUNT(*) FROM orders WHERE paid = TRUE GROUP BY channel",
    "SELECT CASE WHEN channel = 'web' THEN 1 ELSE 0 END AS web, COUNT(*) FROM orders GROUP BY 1",
    "SELECT channel, paid, COUNT(*) FROM orders GROUP BY channel, paid HAVING COUNT(*) > 1 ORDER BY 3 DESC LIMIT 2",
    f"SELECT COUNT(*) {JOIN}",
    f"SELECT c.sex, channel, COUNT(*) {JOIN} GROUP BY ALL",
    f"SELECT c.sex, COUNT(*), COUNT_IF(paid) {JOIN} WHERE o.channel IN ('web', 'shop') GROUP BY c.sex",
    "SELECT sex, COUNT(*) FROM customers JOIN orders ON id = customer WHERE paid GROUP BY sex",
]
NOTHING = [
    "SELECT age, COUNT(*) FROM customers GROUP BY age",  # values inside bins
    "SELECT COUNT(*) FROM customers WHERE age > 5",
    "SELECT COUNT(DISTINCT sex) FROM customers",
    "SELECT COUNT(*) / 2 FROM customers",
    "SELECT SUM(age) FROM customers",
    "SELECT sex FROM customers",
    "SELECT customer, COUNT(*) FROM orders GROUP BY customer",  # keys are made up
    "SELECT COUNT(*) FROM customers WHERE sex = 'F' AND random() < 0.5",
    "SELECT age AS sex, COUNT(*) FROM customers GROUP BY sex",  # a column, or an item of that name
    "SELECT sex = 'F' AS f, COUNT(*) FILTER (WHERE f) FROM customers GROUP BY 1",
    "SELECT sex, COUNT(*) OVER () FROM customers",
    "SELECT sex, COUNT(*) FROM customers GROUP BY ROLLUP (sex)",
    "SELECT *, 1 FROM customers",
    "SELECT COUNT(*) FROM customers, orders",
    "SELECT COUNT(*) FROM orders AS o JOIN customers AS c ON o.number = c.id",  # no key
    "SELECT COUNT(*) FROM orders AS o JOIN customers AS c ON o.customer < c.id",
    "SELECT COUNT(*) FROM orders AS o JOIN customers AS c ON o.customer = c.id AND c.sex = 'F'",
    "SELECT COUNT(*) FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id",
    "SELECT COUNT(*) FROM customers AS o JOIN customers AS c ON o.id = c.id",
    "SELECT COUNT(*) FROM (SELECT * FROM customers)",
    "SELECT COUNT(*) FROM customers WHERE id IN (SELECT customer FROM orders)",
    "WITH customers AS (SELECT 1) SELECT COUNT(*) FROM customers",
    "SELECT COUNT(*) FROM customers UNION ALL SELECT COUNT(*) FROM customers",
    "SELECT COUNT(*) FROM customers TABLESAMPLE 10 PERCENT",
    "SELECT COUNT(*) FROM towns",
    "SELECT sex, COUNT(*) FROM customers AS c(sex) GROUP BY sex",  # other columns than the release's
    "SELECT sex, COUNT(*) FROM customers AS c(id, age, sex) GROUP BY sex",
    "SELECT COUNT(*) FROM orders AS o JOIN customers AS c JOIN items AS i ON TRUE ON o.customer = c.id",
    "SELECT COUNT(*) FROM orders AS o JOIN (customers AS c JOIN items AS i ON TRUE) ON o.customer = c.id",
    "SELECT COUNT(*) FROM information_schema.customers",
    "SELECT COUNT(*) FROM customers USING SAMPLE 1",
    "SELECT COUNT(*) FROM customers GROUP BY 1.0",
    "SELECT COUNT(*) FROM customers WHERE sex = 1",  # values of another type, of which several may be the same
    "SELECT COUNT(*) FROM customers WHERE sex = TRUE",
    "SELECT COUNT(*) FROM customers WHERE sex IS TRUE",
    "SELECT COUNT(*) FROM customers WHERE sex = 'x'",  # values that were not declared count as NULL
    "SELECT COUNT(*) FROM customers WHERE sex IN ('F', 'x')",
    "SELECT COUNT(*) FROM customers WHERE sex <> 'F'",
    "SELECT COUNT(*) FROM customers WHERE NOT (sex = 'F')",
    "SELECT COUNT(*) FROM customers WHERE (sex = 'F') IS NULL",
    "SELECT COUNT(*) FROM customers WHERE sex IS NULL",
    "SELECT COUNT(*) FROM customers WHERE LENGTH(sex) = 1",
    "SELECT COUNT(sex) FROM customers",
    "SELECT COUNT(*) FROM customers GROUP BY sex",
    "SELECT sex = 'F' AS f, COUNT(*) FROM customers GROUP BY 1",
    "SELECT CASE sex = 'F' WHEN FALSE THEN 1 ELSE 0 END AS f, COUNT(*) FROM customers GROUP BY 1",
    "SELECT COUNT(*) FROM customers WHERE CASE WHEN TRUE THEN NOT (sex = 'F') END",
    "SELECT COUNT(*)",
]


@given(made=shops(), real=shops())
def test_no_count_is_further_off_than_what_is_said(made: Shop, real: Shop) -> None:
    """The bounds are the exact distances here: were one of them of another marginal, some tables would be beyond it."""
    tables = told(made, real)
    ours, theirs = answered(made, TOLD), answered(real, [one.partition(" HAVING")[0] for one in TOLD])
    for question, rows, others in zip(TOLD, ours, theirs, strict=True):
        found = known(question, tables)
        assert found.counts, question
        items = sqlglot.parse_one(question, read="duckdb").expressions
        keys = [place for place, item in enumerate(items) if item.find(sqlglot.exp.AggFunc) is None]
        real_rows = {tuple(row[place] for place in keys): row for row in others}
        for row in rows:
            other = real_rows.get(tuple(row[place] for place in keys))
            for place, off in found.counts.items():
                assert abs(row[place] - (0 if other is None else other[place])) <= off, question


@pytest.mark.parametrize("question", NOTHING)
def test_of_what_no_bound_is_about_nothing_is_said(question: str) -> None:
    shop: Shop = ([("F", 1), ("M", 2)], [(0, "web", True)])
    assert not known(question, told(shop, shop)).counts


def test_one_cell_is_told_from_several() -> None:
    made: Shop = ([("F", 1)] * 4 + [("M", 1)] * 3, [])
    tables = told(made, ([("F", 1)] * 3 + [("M", 1)] * 5, []))
    assert known("SELECT sex, COUNT(*) FROM customers GROUP BY sex", tables).counts == {1: 2.0}
    assert known("SELECT COUNT(*) FROM customers WHERE sex IN ('F', 'M')", tables).counts == {0: 3.0}


def test_a_literal_of_another_type_is_not_one_cell() -> None:
    made: Shop = ([("F", 1)], [(0, "web", True)] * 4 + [(0, "web", False)] * 3)
    tables = told(made, ([("F", 1)], [(0, "web", True)] * 3 + [(0, "web", False)] * 5))
    assert known("SELECT COUNT(*) FROM orders WHERE paid = TRUE", tables).counts == {0: 2.0}
    assert known("SELECT COUNT(*) FROM orders WHERE paid = 'true'", tables).counts == {0: 3.0}


def test_of_the_row_of_null_nothing_is_known() -> None:
    """It counts undeclared values too; but a boolean has none."""
    shop: Shop = ([("F", 1), (None, 2)], [(0, "web", True)])
    found = known("SELECT COUNT(*) AS n, sex AS s FROM customers GROUP BY s", told(shop, shop))
    assert found.intervals(["n", "s"], {"n": 1, "s": "F"}) == {"n": (0.0, 2.0)}
    assert found.intervals(["n", "s"], {"n": 1, "s": None}) == {}
    booleans = known("SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid", told(shop, shop))
    assert booleans.intervals(["paid", "n"], {"paid": None, "n": 0}) == {"n": (0.0, 1.0)}


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM customers WHERE random() < 0.1",
        "SELECT rowid, COUNT(*) FROM customers GROUP BY rowid",
        "SELECT COUNT(*) * 100 AS n FROM customers",
        "SELECT COUNT(DISTINCT sex) AS n FROM customers",
    ],
)
def test_no_bound_of_all_cells_is_said_of_other_counts(question: str) -> None:
    shop: Shop = ([("F", 1)], [])
    assert known("SELECT sex, COUNT(*) AS n FROM customers WHERE age > 5 GROUP BY sex", told(shop, shop)).within == 0
    assert known(question, told(shop, shop)) == KnownErrors()


def test_tables_of_different_releases_are_not_joined() -> None:
    shop: Shop = ([("F", 1)], [(0, "web", True)])
    tables = told(shop, shop)
    other = SyntheticTable(**{**vars(tables["customers"]), "together": "another"})
    question = f"SELECT c.sex, COUNT(*) {JOIN} GROUP BY c.sex"
    assert known(question, tables).counts
    assert known(question, {**tables, "customers": other}) == KnownErrors()


def test_a_bound_that_says_nothing_is_not_said() -> None:
    endless = [{"columns": ["sex"], "rows": math.inf, "cell": 1.7e308}]
    table = SyntheticTable("customers", ["sex"], SEX, 1.0, endless)
    again = SyntheticTable.of(table.written("rows"))
    for one in (table, again):
        assert one is not None
        assert known("SELECT sex, COUNT(*) FROM customers GROUP BY sex", {"customers": one}) == KnownErrors()


TRUE: dict[str, Any] = {"name": "x", "columns": ["sex"], "whole": SEX, "factor": 1.0, "marginals": []}
BOUND = {"columns": ["sex"], "rows": 5.0, "cell": 3.0}
LIES: list[dict[str, Any]] = [
    {"marginals": [BOUND | {"rows": -50.0}]},
    {"marginals": [BOUND | {"cell": True}]},
    {"marginals": [BOUND | {"cell": None}]},
    {"marginals": [BOUND | {"cell": "x"}]},
    {"marginals": [BOUND | {"cell": math.nan}]},
    {"marginals": [BOUND | {"columns": 5}]},
    {"marginals": [BOUND | {"columns": [[1]]}]},
    {"marginals": [{}]},
    {"marginals": 5},
    {"marginals": {"columns": 1}},
    {"whole": 5},
    {"whole": ["sex"]},
    {"whole": {"sex": {"type": "text"}}},
    {"whole": {"sex": cells(("F",)) | {"values": 5}}},
    {"columns": 5},
    {"columns": [1]},
    {"name": [1]},
    {"factor": "x"},
    {"together": [1]},
    {"refers": []},
    {"refers": None},
    {"refers": {"table": [1]}},
    {"refers": {"key": "id", "table": "x"}},
    {"rows": 5},
    {"another": 5},
]


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", '{"synthetic": 5}', '{"synthetic": {"name": "x"}}', "[]", b"\xff", "[" * 200_000),
        '{"synthetic": ' * 100_000,
        '{"synthetic": ' + "9" * 5_000 + "}",
        *(json.dumps({"synthetic": TRUE | one}) for one in LIES),
    ],
)
def test_what_no_release_has_written_says_nothing(text: str | bytes) -> None:
    assert SyntheticTable.of(json.dumps({"synthetic": TRUE | {"marginals": [BOUND]}})) is not None
    assert SyntheticTable.of(text) is None


def test_ends_of_an_interval_are_counts() -> None:
    found = KnownErrors(None, {1: 2.5}).intervals(["sex", "n"], {"sex": "F", "n": 3})
    assert found == {"n": (0.0, 7.0)}
