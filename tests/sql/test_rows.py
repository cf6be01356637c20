"""What analysts write below the groups, against plain SQL over the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pandas
import pytest

import discreet
from discreet.errors import QuestionError
from discreet.ledger import TOTAL
from trade_tools import curator, ours, plain, rows, theirs, without_nothing

TABLES = rows()


@pytest.fixture(scope="module")
def trade() -> Iterator[discreet.Curator]:
    with curator(TABLES) as one:
        yield one


@pytest.fixture(scope="module")
def sql() -> duckdb.DuckDBPyConnection:
    return plain(TABLES)


ALIKE = [
    (
        2,
        "SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS q, SUM(l_extendedprice * (100 - l_discount)) AS p, "
        "COUNT(*) AS n FROM lineitem WHERE l_shipdate <= DATE '1995-09-02' GROUP BY l_returnflag, l_linestatus",
    ),
    (
        2,
        "SELECT o_orderpriority, o_shippriority, SUM(l_extendedprice * (100 - l_discount)) AS revenue FROM "
        "customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = "
        "o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1993-03-15' GROUP BY "
        "o_orderpriority, o_shippriority",
    ),
    (
        1,
        "SELECT o_orderpriority, COUNT(*) AS n FROM orders WHERE o_orderdate >= DATE '1993-07-01' AND EXISTS "
        "(SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY "
        "o_orderpriority",
    ),
    (
        1,
        "SELECT n_name, SUM(l_extendedprice * (100 - l_discount)) AS revenue FROM customer, orders, lineitem, "
        "supplier, nation, region WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = "
        "s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND "
        "r_name = 'ASIA' GROUP BY n_name",
    ),
    (
        0,
        "SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' "
        "AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 5 AND 7 AND l_quantity < 24",
    ),
    (
        2,
        "SELECT supp_nation, cust_nation, SUM(volume) AS revenue FROM (SELECT n1.n_name AS supp_nation, n2.n_name "
        "AS cust_nation, l_extendedprice * (100 - l_discount) AS volume FROM supplier, lineitem, orders, "
        "customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = "
        "o_custkey AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey AND ((n1.n_name = 'FRANCE' "
        "AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))) AS shipping GROUP BY "
        "supp_nation, cust_nation",
    ),
    (
        1,
        "SELECT n_name, SUM(l_extendedprice) AS revenue FROM customer, orders, lineitem, nation WHERE c_custkey = "
        "o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' AND c_nationkey = n_nationkey GROUP BY "
        "n_name",
    ),
    (
        1,
        "SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE "
        "0 END) AS high, SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE "
        "0 END) AS low FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND "
        "l_commitdate < l_receiptdate GROUP BY l_shipmode",
    ),
    (
        1,
        "SELECT c_count, COUNT(*) AS custdist FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer "
        "LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY "
        "c_custkey) AS c_orders GROUP BY c_count",
    ),
    (
        1,
        "SELECT c_count, COUNT(*) AS custdist FROM (SELECT c_custkey, COUNT(o_orderkey) FROM customer LEFT OUTER "
        "JOIN orders ON c_custkey = o_custkey GROUP BY c_custkey) AS c_orders (c_custkey, c_count) GROUP BY "
        "c_count",
    ),
    (
        0,
        "SELECT SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (100 - l_discount) ELSE 0 END) AS "
        "promo, SUM(l_extendedprice * (100 - l_discount)) AS every FROM lineitem, part WHERE l_partkey = "
        "p_partkey AND l_shipdate >= DATE '1994-01-01'",
    ),
    (
        1,
        "SELECT c_mktsegment, SUM(l_quantity) AS q FROM customer, orders, lineitem WHERE o_orderkey IN (SELECT "
        "l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 90) AND c_custkey = o_custkey AND "
        "o_orderkey = l_orderkey GROUP BY c_mktsegment",
    ),
    (
        0,
        "SELECT SUM(l_extendedprice * (100 - l_discount)) AS revenue FROM lineitem, part WHERE (p_partkey = "
        "l_partkey AND p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX') AND l_quantity >= 1 AND "
        "l_quantity <= 31 AND p_size BETWEEN 1 AND 5) OR (p_partkey = l_partkey AND p_brand = 'Brand#23' AND "
        "l_quantity >= 10 AND p_size BETWEEN 1 AND 10)",
    ),
    (
        1,
        "SELECT c_mktsegment, COUNT(*) AS n, SUM(c_acctbal) AS total FROM customer WHERE SUBSTRING(c_phone, 1, 2) "
        "IN ('10', '11', '12') AND c_acctbal > 200 AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = "
        "c_custkey) GROUP BY c_mktsegment",
    ),
    (
        0,
        "SELECT COUNT(*) AS n FROM supplier, lineitem l1, orders, nation WHERE s_suppkey = l1.l_suppkey AND "
        "o_orderkey = l1.l_orderkey AND l1.l_receiptdate > l1.l_commitdate AND EXISTS (SELECT * FROM lineitem l2 "
        "WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey) AND NOT EXISTS (SELECT * FROM "
        "lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > "
        "l3.l_commitdate) AND s_nationkey = n_nationkey",
    ),
    (
        0,
        "SELECT SUM(l_extendedprice) AS avg_yearly FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = "
        "'Brand#23' AND l_quantity < 20",
    ),
    (
        1,
        "SELECT n_name, COUNT(c_custkey) AS n FROM nation LEFT JOIN customer ON c_nationkey = n_nationkey GROUP "
        "BY n_name",
    ),
    (
        1,
        "SELECT r_name, COUNT(o_orderkey) AS n, SUM(o_totalprice) AS s FROM nation JOIN region ON n_regionkey = "
        "r_regionkey LEFT JOIN customer ON c_nationkey = n_nationkey LEFT JOIN orders ON o_custkey = c_custkey "
        "GROUP BY r_name",
    ),
    (0, "SELECT AVG(s) AS a FROM (SELECT l_orderkey, SUM(l_extendedprice) AS s FROM lineitem GROUP BY l_orderkey)"),
    (0, "SELECT AVG(x) AS a, COUNT(*) AS n FROM (SELECT o_totalprice AS x FROM orders WHERE o_totalprice > 100) t"),
    (0, "SELECT SUM(q) AS s FROM (SELECT l_quantity AS q FROM (SELECT * FROM lineitem) l) m"),
    (
        0,
        "SELECT COUNT(*) AS n FROM orders o WHERE NOT EXISTS (SELECT 1 FROM orders p WHERE p.o_custkey = "
        "o.o_custkey AND p.o_orderdate < o.o_orderdate)",
    ),
    (
        0,
        "SELECT COUNT(*) AS n FROM orders o WHERE o_totalprice > (SELECT AVG(o_totalprice) FROM orders p WHERE "
        "p.o_custkey = o.o_custkey)",
    ),
    (
        0,
        "SELECT COUNT(*) AS n, AVG(c_acctbal) AS a FROM customer c WHERE (SELECT COUNT(*) FROM orders o WHERE "
        "o.o_custkey = c.c_custkey) < 3",
    ),
    (
        0,
        "SELECT COUNT(*) AS n FROM customer c WHERE c_acctbal > 400 OR EXISTS (SELECT 1 FROM orders, lineitem "
        "WHERE o_orderkey = l_orderkey AND o_custkey = c_custkey AND l_quantity > 49)",
    ),
    (
        0,
        "SELECT COUNT(*) AS n FROM orders WHERE o_orderkey NOT IN (SELECT l_orderkey FROM lineitem WHERE "
        "l_quantity > 25)",
    ),
    (0, "SELECT COUNT(*) AS n FROM orders ANTI JOIN lineitem ON l_orderkey = o_orderkey"),
    (
        0,
        "SELECT COUNT(*) AS n FROM orders SEMI JOIN (SELECT l_orderkey AS o_orderkey FROM lineitem WHERE "
        "l_quantity > 25) l USING (o_orderkey)",
    ),
    (
        0,
        "SELECT COUNT(*) AS n FROM (SELECT o_custkey, o_shippriority FROM orders UNION SELECT c_custkey, 1 FROM "
        "customer) u",
    ),
    (
        0,
        "SELECT COUNT(*) AS n FROM (SELECT o_totalprice AS x FROM orders UNION ALL SELECT c_acctbal FROM customer "
        "UNION ALL SELECT l_quantity FROM lineitem) u WHERE x > 100",
    ),
    (0, "SELECT COUNT(*) AS n FROM lineitem WHERE (l_partkey, l_suppkey) IN (SELECT p_partkey, p_size FROM part)"),
    (
        0,
        "SELECT COUNT(*) AS n FROM customer c WHERE (c_custkey, c_acctbal) IN (SELECT o_custkey, o_totalprice "
        "FROM orders) OR c_nationkey NOT IN (SELECT n_nationkey FROM nation WHERE n_nationkey IS NOT NULL AND "
        "n_name = 'FRANCE')",
    ),
    (
        0,
        "SELECT COUNT(*) AS n FROM customer JOIN (orders JOIN lineitem ON l_orderkey = o_orderkey) ON o_custkey = "
        "c_custkey WHERE l_quantity > c_nationkey * 10",
    ),
    (
        0,
        "SELECT COUNT(*) AS n FROM lineitem l WHERE l_quantity > (SELECT MAX(p_size) FROM part WHERE p_partkey = "
        "l_partkey) * 2",
    ),
]
"""Questions, each with how many keys its answer has."""


@pytest.mark.parametrize(("keys", "text"), ALIKE, ids=[text[:90] for _, text in ALIKE])
def test_the_answer_is_that_of_plain_sql(
    trade: discreet.Curator, sql: duckdb.DuckDBPyConnection, keys: int, text: str
) -> None:
    found = without_nothing(ours(trade, text), keys)
    assert found == without_nothing(theirs(sql, text), keys)
    assert found


def test_a_table_that_an_outer_join_keeps_is_shown_whole(trade: discreet.Curator) -> None:
    """Its values are the groups, those without people too; what WHERE says of it leaves out the others."""
    text = "SELECT n_name, COUNT(c_custkey) AS n FROM nation LEFT JOIN customer ON c_nationkey = n_nationkey"
    found = dict(ours(trade, f"{text} GROUP BY n_name"))
    assert len(found) == 6
    assert found["NOWHERE"] == 0
    found = dict(ours(trade, f"{text} WHERE n_regionkey = 1 GROUP BY n_name"))
    assert set(found) == {"GERMANY", "JAPAN", "NOWHERE"}
    found = dict(ours(trade, f"SELECT n_name, COUNT(c_custkey) FROM ({text.partition('FROM')[2]}) GROUP BY 1"))
    assert found["NOWHERE"] == 0


def test_null_is_nobody_s_key() -> None:
    """Rows of nobody are not loaded, and a missing key finds nothing, for EXISTS and for NOT EXISTS."""
    orders = pandas.DataFrame({"oid": [1, 2, None, 4], "who": [1, 1, 2, None], "x": [5, 5, 5, 5]}).astype("Int64")
    lines = pandas.DataFrame({"oid": [1, None, 7, 4], "q": [1, 1, 1, 1]}).astype("Int64")
    whole = {"type": "integer"}
    small = {"type": "integer", "min": 0, "max": 9}
    tables = {
        "orders": discreet.Table(
            orders, person="who", rows_per_person=5, columns={"oid": whole, "who": whole, "x": small}
        ),
        "lines": discreet.Table(
            lines, person="oid -> orders.oid", rows_per_person=5, columns={"oid": whole, "q": small}
        ),
    }
    counts = {
        "orders WHERE EXISTS (SELECT 1 FROM lines WHERE lines.oid = orders.oid)": 1,
        "orders WHERE NOT EXISTS (SELECT 1 FROM lines WHERE lines.oid = orders.oid)": 2,
        "orders WHERE oid NOT IN (SELECT oid FROM lines)": 1,
        "orders WHERE (SELECT COUNT(*) FROM lines WHERE lines.oid = orders.oid) = 0": 2,
        "(SELECT x FROM orders)": 3,
        "(SELECT oid, SUM(x) AS s FROM orders GROUP BY oid)": 3,
        "lines, orders WHERE lines.oid = orders.oid": 1,
        "lines l ANTI JOIN orders o ON o.oid = l.oid": 0,
    }
    with discreet.Curator(tables, epsilon=10**9, delta=1e-6) as one:
        for text, count in counts.items():
            assert one.ask(f"SELECT COUNT(*) AS n FROM {text}", epsilon=10**6).rows == [{"n": count}], text


REFUSED = [
    # strangers
    (
        "SELECT COUNT(*) FROM customer, orders WHERE c_acctbal = o_totalprice",
        "join",
        "add customer.c_custkey = orders.o",
    ),
    (
        "SELECT COUNT(*) FROM customer, lineitem WHERE l_quantity = c_acctbal",
        "join",
        "join orders too, by lineitem.l_o",
    ),
    (
        "SELECT COUNT(*) FROM customer c, customer d WHERE c.c_custkey = c.c_custkey",
        "join",
        "add c.c_custkey = d.c_cus",
    ),
    (
        "SELECT COUNT(*) FROM customer, orders WHERE c_custkey = o_custkey OR o_totalprice > 5",
        "join",
        "add customer.c_custkey = orders.o_custkey to WHERE",
    ),
    (
        "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders)",
        "subquery",
        "WHERE orders.o_custkey = customer",
    ),
    (
        "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE o_totalprice = c_acctbal)",
        "subquery",
        "WHERE orders.o_custkey = customer.c_custkey",
    ),
    (
        "SELECT COUNT(*) FROM orders WHERE o_totalprice IN (SELECT c_acctbal FROM customer)",
        "subquery",
        "compare persons",
    ),
    (
        "SELECT COUNT(*) FROM customer SEMI JOIN orders ON o_totalprice > c_acctbal",
        "subquery",
        "orders.o_custkey = cust",
    ),
    ("SELECT COUNT(*) FROM (SELECT c_acctbal FROM customer UNION SELECT 1 FROM orders)", "union", "write UNION ALL"),
    (
        "SELECT COUNT(*) FROM (SELECT o_totalprice AS t FROM orders) o JOIN customer ON t = c_acctbal",
        "join",
        "add the person's column to the list of o",
    ),
    # rows of nobody
    (
        "SELECT COUNT(*) FROM nation WHERE EXISTS (SELECT 1 FROM customer WHERE c_nationkey = n_nationkey)",
        "subquery",
        "",
    ),
    (
        "SELECT n_name, COUNT(*) FROM nation LEFT JOIN customer ON c_nationkey = n_nationkey GROUP BY 1",
        "join",
        "COUNT(c",
    ),
    ("SELECT n_name, SUM(1) FROM nation LEFT JOIN customer ON c_nationkey = n_nationkey GROUP BY 1", "join", "or JOIN"),
    (
        "SELECT n_name, AVG(CASE WHEN c_acctbal > 5 THEN 1 ELSE 0 END) FROM nation LEFT JOIN customer"
        " ON c_nationkey = n_nationkey GROUP BY 1",
        "join",
        "or JOIN",
    ),
    (
        "SELECT n_name, COUNT(CASE WHEN c_acctbal IS NULL THEN 1 END) FROM nation LEFT JOIN customer"
        " ON c_nationkey = n_nationkey GROUP BY 1",
        "join",
        "or JOIN",
    ),
    (
        "SELECT c_mktsegment, COUNT(c_custkey) FROM nation LEFT JOIN customer ON c_nationkey = n_nationkey GROUP BY 1",
        "join",
        "group by columns of nation alone",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT n_name FROM nation LEFT JOIN customer ON c_nationkey = n_nationkey)",
        "join",
        "exchange the tables",
    ),
    # what is not read
    ("SELECT COUNT(*) FROM customer, LATERAL (SELECT 1 FROM orders) o", "join", "write the subquery in FROM by itself"),
    ("SELECT COUNT(*) FROM customer ASOF JOIN orders ON c_custkey = o_custkey", "join", "write JOIN … ON"),
    ("SELECT COUNT(*) FROM orders ANTI JOIN lineitem", "join", "ON a.x = b.x"),
    (
        "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey"
        " AND o_totalprice + c_acctbal > 5)",
        "subquery",
        "compare columns",
    ),
    (
        "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT COUNT(*) FROM orders WHERE o_custkey = c_custkey)",
        "subquery",
        "compare a total",
    ),
    ("SELECT COUNT(*) FROM customer WHERE c_custkey > ALL (SELECT o_custkey FROM orders)", "subquery", "x = ANY"),
    (
        "SELECT COUNT(*) FROM lineitem WHERE l_partkey NOT IN (SELECT p_size FROM part) OR 1 = 2",
        "subquery",
        "IS NOT NULL",
    ),
    (
        "SELECT COUNT(*) FROM customer WHERE c_acctbal > (SELECT r_name FROM region)",
        "subquery",
        "write ORDER BY … LIMIT 1",
    ),
    (
        "SELECT COUNT(*) FROM customer WHERE c_acctbal > (SELECT r_name FROM region LIMIT 1)",
        "type",
        "compare values of one type",
    ),
    (
        "SELECT COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM customer d WHERE d.c_nationkey = c.c_nationkey)",
        "subquery",
        "WHERE d.c_custkey = c.c_custkey in the subquery; or count by what it compares: SELECT c_nationkey, COUNT(*)",
    ),
    (
        "SELECT COUNT(*) FROM customer c WHERE c_acctbal > "
        "(SELECT AVG(d.c_acctbal) FROM customer d WHERE d.c_nationkey = c.c_nationkey)",
        "subquery",
        "ask for it by itself: SELECT c_nationkey, AVG(c_acctbal) … GROUP BY c_nationkey; or compare with a total of "
        "the same person's rows: WHERE d.c_custkey = c.c_custkey in the subquery",
    ),
    # names
    ("SELECT COUNT(DISTINCT o_custkey) FROM (SELECT o_totalprice FROM orders) t", "unknown-column", "write"),
    (
        "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders o WHERE o_custkey = c_custkey) AND o.x > 1",
        "unknown",
        "write",
    ),
    ("SELECT COUNT(*) FROM orders o, orders O WHERE o.o_custkey = o.o_custkey", "names", "AS other"),
    ("SELECT COUNT(*) FROM (SELECT 1 AS a, 2 AS b FROM orders) t(x, X)", "names", "a name of its own"),
    ("SELECT COUNT(*) FROM (SELECT 1 AS a FROM orders) t(x, y)", "names", "one name"),
    (
        "SELECT COUNT(*) FROM customer c, nation n WHERE EXISTS (SELECT 1 FROM part WHERE c.nothing = p_size)",
        "unknown",
        "",
    ),
]


@pytest.mark.parametrize(("text", "code", "fix"), REFUSED, ids=[text[:90] for text, _, _ in REFUSED])
def test_what_is_refused_costs_nothing_and_says_what_to_write(
    trade: discreet.Curator, text: str, code: str, fix: str
) -> None:
    before = trade.ledger.filter(TOTAL).spent
    with pytest.raises(QuestionError) as refusal:
        trade.ask(text, epsilon=1)
    assert refusal.value.code.startswith(code)
    assert fix in (refusal.value.fix or "")
    assert refusal.value.fix
    assert trade.ledger.filter(TOTAL).spent == before


MENDED: list[tuple[str, Any]] = [
    ("SELECT COUNT(*) AS n FROM customer, orders WHERE c_acctbal > 0", "customer.c_custkey = orders.o_custkey"),
    ("SELECT COUNT(*) AS n FROM lineitem l, orders o WHERE l.l_quantity > 5", "l.l_orderkey = o.o_orderkey"),
]


@pytest.mark.parametrize(("text", "condition"), MENDED, ids=str)
def test_what_a_refusal_names_is_enough(
    trade: discreet.Curator, sql: duckdb.DuckDBPyConnection, text: str, condition: str
) -> None:
    with pytest.raises(QuestionError) as refusal:
        trade.ask(text, epsilon=1)
    assert condition in (refusal.value.fix or "")
    assert ours(trade, f"{text} AND {condition}") == theirs(sql, f"{text} AND {condition}")
