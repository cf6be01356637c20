"""Questions over several tables, subqueries and public tables: exact answers where the price hides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pandas = pytest.importorskip("pandas")

import discreet  # noqa: E402

CUSTOMERS = {"id": [1, 2, 3, 4], "city": ["a", "b", "a", "c"], "age": [20, 30, 40, 50]}
ORDERS = {
    "oid": [10, 11, 12, 13, 14],
    "cust": [1, 1, 2, 3, 9],
    "status": ["x", "y", "x", "x", "y"],
    "total": [5.0, 7.0, 9.0, 11.0, 100.0],
}
LINES = {"oid": [10, 10, 11, 12, 13, 13, 99], "qty": [1, 2, 3, 4, 5, 6, 90], "cur": ["E", "U", "E", "E", "U", "U", "E"]}
RATES = {"cur": ["E", "U"], "rate": [1.0, 2.0]}


def table(content: Any, **known: Any) -> discreet.Table:
    return discreet.Table(pandas.DataFrame(content), **known)


@pytest.fixture(scope="module")
def shop() -> Iterator[discreet.Curator]:
    """Customers, their orders, and the orders' lines, whose customer is found along a foreign key."""
    whole = {"type": "integer"}
    tables = {
        "customers": table(
            CUSTOMERS,
            person="id",
            one_row_per_person=True,
            columns={
                "id": whole,
                "city": {"values": ["a", "b", "c"], "nulls": False},
                "age": {"type": "integer", "min": 0, "max": 100, "nulls": False},
            },
        ),
        "orders": table(
            ORDERS,
            person="cust",
            rows_per_person=10,
            columns={"oid": whole, "cust": whole, "status": str, "total": {"type": "number", "min": 0, "max": 200}},
        ),
        "lines": table(
            LINES,
            person="oid -> orders.oid",
            rows_per_person=20,
            columns={"oid": whole, "qty": {"type": "integer", "min": 0, "max": 100}, "cur": str},
        ),
        "rates": table(RATES, public=True, columns={"cur": str, "rate": {"type": "number"}}),
    }
    with discreet.Curator(tables, epsilon=1e25, delta=1e-3) as curator:
        yield curator


