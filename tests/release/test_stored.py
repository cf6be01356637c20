"""A question asked again in other words measures the same, and so costs nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pandas
import pytest

import discreet
from discreet.catalog import declare
from discreet.curator.options import AskOptions
from discreet.plan.measurement import Price
from discreet.plan.split import measurement
from discreet.release.stored import VERSION, _written, measured, read
from discreet.sql import lower

COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 99},
    "hours": {"type": "integer", "min": 0, "max": 80},
    "rate": {"type": "number", "min": 0, "max": 8},
    "sex": {"values": ["f", "m"]},
    "town": {"values": ["a", "b", "c"]},
    "born": {"type": "date"},
}
ROWS = "FROM t WHERE age > 30 AND town IN ('a', 'b') GROUP BY sex, town"
MEANS = f"SELECT sex, town, AVG(age) AS a, COUNT(*) AS n {ROWS}"
SPELLINGS = {
    MEANS: [
        "select SEX, Town, avg(AGE) as a, count(*) as n from T where AGE > 30 and TOWN in ('a', 'b')"
        " group by SEX, TOWN",
        'SELECT "sex", "town", AVG("age") AS a, COUNT(1) AS n FROM t WHERE age > 30 AND town IN (\'a\', \'b\')'
        " GROUP BY sex, town",
        f"SELECT sex AS s, town AS place, AVG(age) AS mean, COUNT(*) AS rows {ROWS}",
        f"SELECT COUNT(*) AS n, town, AVG(age) AS a, sex {ROWS}",
        MEANS.replace("GROUP BY sex, town", "GROUP BY town, sex"),
        f"{MEANS} ORDER BY a DESC",
        f"{MEANS} ORDER BY n LIMIT 2",
        f"{MEANS} HAVING COUNT(*) > 10",
        f"SELECT AVG(age) AS a, COUNT(*) AS n {ROWS}",
        MEANS.replace("age > 30", "30 < age"),
        MEANS.replace("age > 30", "age >= 31"),
        MEANS.replace("age > 30", "NOT age <= 30"),
        MEANS.replace("age > 30", "31 <= age"),
        MEANS.replace("age > 30 AND town IN ('a', 'b')", "town IN ('b', 'a') AND (age > 30)"),
        MEANS.replace("town IN ('a', 'b')", "(town = 'a' OR town = 'b')"),
        MEANS.replace("town IN ('a', 'b')", "('b' = town OR town = 'a' OR town IN ('a'))"),
        MEANS.replace("age > 30", "age > 30 AND NOT (age < 31)"),
        MEANS.replace("FROM t", "FROM t AS people").replace("age > 30", "people.age > 30"),
        f"SELECT sex, town, AVG(age) AS a, COUNT(*) AS n, AVG(age) * 12 AS months, COUNT(*) / 2 AS pairs {ROWS}",
        f"SELECT sex, town, AVG(age) AS a, COUNT(*) AS n, COUNT(*) AS m {ROWS}",
    ],
    "SELECT age + hours AS total, COUNT(*) AS n FROM t WHERE hours BETWEEN 10 AND 12 GROUP BY total": [
        "SELECT hours + age AS total, COUNT(*) AS n FROM t WHERE hours >= 10 AND hours <= 12 GROUP BY total",
        "SELECT COUNT(*) AS n FROM t WHERE hours < 13 AND 9 < hours GROUP BY age + hours",
    ],
    "SELECT SUM(age * hours) AS s FROM t": ["SELECT SUM(hours * age) AS product FROM t"],
    "SELECT COUNT(*) AS n FROM t WHERE NOT (sex = 'f')": ["SELECT COUNT(*) AS n FROM t WHERE sex <> 'f'"],
    "SELECT MEDIAN(age) AS m, COUNT(*) AS n FROM t": ["SELECT COUNT(*) AS n, MEDIAN(age) AS other FROM t"],
    "SELECT AVG(rate) AS a FROM t": ["SELECT AVG(t.rate) AS b FROM t"],
}
OTHERS = [
    MEANS.replace("30", "31"),
    MEANS.replace("age > 30", "age >= 30"),
    MEANS.replace("'b'", "'c'"),
    MEANS.replace(" AND ", " OR ", 1),
    MEANS.replace("AVG(age)", "AVG(hours)"),
    MEANS.replace("GROUP BY sex, town", "GROUP BY sex").replace("sex, town,", "sex,"),
    "SELECT COUNT(*) AS n FROM t WHERE rate >= 2",
    "SELECT COUNT(*) AS n FROM t WHERE rate > 1",
    "SELECT COUNT(*) AS n FROM t WHERE rate > 2",
    "SELECT COUNT(*) AS n FROM t WHERE age - hours > 2",
    "SELECT COUNT(*) AS n FROM t WHERE hours - age > 2",
]
"""Each of them measures something of its own."""


@pytest.fixture
def curator() -> Iterator[discreet.Curator]:
    count = 600
    frame = pandas.DataFrame(
        {
            "age": [n % 90 for n in range(count)],
            "hours": [n % 50 for n in range(count)],
            "rate": [n % 9 for n in range(count)],
            "sex": ["f", "m", None] * (count // 3),
            "town": ["a", "b", "c", "a"] * (count // 4),
            "born": [None] * count,
        }
    )
    table = discreet.Table(frame, one_row_per_person=True, columns=COLUMNS)
    with discreet.Curator({"t": table}, epsilon=1000, delta=1e-6) as one:
        yield one


@pytest.mark.parametrize("question", SPELLINGS)
def test_other_words_for_the_same_cost_nothing(curator: discreet.Curator, question: str) -> None:
    first = curator.ask(question, epsilon=1)
    assert first.charged
    for text in SPELLINGS[question]:
        again = curator.ask(text, epsilon=1)
        assert not again.charged, text
        assert again.cost == first.cost
        names = [name for name in again.columns if name in first.columns]
        if "HAVING" not in text and "LIMIT" not in text:
            assert len(again.rows) == len(first.rows)
        for place, row in enumerate(again.rows):
            held = {name: row[name] for name in names}
            assert held in [{name: other[name] for name in names} for other in first.rows], text
            assert all(low <= row[name] <= high for name, (low, high) in again.intervals[place].items())


def test_what_measures_something_else_is_charged(curator: discreet.Curator) -> None:
    curator.ask(MEANS, epsilon=1)
    for text in OTHERS:
        assert curator.ask(text, epsilon=1).charged, text
    assert curator.ask(MEANS, epsilon=2).charged


def test_groups_are_listed_as_the_question_groups(curator: discreet.Curator) -> None:
    def groups(text: str) -> list[tuple[object, ...]]:
        return [(row["sex"], row["town"]) for row in curator.ask(text, epsilon=1).rows]

    one = groups("SELECT sex, town, COUNT(*) AS n FROM t GROUP BY sex, town")
    other = groups("SELECT sex, town, COUNT(*) AS n FROM t GROUP BY town, sex")
    assert one == [(sex, town) for sex in ("f", "m", None) for town in ("a", "b", "c", None)]
    assert other == [(sex, town) for town in ("a", "b", "c", None) for sex in ("f", "m", None)]


def test_private_groups_and_found_bounds_are_stored_too() -> None:
    frame = pandas.DataFrame(
        {
            "day": pandas.to_datetime(["2020-01-31", "2020-02-29"] * 300).date,
            "at": pandas.to_datetime(["2020-01-31 10:00:00", "2020-02-29 11:00:01"] * 300),
            "pay": [float(n) for n in range(600)],
            "ward": ["x", "y"] * 300,
            "id": range(600),
        }
    )
    columns = {"day": {"type": "date"}, "at": {"type": "timestamp"}, "pay": float, "ward": str, "id": int}
    table = discreet.Table(frame, one_row_per_person=True, columns=columns)
    with discreet.Curator({"t": table}, epsilon=100, delta=1e-6, keys_delta=1e-7) as one:
        for text, other in (
            (
                "SELECT day, COUNT(*) AS n FROM t GROUP BY day",
                "SELECT COUNT(*) AS m, day FROM t GROUP BY day ORDER BY m",
            ),
            (
                "SELECT at, ward, COUNT(*) AS n FROM t GROUP BY at, ward",
                "SELECT COUNT(*) AS n FROM t GROUP BY ward, at",
            ),
            ("SELECT SUM(pay) AS s FROM t WHERE id > 5", "SELECT SUM(pay) AS other FROM t WHERE NOT 6 > id"),
        ):
            first, again = one.ask(text, epsilon=5), one.ask(other, epsilon=5)
            assert first.charged
            assert not again.charged
            assert 0 < len(first.rows) == len(again.rows)


VISITS = {
    "id": {"type": "text"},
    "code": {"type": "text"},
    "ward": {"type": "text", "values": ["x", "y"]},
    "hours": {"type": "integer", "min": 0, "max": 80},
}
PUBLIC, SMALL = Price(Fraction(1)), Fraction(1, 10**6)
RECORDED = [
    (
        "SELECT ward, COUNT(*) AS n, AVG(hours) AS a FROM t GROUP BY ward",
        PUBLIC,
        "bb708e45322350cfb62746635bb3c4905bf8cff8d800e271ec715fe0b215e837",
    ),
    (
        "SELECT ward, MEDIAN(hours) AS m FROM t GROUP BY ward",
        PUBLIC,
        "a6a8ee4cb4eb7183fcd5a1821a63efd4f78ef93225da7d9a192d6506979aec81",
    ),
    (
        "SELECT code, COUNT(*) AS n FROM t GROUP BY code",
        Price(Fraction(1), SMALL),
        "a465d8100987196656cba71c9d7b797f60236cf65622658750344f64cb1a0b2e",
    ),
    (
        "SELECT code, COUNT(*) AS n FROM t GROUP BY code",
        Price(Fraction(1, 10), 100 * SMALL, gaussian=True),
        "85c9ea5566f62dd9e2ab50d9929e4c031afbc34a2b989de7ca352291fc872a89",
    ),
]
"""Questions at prices, and the SHA-256 of what answers to them have been stored under since version 2 of this form."""


@pytest.mark.parametrize(("question", "price", "digest"), RECORDED, ids=["joint", "median", "laplace", "gaussian"])
def test_what_was_stored_is_found_under_the_same_words(question: str, price: Price, digest: str) -> None:
    """Else what was paid for is measured again, and charged again."""
    facts = {"source": "t.csv", "person": "id", "rows_per_person": 99, "groups_per_person": 60, "columns": VISITS}
    declaration = declare({"budget": {"epsilon": 9, "delta": 1e-5}, "tables": {"t": facts}})
    plan = lower(question, declaration, lambda *_: []).plan
    assert hashlib.sha256(measured(measurement(plan, price)).encode()).hexdigest() == digest


def test_what_the_ledger_keeps_says_how_it_is_written(tmp_path: Path) -> None:
    """Another process, and a later version, find it by what was measured."""
    frame = pandas.DataFrame({"age": [30] * 50})
    table = discreet.Table(frame, one_row_per_person=True, columns={"age": COLUMNS["age"]})
    path = tmp_path / "t.ledger"
    with discreet.Curator({"t": table}, epsilon=10, ledger=path) as one:
        first = one.ask("SELECT COUNT(*) AS n FROM t WHERE age > 20", epsilon=1)
        with one.ledger._file.read() as transaction:
            ((data,),) = transaction.connection.execute("SELECT answer FROM entries WHERE kind = 'commit'").fetchall()
        stored = json.loads(data)
        assert stored["measured"] == VERSION
        assert stored["parts"] == [[[first.rows[0]["n"]]]]
        assert set(stored) == {"cells", "measured", "price", "keys", "parts", "specials", "found"}
    with discreet.Curator({"t": table}, epsilon=10, ledger=path) as one:
        again = one.ask("SELECT COUNT(*) AS other FROM t WHERE 21 <= age", epsilon=1)
        assert not again.charged
        assert again.rows[0]["other"] == first.rows[0]["n"]


@pytest.mark.parametrize(
    ("text", "follow"),
    [
        (MEANS, True),
        ("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", True),
        ("SELECT COUNT(*) AS n FROM t", True),
        ("SELECT born, COUNT(*) AS n FROM t GROUP BY born", False),
    ],
)
def test_groups_that_follow_from_the_plan_are_not_written_down(
    curator: discreet.Curator, text: str, follow: bool
) -> None:
    """And what was written with them, as earlier versions did, is read as before."""
    delta = {} if follow else {"delta": 1e-7}
    release = curator.ask(f"{text} -- {follow}", epsilon=50, **delta)
    question = curator._planner.one_table(text)
    frame = curator._answering.lookup.frame(question.table, question.plan, "1")
    (key,) = [key for key, _ in curator.ledger.answered(frame, "", None, 99)][-1:]
    content = curator.ledger.answer(key, "")
    assert content is not None
    stored = json.loads(content)
    assert (stored["keys"] is None) is follow
    (priced,) = curator._prices.of(curator._planner.asked(text), AskOptions(50, delta.get("delta"))).measured
    noisy = read(stored, priced)
    before = json.loads(json.dumps({**stored, "keys": [[_written(value) for value in key] for key in noisy.keys]}))
    assert read(before, priced) == noisy
    assert len(noisy.keys) >= len(release.rows) > 0
