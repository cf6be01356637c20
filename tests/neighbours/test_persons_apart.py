"""However tables are combined: for a fixed salt, one person's rows add a fixed vector, and no more than is paid for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from discreet.audit.maker import Maker
from discreet.errors import QuestionError
from kinds import some
from random_shops import KINDS, NUMBERS, RATES, TEXTS, shops
from relation_tools import WHOLE, WORD, Bench, Database, Rows, apart, shop, without

LONG: Any = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@pytest.fixture(scope="module")
def bench(several: Bench) -> Bench:
    return several


@pytest.mark.parametrize(
    "kinds", [("whole", "word"), pytest.param(("word", "whole"), marks=pytest.mark.power)], ids=str
)
def test_one_person_adds_a_fixed_vector_within_the_sensitivity(bench: Bench, kinds: tuple[str, str]) -> None:
    """Random databases, random questions, one person taken out everywhere. What everybody adds is exactly what the
    others add and what the person adds alone, whose norms are within the bounds. So nobody else's rows are touched."""
    (person, persons), (order, orders) = KINDS[kinds[0]], KINDS[kinds[1]]
    known = shop(person, order)
    asked = counted = 0

    @settings(max_examples=7, phases=[Phase.generate], derandomize=True, database=None, **LONG)
    @given(database=shops(persons, orders), seed=st.integers(0, 10**6), place=st.sampled_from([0, 0, 1, 2, 3]))
    def holds(database: Database, seed: int, place: int) -> None:
        nonlocal asked, counted
        others, mine = without(database, persons[place])
        suffixes = [bench.load(known, one) for one in (database, others, mine)]
        maker = Maker(known, seed, plain=True)
        for number in range(12):
            text = maker.question()
            try:
                question = bench.read(text, known, suffixes[0])
            except QuestionError:
                continue
            asked += 1
            counted += apart(bench, question, suffixes, str(number))

    holds()
    assert asked > 40
    assert counted > 6


@pytest.mark.parametrize(
    "text",
    some(
        [
            "SELECT COUNT(*), SUM(s.age), COUNT(m) FROM solo s LEFT JOIN (SELECT cur, MAX(rate) AS m FROM rates"
            " GROUP BY cur) r"
            " ON s.cur = r.cur",
            "SELECT age, AVG(n) FROM (SELECT age, CASE WHEN w > 1 THEN age ELSE -1 END AS n FROM solo) GROUP BY age",
            "SELECT r.cur, COUNT(*) FROM solo RIGHT JOIN (SELECT DISTINCT cur FROM rates) r ON solo.cur = r.cur"
            " GROUP BY r.cur",
            "SELECT cur, COUNT(*) FROM solo WHERE cur IN (SELECT word FROM rates) AND w NOT IN (SELECT rate FROM"
            " rates) GROUP BY 1",
            "SELECT COUNT(*) FROM solo s JOIN (SELECT COUNT(*) AS n FROM rates) r ON s.age < r.n",
        ],
        pytest.mark.power,
        quick=2,
    ),
)
def test_a_row_that_is_a_person_adds_a_fixed_vector_too(bench: Bench, text: str) -> None:
    known = shop(WHOLE, WORD)
    rows: Rows = [{"cur": cur, "age": age, "w": w} for cur, age, w in zip(TEXTS, range(7), NUMBERS, strict=False)]
    for place, row in enumerate(rows):
        parts: Sequence[Rows] = (rows, [*rows[:place], *rows[place + 1 :]], [row])
        databases: list[Database] = [{"solo": part, "rates": RATES} for part in parts]
        suffixes = [bench.load(known, database) for database in databases]
        apart(bench, bench.read(text, known, suffixes[0]), suffixes, "7")
