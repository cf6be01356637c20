"""What analysts write below the groups: for a fixed salt, one person's rows add a fixed vector, within what is paid."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from discreet.errors import QuestionError
from kinds import examples
from random_shops import KINDS, shops
from relation_tools import FULL, ME, Bench, Database, apart, shop, without

QUESTIONS = [
    # the person is not named
    "SELECT COUNT(*), SUM(k) FROM (SELECT k FROM orders WHERE total > 1) t",
    "SELECT SUM(qty), COUNT(cur) FROM (SELECT * FROM (SELECT qty, cur FROM lines) l) m",
    "SELECT k, COUNT(*) FROM (SELECT k FROM orders UNION ALL SELECT age FROM customers UNION ALL SELECT qty FROM lines)"
    " GROUP BY k",
    "SELECT COUNT(*) FROM (SELECT cust, k FROM orders UNION SELECT id, age FROM customers)",
    "SELECT SUM(s), COUNT(*) FROM (SELECT oid, SUM(qty) AS s FROM lines GROUP BY oid HAVING SUM(qty) > 1)",
    "SELECT SUM(n) FROM (SELECT oid, COUNT(*) AS n FROM orders GROUP BY oid)",
    "SELECT COUNT(*) FROM (SELECT o.cust FROM customers c LEFT JOIN orders o ON c.id = o.cust AND o.k = c.age)",
    # commas and brackets
    "SELECT COUNT(*), SUM(qty) FROM lines l, customers c, orders o WHERE l.oid = o.oid AND id = cust AND age > 0",
    "SELECT r.word, COUNT(*) FROM rates r, lines l, orders o WHERE r.cur = l.cur AND o.oid = l.oid GROUP BY r.word",
    "SELECT COUNT(*) FROM customers c, orders o WHERE (id = cust AND age > 1) OR (cust = id AND k = 2)",
    "SELECT COUNT(*) FROM customers c JOIN (orders o JOIN lines l ON o.oid = l.oid) ON o.cust = c.id AND l.qty > c.age",
    "SELECT COUNT(*), SUM(total) FROM orders NATURAL JOIN lines",
    "SELECT COUNT(*) FROM rates r, rates s, customers c LEFT JOIN orders o ON c.id = o.cust WHERE r.cur = s.word",
    # lookups
    "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.cust = c.id AND o.k = c.age)",
    "SELECT COUNT(*) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.cust = c.id AND o.k > 0)",
    "SELECT COUNT(*), SUM(k) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.oid = o.oid AND l.qty > 1)",
    "SELECT COUNT(*), SUM(k) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.oid = o.oid AND l.qty > 1)",
    "SELECT COUNT(*) FROM lines l WHERE EXISTS (SELECT 1 FROM orders o WHERE l.oid = o.oid AND o.k < l.qty)",
    "SELECT COUNT(*) FROM lines l WHERE NOT EXISTS (SELECT 1 FROM lines m WHERE l.oid = m.oid AND m.qty <> l.qty)",
    "SELECT COUNT(*) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM orders p WHERE p.cust = o.cust AND p.f > o.total)",
    "SELECT COUNT(*) FROM orders WHERE oid IN (SELECT oid FROM lines GROUP BY oid HAVING SUM(qty) > 2)",
    "SELECT COUNT(*) FROM orders WHERE oid NOT IN (SELECT oid FROM lines WHERE qty > 2)",
    "SELECT COUNT(*) FROM orders o WHERE (cust, k) IN (SELECT id, age FROM customers) OR o.total > 5",
    "SELECT COUNT(*) FROM orders o WHERE k IN (SELECT age FROM customers c WHERE c.id = o.cust)",
    "SELECT COUNT(*) FROM lines l WHERE (cur, qty) IN (SELECT cur, rate FROM rates)",
    "SELECT COUNT(*) FROM lines l WHERE EXISTS (SELECT 1 FROM rates r WHERE r.cur = l.cur AND r.rate < l.qty)",
    "SELECT COUNT(*) FROM customers c WHERE age > 3 OR NOT EXISTS (SELECT 1 FROM orders o WHERE o.cust = c.id)",
    "SELECT COUNT(*) FROM customers c WHERE 1 < (SELECT COUNT(*) FROM orders o WHERE o.cust = c.id AND k > 0)",
    "SELECT COUNT(*) FROM orders o WHERE total >= (SELECT AVG(p.total) + MIN(p.k) FROM orders p WHERE p.cust = o.cust)",
    "SELECT COUNT(*) FROM lines l WHERE qty < (SELECT MAX(rate) FROM rates r WHERE r.cur = l.cur)",
    "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM lines l, orders o WHERE l.oid = o.oid AND"
    " o.cust = c.id AND EXISTS (SELECT 1 FROM lines m WHERE m.oid = o.oid AND m.qty <> l.qty))",
    "SELECT COUNT(*) FROM orders o SEMI JOIN lines l USING (oid) ANTI JOIN customers c ON c.id = o.cust AND c.age > k",
    # public tables that are kept
    "SELECT r.word, COUNT(l.qty), SUM(l.qty) FROM rates r LEFT JOIN lines l ON l.cur = r.cur GROUP BY r.word",
    "SELECT r.cur, r.word, COUNT(o.k) FROM lines l RIGHT JOIN rates r ON l.cur = r.cur AND r.rate > l.qty"
    " LEFT JOIN orders o ON o.oid = l.oid WHERE r.word <> 'y' GROUP BY r.word, r.cur",
    "SELECT r.cur, COUNT(s.age) FROM (SELECT DISTINCT cur FROM rates) r LEFT JOIN solo s ON r.cur = s.cur AND s.age > 0"
    " GROUP BY r.cur",
]


@pytest.mark.parametrize("text", QUESTIONS, ids=[text[:80] for text in QUESTIONS])
def test_one_person_adds_a_fixed_vector_within_the_sensitivity(several: Bench, text: str) -> None:
    """What everybody adds is exactly what the others add and what the person adds alone, on random databases with every
    awkward value: keys of two persons, persons without rows, NULL, empty tables."""
    (person, persons), (order, orders) = KINDS["whole"], KINDS["word"]
    known = shop(person, order)

    @settings(
        max_examples=examples(2),
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(database=shops(persons, orders), place=st.sampled_from([0, 0, 1, 2, 3]))
    def holds(database: Database, place: int) -> None:
        others, mine = without(database, persons[place])
        suffixes = [several.load(known, one) for one in (database, others, mine)]
        try:
            question = several.read(text, known, suffixes[0])
        except QuestionError:  # the public table lists no group
            assert not database["rates"] or "r.word <> 'y'" in text
            return
        apart(several, question, suffixes, "1")

    holds()


def test_one_person_who_is_everywhere(several: Bench) -> None:
    """The same with one person who has the largest numbers, and most of these questions count somebody."""
    (person, _), (order, _) = KINDS["whole"], KINDS["word"]
    known = shop(person, order)
    others, mine = without(FULL, ME)
    suffixes = [several.load(known, one) for one in (FULL, others, mine)]
    counted = 0
    for text in QUESTIONS:
        counted += apart(several, several.read(text, known, suffixes[0]), suffixes, "1")
    assert counted > len(QUESTIONS) * 2 // 3
