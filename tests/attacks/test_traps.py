"""Questions that were written to make one person count for more than is paid for, or to be told by a failure."""

from __future__ import annotations

import pytest

from discreet.catalog import declare
from discreet.errors import DeclarationError, QuestionError
from discreet.sql import lower
from discreet.trusted.ring_a.expressions import ColumnOf
from discreet.trusted.ring_a.sensitivity import sensitivity
from discreet.trusted.ring_a.table import Column, Type
from discreet.trusted.ring_b.relations import Base, Computed, RelationShape, own_name
from relation_tools import FULL, ME, WHOLE, WORD, Bench, apart, shop, without

KNOWN = shop(WHOLE, WORD)


@pytest.fixture(scope="module")
def three(several: Bench) -> tuple[str, str, str]:
    """The database, the same without the one person, and with nobody else."""
    others, mine = without(FULL, ME)
    return several.load(KNOWN, FULL), several.load(KNOWN, others), several.load(KNOWN, mine)


PERSON = "(SELECT cust, st, total, k FROM orders)"
SOUND = {
    "one row each, on both sides, that do not meet": (
        "SELECT COUNT(*) FROM customers c FULL JOIN customers d ON c.id = d.id AND c.age > 1000"
    ),
    "one row each, and one of them twice": (
        "SELECT COUNT(*), COUNT(d.age), SUM(c.age) FROM customers c FULL JOIN"
        " (SELECT cust, MAX(total) AS age FROM orders GROUP BY cust) d ON c.id = d.cust AND c.age > d.age"
    ),
    "a public key that is compared with itself": (
        "SELECT COUNT(*) FROM customers c JOIN (SELECT DISTINCT cur FROM rates) r ON r.cur = COALESCE(r.cur, c.h)"
    ),
    "a public integer that is compared in floating point": (
        'SELECT COUNT(*) FROM customers c JOIN (SELECT DISTINCT "a.b" AS n FROM rates) r'
        " ON r.n = c.age * 0 + 9007199254740992"
    ),
    "a public key that is compared with one of two": (
        "SELECT COUNT(*) FROM customers c JOIN (SELECT DISTINCT cur, rate FROM rates) r ON r.rate = c.age"
    ),
    "two names that dots make one": (
        'SELECT COUNT(*), SUM(n) FROM (SELECT "a"."b.c" AS p, COUNT(*) AS n FROM (SELECT cust AS "b.c" FROM'
        ' orders) AS "a"'
        ' JOIN (SELECT cust, k AS "c" FROM orders) AS "a.b" ON "a"."b.c" = "a.b".cust GROUP BY "a"."b.c")'
    ),
    "two names that quotes make one": (
        'SELECT COUNT(*) FROM (SELECT """a"".b"."c" AS p FROM (SELECT cust AS "c" FROM orders) AS """a"".b"'
        ' JOIN (SELECT cust, k AS "b.c" FROM orders) AS "a" ON """a"".b"."c" = "a".cust GROUP BY """a"".b"."c")'
    ),
    "a column with the name of a computed key": (
        f'SELECT COUNT(*) FROM (SELECT cust, k AS "key 0", st AS "key 1" FROM {PERSON}) WHERE "key 0" = 1'
        " GROUP BY CASE WHEN cust > 1 THEN 'x' ELSE 'y' END, \"key 1\""
    ),
    "a column with the name of a total": (
        'SELECT SUM(n) FROM (SELECT cust, "total 0" AS t, COUNT(*) AS n FROM (SELECT cust, k AS "total 0" FROM orders)'
        ' GROUP BY cust, "total 0")'
    ),
    "a group key made anew after bounding": (
        "SELECT k2, COUNT(*) FROM (SELECT cust, k AS k2, COUNT(*) AS n FROM orders GROUP BY cust, k) GROUP BY k2"
    ),
    "a join that multiplies rows": "SELECT COUNT(*), SUM(a.total) FROM orders a JOIN orders b ON a.cust = b.cust",
    "a public join that multiplies rows": "SELECT r.word, COUNT(*) FROM lines l JOIN rates r ON TRUE GROUP BY r.word",
    "a public table first": "SELECT COUNT(*) FROM rates r, customers c",
    "the public side kept": "SELECT r.cur, COUNT(*) FROM rates r RIGHT JOIN lines l ON r.cur = l.cur GROUP BY r.cur",
    "a person by another name": (
        "SELECT COUNT(DISTINCT x) FROM (SELECT id AS x FROM customers UNION ALL SELECT cust FROM orders)"
    ),
    "the person as a text key": (
        "SELECT CASE WHEN cust = 1 THEN 'one' ELSE 'other' END AS g, COUNT(*) FROM orders GROUP BY g"
    ),
    "the person as a number key": "SELECT cust + 0 AS g, COUNT(*), SUM(total) FROM orders GROUP BY cust + 0",
    "the person merged of two": (
        "SELECT cust, COUNT(*) FROM (SELECT id AS cust FROM customers) c FULL JOIN orders o USING (cust) GROUP BY cust"
    ),
    "a name of WITH that hides a table": (
        "WITH orders AS (SELECT cust, total FROM orders WHERE k = 1) SELECT COUNT(*) FROM orders"
    ),
    "a name of WITH, ten times": (
        "WITH t AS (SELECT cust, MAX(total) AS m FROM orders GROUP BY cust) SELECT COUNT(*), SUM(a0.m) FROM t a0 "
        + " ".join(f"JOIN t a{n} ON a0.cust = a{n}.cust" for n in range(1, 10))
    ),
    "nobody in NOT IN": "SELECT COUNT(*) FROM customers WHERE id NOT IN (SELECT cust FROM orders WHERE FALSE)",
    "NULL in a public NOT IN": "SELECT COUNT(*) FROM lines WHERE cur NOT IN (SELECT cur FROM rates)",
    "NULL looked up": "SELECT COUNT(*) FROM lines WHERE NULL IN (SELECT cur FROM rates)",
    "groups of a public table": (
        "SELECT r.cur, COUNT(*) FROM lines l RIGHT JOIN (SELECT cur FROM rates GROUP BY cur) r ON l.cur = r.cur"
        " GROUP BY r.cur"
    ),
    "groups of another type": (
        "SELECT r.rate, COUNT(*) FROM lines l RIGHT JOIN (SELECT DISTINCT rate FROM rates) r ON l.qty = r.rate"
        " GROUP BY r.rate"
    ),
    "sums that overflow": "SELECT COUNT(s) FROM (SELECT cust, SUM(big) AS s FROM orders GROUP BY cust)",
    "sums that overflow twice": (
        "SELECT SUM(-s * s, contribution_bounds_per_group => (-1, 1)) FROM (SELECT cust, SUM(big) AS s, SUM(f) AS t"
        " FROM orders GROUP BY cust HAVING SUM(f * f) > 0 OR -SUM(big) > 0)"
    ),
    "the smallest of nothing": (
        "SELECT COUNT(m), SUM(m, contribution_bounds_per_group => (0, 1)) FROM (SELECT cust, MAX(f * f - f * f) AS m,"
        " MIN(f / 0) AS o, AVG(COALESCE(NULL, f)) AS a FROM orders GROUP BY cust)"
    ),
    "what is no number": (
        "SELECT COUNT(x), SUM(x, contribution_bounds_per_group => (0, 9)) FROM (SELECT cust, f * f - f * f AS x"
        " FROM orders)"
    ),
    "an integer beyond integers": "SELECT x, COUNT(*) FROM (SELECT cust, big * big AS x FROM orders) GROUP BY x",
    "a whole person in a group by NULL": (
        "SELECT COUNT(*) FROM (SELECT cust, COALESCE(NULL, st) AS g FROM orders) GROUP BY g"
    ),
    "a subquery that drops the person": "SELECT COUNT(*) FROM (SELECT total FROM orders)",
    "a computed person": "SELECT COUNT(*) FROM (SELECT cust * 1 AS cust FROM orders)",
    "a person of another's": "SELECT COUNT(*) FROM (SELECT big AS cust FROM orders)",
    "a person that an outer join may lose": (
        "SELECT COUNT(*) FROM (SELECT o.cust FROM customers c LEFT JOIN orders o ON c.id = o.cust)"
    ),
    "joins in brackets": "SELECT COUNT(*) FROM (orders a JOIN orders b ON a.cust = b.cust)",
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_one_person_counts_for_no_more_than_is_paid(several: Bench, three: tuple[str, str, str], text: str) -> None:
    """For three salts: everybody's vectors are the others' plus the person's own, and those are within the bounds."""
    question = several.read(text, KNOWN, three[0])
    for salt in "123":
        apart(several, question, three, salt)


def test_what_may_be_one_row_a_person_still_is(several: Bench, three: tuple[str, str, str]) -> None:
    """The cheap plan is kept where it holds: a key that is one row of a public table, persons who are grouped."""
    for text in (
        "SELECT COUNT(*) FROM customers c JOIN (SELECT cur, MAX(rate) AS m FROM rates GROUP BY cur) r ON r.cur = c.h",
        "SELECT COUNT(*) FROM customers c LEFT JOIN (SELECT DISTINCT cur FROM rates WHERE rate > 1) r ON c.h = r.cur",
        "SELECT COUNT(*) FROM customers c, (SELECT COUNT(*) AS n FROM rates) r",
        "SELECT COUNT(*) FROM solo s LEFT JOIN (SELECT DISTINCT cur FROM rates) r ON s.cur = r.cur",
        "SELECT COUNT(*) FROM customers c JOIN (SELECT cust, SUM(total) AS s FROM orders GROUP BY cust) o ON"
        " c.id = o.cust",
    ):
        question = several.read(text, KNOWN, three[0])
        assert question.table.one_row_per_person
        assert sensitivity(question.plan.root, question.plan.parts[0]).l1 == 1
        if "solo" not in text:
            apart(several, question, three, "1")


REFUSED = {
    "a correlated subquery of strangers": (
        "SELECT COUNT(*) FROM customers c WHERE age IN (SELECT k FROM orders o WHERE o.k = c.age)"
    ),
    "a subquery in an expression": "SELECT COUNT(*) FROM customers WHERE EXISTS (SELECT 1 FROM orders)",
    "a person of another's, joined by it": (
        "SELECT COUNT(*) FROM (SELECT big AS cust FROM orders) o JOIN customers c ON c.id = o.cust"
    ),
    "a hidden person, grouped": "SELECT COUNT(*) FROM (SELECT k, COUNT(*) FROM (SELECT k FROM orders) GROUP BY k)",
    "values of strangers": "SELECT COUNT(*) FROM (SELECT DISTINCT k FROM orders)",
    "a union of strangers": "SELECT COUNT(*) FROM (SELECT k FROM orders UNION SELECT age FROM customers)",
    "persons joined by another key": "SELECT COUNT(*) FROM orders a JOIN orders b ON a.oid = b.oid",
    "persons joined by OR": "SELECT COUNT(*) FROM orders a JOIN orders b ON a.cust = b.cust OR TRUE",
    "persons joined by less": "SELECT COUNT(*) FROM orders a JOIN orders b ON a.cust < b.cust",
    "persons joined by chance": "SELECT COUNT(*) FROM orders a CROSS JOIN orders b",
    "the public side kept": "SELECT COUNT(*) FROM rates r LEFT JOIN customers c ON TRUE",
    "rows without a person repeated": "SELECT COUNT(*) FROM solo s JOIN rates r ON s.cur = r.cur",
    "rows without a person, by themselves": (
        "SELECT COUNT(*) FROM solo s JOIN (SELECT DISTINCT cur FROM rates) r ON r.cur = r.cur"
    ),
    "rows without a person stacked": "SELECT COUNT(*) FROM (SELECT age FROM solo UNION ALL SELECT age FROM solo)",
    "rows without a person, twice": "SELECT COUNT(*) FROM solo a JOIN solo b ON a.age = b.age",
    "a name of two tables": "SELECT COUNT(*) FROM customers c JOIN customers d ON c.id = d.id WHERE age = 1",
    "one alias twice": 'SELECT COUNT(*) FROM orders a JOIN orders "A" ON a.cust = "A".cust',
    "a name of WITH, twenty times": (
        "WITH t AS (SELECT cust FROM orders) SELECT COUNT(*) FROM t a0 "
        + " ".join(f"JOIN t a{n} ON a0.cust = a{n}.cust" for n in range(1, 20))
    ),
    "names of WITH that double": (
        "WITH t0 AS (SELECT cust FROM orders), "
        + ", ".join(f"t{n} AS (SELECT a.cust FROM t{n - 1} a JOIN t{n - 1} b ON a.cust = b.cust)" for n in range(1, 20))
        + " SELECT COUNT(*) FROM t19"
    ),
    "an aggregate of an aggregate": "SELECT SUM(COUNT(*)) FROM orders",
    "an aggregate of an aggregate below": (
        "SELECT SUM(n) FROM (SELECT cust, SUM(COUNT(*)) AS n FROM orders GROUP BY cust)"
    ),
    "HAVING of what is not asked for": "SELECT k, COUNT(*) FROM orders GROUP BY k HAVING SUM(total) > 1",
    "ORDER BY an expression": "SELECT k, COUNT(*) AS n FROM orders GROUP BY k ORDER BY n + k",
    "DISTINCT outside": "SELECT DISTINCT k, COUNT(*) FROM orders GROUP BY k",
    "LIMIT inside": "SELECT COUNT(*) FROM (SELECT cust FROM orders LIMIT 1)",
    "LIMIT of a text": "SELECT COUNT(*) FROM orders LIMIT '²'",
    "LIMIT of a fraction": "SELECT COUNT(*) FROM orders LIMIT 1.5",
    "a window": "SELECT COUNT(*) FROM (SELECT cust, ROW_NUMBER() OVER (PARTITION BY st) AS n FROM orders)",
    "the person as a key": "SELECT o.cust, COUNT(*) FROM customers c JOIN orders o ON c.id = o.cust GROUP BY o.cust",
    "no group in public": (
        "SELECT COUNT(*) FROM lines l RIGHT JOIN (SELECT DISTINCT cur FROM rates WHERE FALSE) r ON l.cur = r.cur"
        " GROUP BY r.cur"
    ),
    "a natural join": "SELECT COUNT(*) FROM orders NATURAL JOIN customers",
    "a semi join of strangers": "SELECT COUNT(*) FROM customers c SEMI JOIN orders o ON c.age = o.k",
    "an ASOF join": "SELECT COUNT(*) FROM orders a ASOF JOIN orders b ON a.cust = b.cust AND a.k >= b.k",
    "a lateral join": "SELECT COUNT(*) FROM customers c, LATERAL (SELECT cust FROM orders WHERE cust = c.id) o",
    "a table function": "SELECT COUNT(*) FROM read_csv('x.csv')",
    "a schema": "SELECT COUNT(*) FROM shop.orders",
    "a union of other columns": "SELECT COUNT(*) FROM (SELECT cust, k FROM orders UNION ALL SELECT cust FROM orders)",
    "an intersection of strangers": "SELECT COUNT(*) FROM (SELECT k FROM orders INTERSECT SELECT age FROM customers)",
    "a union by name": "SELECT COUNT(*) FROM (SELECT cust FROM orders UNION ALL BY NAME SELECT cust FROM orders)",
    "a pivot": "SELECT COUNT(*) FROM orders PIVOT (SUM(total) FOR k IN (1, 2))",
    "a sample": "SELECT COUNT(*) FROM (SELECT cust FROM orders TABLESAMPLE (10 PERCENT))",
}


@pytest.mark.parametrize(
    "key",
    ["CAST(cust AS TEXT)", "cust + 0", "cust * 1.0", "COALESCE(cust, 0)", "ABS(cust)", "CASE WHEN TRUE THEN cust END"],
)
def test_groups_of_one_person_are_refused_or_found_by_the_threshold(
    several: Bench, three: tuple[str, str, str], key: str
) -> None:
    """A person who is made a key by an expression is a private key, shown only where many persons share it."""
    try:
        question = several.read(f"SELECT {key} AS g, COUNT(*) FROM orders GROUP BY g", KNOWN, three[0])
    except QuestionError:
        return
    assert question.plan.private
    assert any(part.kind == "keys" for part in question.plan.parts)
    for salt in "123":
        apart(several, question, three, salt)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_says_what_to_write(several: Bench, three: tuple[str, str, str], text: str) -> None:
    with pytest.raises(QuestionError) as refusal:
        several.read(text, KNOWN, three[0])
    assert refusal.value.code
    assert refusal.value.where
    assert refusal.value.fix


def test_no_name_that_can_be_written_is_one_of_ours() -> None:
    """In quotes of either kind, as a column, an alias of a column or of a table, in WITH; and two columns of one name
    are no relation, however it came to be."""
    known = shop(WHOLE, WORD)
    ours = own_name("computed", 0)
    for text in (
        f'SELECT COUNT(*) FROM (SELECT cust, k AS "{ours}" FROM orders)',
        f"SELECT COUNT(*) FROM (SELECT cust, k AS `{ours}` FROM orders)",
        f'SELECT COUNT(*) AS "{ours}" FROM orders',
        f'SELECT COUNT(*) FROM orders AS "{ours}" JOIN customers ON id = cust',
        f'WITH "{ours}" AS (SELECT cust FROM orders) SELECT COUNT(*) FROM "{ours}"',
        f'SELECT COUNT(DISTINCT "{ours}") FROM (SELECT cust, k + 1 FROM orders)',
        f'SELECT "{ours}", COUNT(*) FROM orders GROUP BY k + 1',
    ):
        with pytest.raises(QuestionError, match="control characters"):
            lower(text, known)
    with pytest.raises(DeclarationError):
        declare({"budget": {"epsilon": 1}, "tables": {"t": {"source": "x.csv", "columns": {ours: WORD}}}})
    whole = Base.of(known.tables["orders"])
    with pytest.raises(ValueError, match="must have different names"):
        Computed(whole, (("a", ColumnOf("k", Type.INTEGER)), ("a", ColumnOf("st", Type.TEXT))))
    with pytest.raises(ValueError, match="must have different names"):
        RelationShape((Column("a", Type.TEXT), Column("a", Type.INTEGER)), True)
