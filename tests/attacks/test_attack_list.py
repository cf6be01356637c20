"""An attacker's questions over several tables, with the target among the rows and without: only noise differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

import discreet
from discreet.audit.maker import Maker
from discreet.ledger import TOTAL
from kinds import some
from shop_tools import KNOWN, curator

LARGE = 2**63 - 1
TARGET = 7
TARGETS: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "extremes": {
        "customers": [{"id": TARGET, "city": "it's", "age": LARGE, "h": "%_\\" * 50}],
        "orders": [
            {"oid": f"t{n}", "cust": TARGET, "st": "s", "total": 1e308, "k": -LARGE - 1, "big": big, "f": f}
            for n, (big, f) in enumerate([(-LARGE - 1, 1e308), (LARGE, -1e308), (LARGE, float("inf")), (0, 0.0)] * 5)
        ],
        "lines": [{"oid": f"t{n}", "qty": LARGE, "cur": "U"} for n in range(20)],
        "solo": [{"cur": "\U0001f642", "age": -LARGE - 1, "w": float("-inf")}],
    },
    "nothing": {
        "customers": [{"id": TARGET, "h": ""}],
        "orders": [{"cust": TARGET}, {"cust": TARGET, "oid": "o1"}, {"cust": TARGET, "f": float("nan")}],
        "lines": [{}],
        "solo": [{"w": float("nan")}],
    },
    "a long text": {
        "customers": [{"id": TARGET, "h": "a" * 200_000, "city": ""}],
        "orders": [{"cust": TARGET, "oid": "b" * 200_000, "st": "'" * 1000, "big": 2**53 + 1, "f": 5e-324}],
    },
}
B = "contribution_bounds_per_group"
QUESTIONS = [
    # the engine folds what it knows of a column: all NULL, none NULL
    "SELECT COUNT(*) FROM customers WHERE CASE WHEN h IS NOT NULL THEN 'x' END <> 'x'",
    "SELECT COUNT(CASE WHEN CASE WHEN st IS NULL THEN 'x' END = 'x' THEN 1 END) FROM orders",
    "SELECT COUNT(*) FROM orders WHERE CASE WHEN big IS NULL THEN 'x' WHEN f IS NULL THEN 'y' END = 'x'",
    # sums, products and signs beyond their types
    f"SELECT SUM(s, {B} => (-1, 1)) FROM (SELECT cust, SUM(big) AS s FROM orders GROUP BY cust)",
    f"SELECT SUM(s, {B} => (-1, 1)) FROM (SELECT cust, SUM(f) AS s, AVG(f * f) AS t FROM orders GROUP BY cust)",
    f"SELECT SUM(-s * s, {B} => (-1, 1)) FROM (SELECT cust, SUM(big * big) AS s FROM orders GROUP BY cust)",
    f"SELECT SUM(-big, {B} => (0, 9)), COUNT(ABS(big)) FROM orders WHERE -(-(big)) <> 3 AND ABS(-big) >= 0",
    "SELECT COUNT(x) FROM (SELECT cust, big * big * big AS x, big + 1 AS y, -big AS z FROM orders) WHERE y > z"
    " OR x > y",
    "SELECT x, COUNT(*) FROM (SELECT cust, SUM(big) AS x FROM orders GROUP BY cust) GROUP BY x",
    "SELECT big + 1 AS x, COUNT(*) FROM orders GROUP BY x",
    # division by zero, also in a public table
    f"SELECT SUM(1 / (qty - 1), {B} => (0, 2)) FROM lines WHERE 1 / qty IS NULL OR qty / 0 IS NULL",
    "SELECT COUNT(*) FROM lines l JOIN rates r ON l.qty / r.rate = 1 OR r.rate / l.qty > 0",
    # totals of nothing and of what is no number
    "SELECT COUNT(a), COUNT(b), COUNT(c), COUNT(d) FROM (SELECT cust, MIN(f) AS a, MAX(f * f - f * f) AS b,"
    " AVG(f) AS c,"
    " MAX(st) AS d FROM orders WHERE st IS NULL OR f > 0 GROUP BY cust)",
    "SELECT m, COUNT(*) FROM (SELECT cust, MAX(st) AS m FROM orders GROUP BY cust HAVING MIN(f) < MAX(f)) GROUP BY m",
    # lookups and long lists
    "SELECT COUNT(*) FROM customers WHERE id NOT IN (SELECT cust FROM orders WHERE big / 0 IS NULL)",
    "SELECT COUNT(*) FROM lines WHERE qty IN (SELECT rate FROM rates) AND cur NOT IN (SELECT word FROM rates)",
    f"SELECT COUNT(*) FROM orders WHERE big IN ({', '.join(map(str, range(1000)))}, 9223372036854775808)",
    f"SELECT COUNT(*) FROM customers WHERE h LIKE '{'%a_' * 200}' OR h LIKE '{'%' * 500}b'",
    # joins
    "SELECT COUNT(*), SUM(l.qty) FROM customers c LEFT JOIN orders o ON c.id = o.cust AND o.big + c.age > 0"
    " JOIN lines l ON l.oid = o.oid",
    "SELECT COUNT(*) FROM customers c FULL JOIN orders o ON c.id = o.cust AND c.age / o.k > 0",
    "SELECT c.city, COUNT(*) FROM customers c JOIN lines l ON c.age = l.qty GROUP BY c.city ORDER BY c.city DESC",
    "SELECT cur, COUNT(*) FROM (SELECT DISTINCT cur FROM rates) LEFT JOIN lines USING (cur) GROUP BY cur",
    "SELECT st, COUNT(*) FROM (SELECT cust, st FROM orders UNION ALL SELECT id, h FROM customers) GROUP BY st",
    "SELECT COUNT(*), AVG(x) FROM (SELECT cust, k AS x FROM orders UNION ALL SELECT id, total FROM customers"
    " JOIN orders ON id = cust)",
    "SELECT COUNT(*) FROM solo s LEFT JOIN (SELECT cur, MAX(rate) AS m FROM rates GROUP BY cur) r ON s.cur = r.cur",
    # lookups of the same person's rows
    "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.cust = c.id AND o.big > c.age)",
    "SELECT COUNT(*) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.oid = o.oid AND qty / 0 > 1)",
    "SELECT COUNT(*) FROM orders o WHERE o.big < (SELECT SUM(p.big) FROM orders p WHERE p.cust = o.cust AND p.k > 0)",
    "SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM orders p WHERE p.cust = o.cust AND p.f <> o.f) OR k > 1",
    "SELECT COUNT(*) FROM lines l, orders o, customers c WHERE l.oid = o.oid AND c.id = o.cust AND o.f / l.qty > c.age",
    "SELECT r.word, COUNT(l.qty) FROM rates r LEFT JOIN lines l ON l.cur = r.cur AND l.qty / r.rate > 0 GROUP BY 1",
    # refused
    "SELECT COUNT(*) FROM orders WHERE f > (SELECT MAX(f) FROM orders)",
    "SELECT COUNT(*) FROM (SELECT cust, error(st) AS e FROM orders)",
    "SELECT id, COUNT(*) FROM customers GROUP BY id",
    *(Maker(KNOWN, seed).question() for seed in range(12)),
]


def asked(one: discreet.Curator, question: str) -> tuple[Any, ...]:
    """Everything about an answer that must not depend on anybody."""
    before = one.ledger.filter(TOTAL).spent
    try:
        release = one.ask(question, epsilon=1)
    except discreet.Error as error:
        outcome: tuple[Any, ...] = (type(error), error.to_dict(), str(error), error.args)
    else:
        content = release.to_dict()
        if any(
            "bounds found" in bound for bound in content["bounds"]
        ):  # they are noisy, and so is what follows of them
            noisy = r"\[.*\]|steps of [-+.e\d]+|(?<=off by at most )\S+(?= ranks)|(?<=ranks stay )\S+"
            noisy += r"|(?<=COUNTIF\().*(?=\) AS outside)"  # the same bounds, as a question
            content["bounds"] = [re.sub(noisy, "", bound) for bound in content["bounds"]]
            content["mechanisms"] = [one["columns"] for one in content["mechanisms"]]
        outcome = tuple(content[name] for name in ("columns", "types", "cost", "mechanisms", "bounds", "unit"))
        keys = [name for name in release.columns if name in content["types"]]
        shown = [tuple(row[key] for key in keys) for row in release.rows]
        if any("too few persons" in bound for bound in release.bounds):
            assert len(set(shown)) == len(shown)
            if "ORDER BY" not in question:
                assert shown == sorted(shown)
        else:
            outcome += (sorted(shown) if "ORDER BY" in question else shown,)
        outcome += (
            # the step of a sum whose bounds are found follows from noise, and whole steps make whole numbers
            [
                {name: float if type(value) is int else type(value) for name, value in row.items()}
                for row in release.rows
            ][:1]
            if not keys
            else (),
        )
    return outcome, before, one.ledger.filter(TOTAL).spent


@pytest.fixture(scope="module")
def expected() -> Iterator[list[tuple[Any, ...]]]:
    """What everybody else's rows answer."""
    with curator({}) as one:
        yield [asked(one, question) for question in QUESTIONS]