ANSWERS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT COUNT(*) FROM customers c JOIN orders o ON c.id = o.cust", [(4,)]),
    (
        "SELECT c.city, COUNT(*), SUM(total) FROM customers c JOIN orders o ON c.id = o.cust GROUP BY c.city",
        [("a", 3, 23.0), ("b", 1, 9.0), ("c", 0, 0.0)],
    ),
    (
        "SELECT city, SUM(qty) FROM customers c JOIN orders o ON c.id = o.cust JOIN lines l ON l.oid = o.oid"
        " GROUP BY city",
        [("a", 17), ("b", 4), ("c", 0)],
    ),
    ("SELECT SUM(qty), COUNT(*) FROM lines", [(21, 6)]),
    ("SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON c.id = o.cust", [(5,)]),
    ("SELECT COUNT(*), COUNT(c.age) FROM customers c RIGHT JOIN orders o ON c.id = o.cust", [(5, 4)]),
    ("SELECT COUNT(*), COUNT(o.total) FROM customers c FULL JOIN orders o ON c.id = o.cust", [(6, 5)]),
    ("SELECT AVG(k), COUNT(*) FROM (SELECT cust, COUNT(*) AS k FROM orders GROUP BY cust)", [(1.25, 4)]),
    (
        "WITH t AS (SELECT cust, SUM(total) AS s FROM orders GROUP BY cust HAVING COUNT(*) > 1)"
        " SELECT COUNT(*), SUM(s) FROM t",
        [(1, 12.0)],
    ),
    (
        "WITH t AS (SELECT cust, total FROM orders), u AS (SELECT cust, MAX(total) AS m, MIN(total) AS k, AVG(total)"
        " AS a, COUNT(DISTINCT total) AS d FROM t GROUP BY cust) SELECT SUM(m), SUM(k), SUM(a), SUM(d) FROM u",
        [(127.0, 125.0, 126.0, 5)],
    ),
    ("SELECT SUM(CASE WHEN rate > 1.5 THEN 2 ELSE 1 END) FROM lines l JOIN rates r ON l.cur = r.cur", [(9,)]),
    ("SELECT COUNT(*) FROM lines, rates", [(12,)]),
    ("SELECT COUNT(*) FROM customers WHERE id IN (SELECT cust FROM orders WHERE total > 8)", [(2,)]),
    ("SELECT COUNT(*) FROM customers WHERE id NOT IN (SELECT cust FROM orders) AND age > 1", [(1,)]),
    ("SELECT COUNT(*) FROM lines WHERE cur IN (SELECT cur FROM rates WHERE rate > 1)", [(3,)]),
    ("SELECT COUNT(*) FROM (SELECT id FROM customers UNION ALL SELECT cust FROM orders)", [(9,)]),
    (
        "SELECT r.cur, COUNT(*) FROM lines l RIGHT JOIN (SELECT DISTINCT cur FROM rates) r ON l.cur = r.cur"
        " GROUP BY r.cur",
        [("E", 3), ("U", 3)],
    ),
    (
        "SELECT cur, COUNT(*) FROM (SELECT DISTINCT cur FROM rates) LEFT JOIN lines USING (cur) GROUP BY cur",
        [("E", 3), ("U", 3)],
    ),
    (
        "SELECT CASE WHEN age < 35 THEN 'young' ELSE 'old' END AS k, COUNT(*) FROM customers GROUP BY k",
        [("young", 2), ("old", 2)],
    ),
    ("SELECT COUNT(*) FROM orders a JOIN orders b ON a.cust = b.cust AND a.oid < b.oid", [(1,)]),
    ("SELECT COUNT(*) FROM lines JOIN (SELECT cust, oid AS k FROM orders WHERE total > 6) o ON oid = o.k", [(4,)]),
    (
        "SELECT COUNT(*) FROM (SELECT * FROM orders WHERE total > 6) o JOIN (SELECT id FROM customers WHERE age > 25) c"
        " ON c.id = o.cust",
        [(2,)],
    ),
    (
        "SELECT COUNT(DISTINCT c.id), COUNT(DISTINCT o.cust) FROM customers c JOIN orders o ON o.cust = c.id",
        [(3, 3)],
    ),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT cust, status FROM orders)", [(5,)]),
    (
        "SELECT FLOOR(age / 20) * 20 AS k, COUNT(*) FROM customers GROUP BY k",  # public, as the ages are
        [(0, 0), (20, 2), (40, 2), (60, 0), (80, 0), (100, 0)],
    ),
]


@pytest.mark.parametrize(("question", "rows"), ANSWERS, ids=[question[:70] for question, _ in ANSWERS])
def test_what_is_answered(shop: discreet.Curator, question: str, rows: list[tuple[Any, ...]]) -> None:
    found = [tuple(row.values()) for row in shop.ask(question, epsilon=1e20).rows]
    assert found == [
        tuple(pytest.approx(value) if isinstance(value, float) else value for value in row) for row in rows
    ]


