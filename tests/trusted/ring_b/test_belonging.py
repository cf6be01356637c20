"""Keys that belong to the person: how many groups a person touches, by the rule, and in the engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from discreet.trusted.ring_a.nodes import Clip, LimitGroups
from discreet.trusted.ring_a.sensitivity import reach, sensitivity
from relation_tools import WHOLE, WORD, Bench, Database, apart, shop, without

SHOP = shop(WHOLE, WORD)
KNOWN = replace(
    SHOP,
    tables={
        name: table
        if table.public or table.one_row_per_person
        else replace(table, rows_per_person=9, groups_per_person=9)
        for name, table in SHOP.tables.items()
    },
)
"""Limits that bind nowhere: what is not known to belong to the person is planned for nine groups."""
PERSONS = (1, 2, 3, 4)
FULL: Database = {
    # 1 and 2 have a row, 3 one without values, 4 none; of orders 1 has several, on both sides of every condition
    "customers": [
        {"id": 1, "city": "x", "age": 5, "h": "x"},
        {"id": 2, "city": "ü", "age": 7, "h": "ü"},
        {"id": 3, "city": None, "age": None, "h": None},
    ],
    "orders": [
        {"oid": f"{person}{n}", "cust": person, "st": "abc"[n % 3], "total": total, "k": n, "big": n}
        for person in PERSONS
        for n, total in enumerate([1.0, 9.0, None, 8.0][: {1: 4, 2: 1}.get(person, 3)])
    ],
    "lines": [{"oid": f"{person}{n}", "qty": n, "cur": "xü"[n % 2]} for person in PERSONS for n in range(3)],
    "solo": [],
    "rates": [
        {"cur": cur, "rate": rate, "a.b": 1, "word": word}
        for cur, rate, word in [("x", 1.0, "E"), ("x", 2.0, "U"), ("ü", 3.0, "E"), (None, 4.0, "N")]
    ],
}
ONE = "customers c JOIN orders o ON c.id = o.cust"
SOME = "orders o LEFT JOIN customers c ON c.id = o.cust AND o.total > 5"
WORDS = "(SELECT cur, MAX(word) AS w FROM rates GROUP BY cur) r"
TOTALS = "(SELECT cust, MAX(total) AS m, COUNT(*) AS n FROM orders GROUP BY cust) t"

OWN: Mapping[str, tuple[str, int]] = {
    "a column of the person's only row": (f"c.h AS g FROM {ONE}", 1),
    "kept by an outer join": ("c.h AS g FROM customers c LEFT JOIN orders o ON c.id = o.cust AND o.total > 5", 1),
    "missing for all rows of a person or for none": (
        "c.h AS g FROM orders o LEFT JOIN customers c ON c.id = o.cust",
        1,
    ),
    "missing by what is the person's own": (
        "c.h AS g FROM orders o LEFT JOIN customers c ON c.id = o.cust AND c.age > 5 AND o.cust < 3",
        1,
    ),
    "missing for some rows": (f"c.h AS g FROM {SOME}", 2),
    "missing for some rows, on the left": (
        "c.h AS g FROM customers c RIGHT JOIN orders o ON c.id = o.cust AND o.total > 5",
        2,
    ),
    "missing on either side": ("c.h AS g FROM orders o FULL JOIN customers c ON c.id = o.cust AND o.total > 5", 2),
    "missing, with a value instead": (f"COALESCE(c.h, 'none') AS g FROM {SOME}", 2),
    "two columns missing together": (f"CONCAT(c.h, c.city) AS g FROM {SOME}", 2),
    "two tables, each missing for some rows": (
        f"c.h AS g, d.age + 1 AS g2 FROM {SOME} LEFT JOIN customers d ON d.id = o.cust AND o.k > 1",
        4,
    ),
    "two tables, one missing": (f"c.h AS g, d.h AS g2 FROM {SOME} JOIN customers d ON d.id = o.cust", 2),
    "missing by another that is missing": (
        f"d.h AS g FROM {SOME} LEFT JOIN customers d ON d.id = o.cust AND c.age = d.age",
        2,
    ),
    "missing on either side, of what misses some rows": (
        f"COALESCE(c.h, 'none') AS g, o.cust AS g2 FROM {SOME} FULL JOIN customers d ON d.id = o.cust AND o.k > 100",
        4,
    ),
    "computed": (f"UPPER(c.h) AS g, c.age > 5 AS g2 FROM {ONE}", 1),
    "of the person": ("MOD(cust, 3) AS g FROM orders", 1),
    "a constant beside it": (f"CASE WHEN TRUE THEN 'a' END AS g, c.h AS g2 FROM {ONE}", 1),
    "through a subquery": (f"s.h AS g FROM (SELECT c.id, c.h, o.total FROM {ONE} WHERE o.k > 0) s", 1),
    "grouped in a subquery": (f"s.h AS g FROM (SELECT c.id, c.h, COUNT(*) AS n FROM {ONE} GROUP BY c.id, c.h) s", 1),
    "totals of groups by its own": (
        f"s.n AS g FROM (SELECT c.id, COUNT(*) AS n FROM {ONE} GROUP BY c.id, c.h) s JOIN orders o ON s.id = o.cust",
        1,
    ),
    "totals of groups by others": (f"s.n AS g FROM (SELECT o.cust, o.st, COUNT(*) AS n FROM {ONE} GROUP BY 1, 2) s", 9),
    "totals of the person": (f"t.n AS g, t.m > 5 AS g2 FROM {TOTALS} JOIN orders o ON t.cust = o.cust", 1),
    "looked up persons": (
        f"c.h AS g FROM {ONE} WHERE c.id NOT IN (SELECT cust FROM orders WHERE total > 100) AND o.st IN ('a', 'b')",
        1,
    ),
    "by a row of a public table": (f"r.w AS g FROM {ONE} JOIN {WORDS} ON r.cur = c.h", 1),
    "by a row of a public table, or none": (f"r.w AS g FROM {ONE} LEFT JOIN {WORDS} ON r.cur = c.h", 1),
    "by a row of a public table for some rows": (
        f"r.w AS g FROM {ONE} LEFT JOIN {WORDS} ON r.cur = c.h AND o.total > 5",
        2,
    ),
    "by a row of a public table, of what is missing": (f"r.w AS g FROM {SOME} LEFT JOIN {WORDS} ON r.cur = c.h", 2),
    "the only row of a public table": (f"r.m AS g FROM {ONE} CROSS JOIN (SELECT COUNT(*) AS m FROM rates) r", 1),
    "public groups": (f"r.cur AS g FROM {ONE} RIGHT JOIN (SELECT DISTINCT cur FROM rates) r ON r.cur = c.h", 1),
    "repeated by a public table": (f"c.h AS g FROM {ONE} JOIN rates r ON r.cur = c.h", 1),
    # what is not the person's own
    "several rows of a public table": (f"r.word AS g FROM {ONE} JOIN rates r ON r.cur = c.h", 9),
    "a row of a public table by something else": (f"r.w AS g FROM {ONE} JOIN {WORDS} ON r.cur = o.st", 9),
    "one of several rows": (f"o.st AS g FROM {ONE}", 9),
    "mixed with another": (f"CONCAT(c.h, o.st) AS g FROM {ONE}", 9),
    "beside one with declared values": (f"c.h AS g, o.k > 1 AS g2 FROM {ONE}", 3),
    "stacked": ("g FROM (SELECT id, h AS g FROM customers UNION ALL SELECT cust, st FROM orders) s", 10),
    "stacked with itself": ("g FROM (SELECT id, h AS g FROM customers UNION ALL SELECT id, city FROM customers) s", 2),
    "along a foreign key": ("l.oid || 'x' AS g FROM lines l", 9),
}


@pytest.fixture(scope="module")
def places(several: Bench) -> dict[int, tuple[str, str, str]]:
    """For each person the databases of everybody, of the others, and of the person."""
    whole = several.load(KNOWN, FULL)
    parts = {person: without(FULL, person) for person in (1, 3, 4)}
    return {
        person: (whole, several.load(KNOWN, two), several.load(KNOWN, three)) for person, (two, three) in parts.items()
    }


def asked(text: str) -> str:
    keys, rest = text.split(" FROM ", 1)
    names = re.findall(r"AS (g2?)\b", keys) or ["g"]
    return (
        f"SELECT {keys}, COUNT(*, contribution_bounds_per_group => (0, 9)) AS n FROM {rest} GROUP BY {', '.join(names)}"
    )


@pytest.mark.parametrize(("text", "groups"), OWN.values(), ids=OWN)
def test_groups_of_a_person_are_as_many_as_paid_for(
    several: Bench, places: dict[int, tuple[str, str, str]], text: str, groups: int
) -> None:
    """Each person in and out: the vectors differ by the person's own, whose groups are within the
    bound."""
    question = several.read(asked(text), KNOWN, places[1][0])
    assert {sensitivity(question.plan.root, part).cells for part in question.plan.parts} == {groups}
    for suffixes in places.values():
        apart(several, question, suffixes, "1")


def test_the_bounds_are_reached(several: Bench, places: dict[int, tuple[str, str, str]]) -> None:
    """The person with NULL and a value is there, and the one with all four pairs: less would be too little."""
    for name in ("missing for some rows", "two tables, each missing for some rows"):
        text, groups = OWN[name]
        question = several.read(asked(text), KNOWN, places[1][2])
        (counts, *_) = several.vectors(question, several.sql(question, "1"), places[1][2])
        assert len({key for key, value in counts.items() if value}) == groups


def test_what_belongs_to_the_person_needs_no_limit_on_groups(several: Bench, places: Any) -> None:
    """Noise for one group instead of two, nothing left out; two where one is asked for are limited all the same."""
    text = f"SELECT c.h, COUNT(DISTINCT c.id) AS n FROM {ONE} GROUP BY c.h"
    plan = several.read(text, KNOWN, places[1][0]).plan
    assert isinstance(plan.root.child, Clip)
    assert not isinstance(plan.root.child.child, LimitGroups)
    assert [sensitivity(plan.root, part).l1 for part in plan.parts] == [1]
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1)"
    plan = several.read(f"SELECT {options} c.h, COUNT(*) FROM {SOME} GROUP BY c.h", KNOWN, places[1][0]).plan
    assert reach(plan.root).cells == 1


def test_different_values_that_belong_to_the_person_are_one(several: Bench, places: Any) -> None:
    from discreet.trusted.ring_b.order_statistics import values_reached

    for column, most in (("c.h", 1), ("o.st", 9)):
        (special,) = several.read(f"SELECT COUNT(DISTINCT {column}) AS n FROM {ONE}", KNOWN, places[1][0]).plan.specials
        assert values_reached(special.root) == most
