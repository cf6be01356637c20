"""What SQL says of NULL in lists, names that mean two things, and values that nobody declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas
import pytest

import discreet
from discreet.ledger import TOTAL

EXACT = 10**6


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    people = pandas.DataFrame(
        {"id": range(90), "sex": ["Female", "Male", "Male"] * 30, "town": ["a", "b", None] * 30, "x": [1, 2, 3] * 30}
    )
    codes = pandas.DataFrame({"code": ["a", None], "k": [1, 2]})
    whole = {"type": "integer", "min": 0, "max": 9}
    tables = {
        "t": discreet.Table(
            people,
            person="id",
            one_row_per_person=True,
            columns={"id": int, "sex": ["Female", "Male"], "town": str, "x": whole},
        ),
        "codes": discreet.Table(codes, public=True, columns={"code": str, "k": whole}),
    }
    with discreet.Curator(tables, epsilon=10**9, delta=1e-6) as one:
        yield one


def asked(one: discreet.Curator, text: str) -> list[dict[str, Any]]:
    return one.ask(text, epsilon=EXACT).rows


def test_a_list_with_null_excludes_everything(curator: discreet.Curator) -> None:
    """x NOT IN (1, NULL) is NULL or false, as SQL says; a list without NULL excludes what is in it, and NULL."""
    lists = {
        "(SELECT code FROM codes)": (30, 0),
        "(SELECT code FROM codes WHERE code IS NOT NULL)": (30, 30),
        "(SELECT code FROM codes WHERE k > 5)": (0, 90),
    }
    for text, (inside, outside) in lists.items():
        assert asked(curator, f"SELECT COUNT(*) AS n FROM t WHERE town IN {text}") == [{"n": inside}]
        assert asked(curator, f"SELECT COUNT(*) AS n FROM t WHERE town NOT IN {text}") == [{"n": outside}], text


def test_having_means_the_grouped_column_and_order_by_the_answers(curator: discreet.Curator) -> None:
    text = "SELECT COUNT(*) AS sex, sex AS s FROM t GROUP BY sex"
    assert [row["s"] for row in asked(curator, f"{text} HAVING sex = 'Male'")] == ["Male"]
    assert [row["s"] for row in asked(curator, f"{text} ORDER BY sex DESC LIMIT 2")] == ["Male", "Female"]
    assert [row["s"] for row in asked(curator, "SELECT sex AS s, COUNT(*) AS n FROM t GROUP BY sex HAVING n > 45")] == [
        "Male"
    ]


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("SELECT COUNT(*) FROM t WHERE sex = 'male'", "write 'Male'"),
        ("SELECT COUNT(*) FROM t WHERE 'Femal' <> sex", "write 'Female'"),
        ("SELECT COUNT(*) FROM t WHERE x > 1 AND NOT sex IN ('Male', 'other')", "write one of 'Female', 'Male'"),
        ("SELECT COUNTIF(sex = 'FEMALE') FROM t", "write 'Female'"),
        ("SELECT AVG(CASE WHEN sex = 'm' THEN 1 ELSE 0 END) FROM t", "write one of"),
        ("SELECT sex = 'males' AS male, COUNT(*) FROM t GROUP BY male", "write 'Male'"),
        ("SELECT COUNT(*) FROM (SELECT id FROM t WHERE sex = 'male' GROUP BY id)", "write 'Male'"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT id, x FROM t HAVING x > 2)", "write WHERE"),
        ("SELECT COUNT(*, epsilon => 1e-100) AS n, SUM(x) FROM t", "name more"),
        (f"SELECT COUNT(*, epsilon => 0.{'9' * 100}) AS n, SUM(x) FROM t", "name more"),
    ],
)
def test_what_could_find_nothing_is_refused_for_nothing(curator: discreet.Curator, text: str, fix: str) -> None:
    before = curator.ledger.filter(TOTAL).spent
    with pytest.raises(discreet.QuestionError) as refused:
        curator.ask(text, epsilon=1)
    assert fix in str(refused.value)
    assert curator.ledger.filter(TOTAL).spent == before


def test_values_that_are_declared_and_columns_without_values_are_compared(curator: discreet.Curator) -> None:
    assert asked(curator, "SELECT COUNT(*) AS n FROM t WHERE sex = 'Male' AND town <> 'nowhere'") == [{"n": 30}]


def test_constants_are_computed_as_written() -> None:
    """In doubles 0.06 + 0.01 is less than 0.07."""
    frame = pandas.DataFrame({"d": [n / 100 for n in range(11)]})
    table = discreet.Table(frame, one_row_per_person=True, columns={"d": {"type": "number", "min": 0, "max": 1}})
    conditions = {
        "d BETWEEN .06 - 0.01 AND .06 + 0.01": 3,
        "d = .06 + .01": 1,
        "d < 0.1 * 0.7": 7,
        "d = 7 / 100": 1,
        "d > 1 / 0": 0,
        "d < 1e299 * 1e299": 11,
        "d < 3 - 2 - 1 + 5 * 2 / 100": 10,
    }
    with discreet.Curator({"t": table}, epsilon=10**9) as one:
        for text, count in conditions.items():
            assert asked(one, f"SELECT COUNT(*) AS n FROM t WHERE {text}") == [{"n": count}], text