REFUSED = [
    ("SELECT COUNT(*) FROM orders a JOIN orders b ON a.oid < b.oid", "join", "add AND a.cust = b.cust"),
    # along a foreign key too: rows of strangers are not left out in silence
    ("SELECT COUNT(*) FROM lines a JOIN lines b ON a.cur = b.cur AND a.qty < b.qty", "join", "add AND a.oid = b.oid"),
    ("SELECT COUNT(*) FROM lines a, lines b", "join", "add a.oid = b.oid to WHERE"),
    ("SELECT COUNT(*) FROM lines a JOIN lines b ON a.oid = b.oid OR a.qty = b.qty", "join", "add AND a.oid = b.oid"),
    ("SELECT COUNT(*) FROM lines a JOIN lines b ON a.oid = b.qty", "join", "add AND a.oid = b.oid"),
    ("SELECT COUNT(*) FROM orders o LEFT JOIN lines l ON o.total = l.qty", "join", "add AND o.oid = l.oid"),
    (
        "SELECT COUNT(*) FROM customers c JOIN orders o ON c.id = o.cust JOIN lines l ON l.qty = c.age",
        "join",
        "add AND o.oid = l.oid",
    ),
    ("SELECT COUNT(*) FROM customers c JOIN lines l ON c.id = l.oid", "join", "join orders too, by l.oid = orders.oid"),
    (
        "SELECT COUNT(*) FROM (SELECT total FROM orders) o JOIN customers ON total = id",
        "join",
        "person's column to the list of o",
    ),
    ("SELECT COUNT(*) FROM orders WHERE total IN (SELECT age FROM customers)", "subquery", "join customers in FROM"),
    ("SELECT COUNT(*) FROM rates r LEFT JOIN lines l ON l.cur = r.cur", "join", "write COUNT(column)"),
    ("SELECT COUNT(*) FROM lines l FULL JOIN rates r ON l.cur = r.cur", "join", "write LEFT JOIN"),
    ("SELECT COUNT(*) FROM (SELECT cust FROM orders LIMIT 1)", "clause", "group by the person"),
    ("SELECT COUNT(*) FROM (SELECT cust, SUM(total) OVER () AS s FROM orders)", "not-allowed", ""),
    ("SELECT COUNT(*) FROM (SELECT age FROM customers UNION SELECT oid FROM orders)", "union", "write UNION ALL"),
    ("SELECT COUNT(*) FROM (SELECT id FROM customers UNION ALL SELECT 1 FROM rates)", "union", "aggregate in both"),
    ("SELECT COUNT(*) FROM customers, customers", "names", "AS other"),
    (
        "SELECT age, COUNT(*) FROM customers c JOIN customers d ON c.id = d.id GROUP BY age",
        "ambiguous",
        "c.age or d.age",
    ),
    ("WITH RECURSIVE t AS (SELECT 1) SELECT COUNT(*) FROM t", "clause", "write WITH name"),
    ("SELECT cust, COUNT(*) FROM orders GROUP BY cust", "person-key", "many persons share"),
    ("SELECT k, COUNT(*) FROM (SELECT cust AS k FROM orders) GROUP BY k", "person-key", "many persons share"),
]


@pytest.mark.parametrize(("question", "code", "fix"), REFUSED, ids=[question[:70] for question, _, _ in REFUSED])
def test_what_is_refused_and_costs_nothing(shop: discreet.Curator, question: str, code: str, fix: str) -> None:
    used = shop.budget.used
    with pytest.raises(discreet.QuestionError) as refusal:
        shop.ask(question, epsilon=1)
    assert refusal.value.code == code
    assert fix in refusal.value.fix
    assert shop.budget.used == used


def test_a_table_whose_rows_are_persons_takes_filters_and_lookups_but_no_join_that_repeats_them() -> None:
    people = table(
        {"age": [1, 2, 3]}, one_row_per_person=True, columns={"age": {"type": "integer", "min": 0, "max": 9}}
    )
    ages = table(
        {"age": [1, 1, 3], "word": ["x", "y", "z"]}, public=True, columns={"age": {"type": "integer"}, "word": str}
    )
    with discreet.Curator({"people": people, "ages": ages}, epsilon=1e25, delta=1e-3) as curator:
        assert curator.ask(
            "SELECT COUNT(*) AS n FROM people WHERE age IN (SELECT age FROM ages)", epsilon=1e20
        ).rows == [{"n": 2}]
        joined = "SELECT COUNT(*) AS n FROM people p JOIN (SELECT DISTINCT age FROM ages) a ON a.age = p.age"
        assert curator.ask(joined, epsilon=1e20).rows == [{"n": 2}]
        with pytest.raises(discreet.QuestionError) as refusal:
            curator.ask("SELECT COUNT(*) AS n FROM people p JOIN ages a ON a.age = p.age", epsilon=1e20)
        assert refusal.value.code == "join"