@pytest.mark.parametrize("target", some(TARGETS.values(), pytest.mark.power), ids=TARGETS)
def test_one_person_changes_no_error_no_charge_and_no_shape(
    expected: list[tuple[Any, ...]], target: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """Every question that is accepted is answered, whatever the target's rows hold."""
    with curator(target) as one:
        for question, other in zip(QUESTIONS, expected, strict=True):
            found = asked(one, question)
            assert found == other, question
            assert found[0][0] is not discreet.EngineError, question
            if found[0][0] is discreet.QuestionError:
                assert found[1] == found[2], question


EXPLOSIONS = {
    "persons": "SELECT COUNT(*) FROM orders a JOIN orders b ON a.cust = b.cust AND a.big <> b.big"
    " JOIN orders c ON b.cust = c.cust AND b.big <> c.big",
    "a public table": "SELECT COUNT(*) FROM (SELECT a.cust FROM orders a "
    + " ".join(f"JOIN rates r{n} ON TRUE" for n in range(14))
    + f" WHERE a.cust = {TARGET})",
    "pairs": "SELECT COUNT(*) FROM orders a JOIN orders b ON a.cust = b.cust",
}


@pytest.mark.parametrize("question", some(EXPLOSIONS.values(), pytest.mark.power, quick=2), ids=EXPLOSIONS)
def test_questions_in_which_rows_of_one_person_multiply_are_refused_before_they_cost(question: str) -> None:
    """Ten thousand rows that would meet each other, where the owner declared that so many count: refused with the same
    words whether they are there or not, with nothing spent; and the tables answer on."""
    rows = [{"cust": TARGET, "oid": str(n), "st": "s", "total": 1.0, "k": 1, "big": n, "f": 0.5} for n in range(10_000)]
    refusals = set()
    for target in ({}, {"orders": rows}):
        with curator(target, 20_000) as one:
            with pytest.raises(discreet.QuestionError) as refusal:
                one.ask(question, epsilon=1)
            refusals.add((refusal.value.code, str(refusal.value)))
            assert one.ledger.filter(TOTAL).spent.pure == 0
            assert one.ask("SELECT COUNT(*) AS n FROM orders", epsilon=20).columns == ["n"]
    ((code, words),) = refusals
    assert code == "work"
    assert "of one person" in words
