"""What is refused before anything is paid: odd numbers, deep texts, persons that a type would merge."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pandas
import pytest

from discreet import Curator, DeclarationError, QuestionError, Table
from discreet.catalog import declare
from discreet.ledger import TOTAL
from discreet.release.rows import _like


@pytest.fixture(scope="module")
def curator() -> Iterator[Curator]:
    frame = pandas.DataFrame({"p": ["a", "b"], "v": [1, 2]})
    columns = {"p": {"type": "text"}, "v": {"type": "integer", "min": 0, "max": 9}}
    with Curator({"t": Table(frame, columns=columns, person="p", rows_per_person=2)}, epsilon=100) as curator:
        yield curator


@pytest.mark.parametrize(
    "question",
    [
        f"SELECT COUNT(*) FROM t GROUP BY {'1' * 5000}",
        f"SELECT COUNT(*) FROM t LIMIT {'1' * 5000}",
        f"SELECT COUNT(*) FROM t ORDER BY {'1' * 5000}",
        f"SELECT COUNT(*) FROM t WHERE v = {'0' * 5000}1",
        f"SELECT COUNT(*) FROM t WHERE v = 0.{'1' * 5000}",
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.{'1' * 5000}) COUNT(*) FROM t",
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = {'1' * 5000}) COUNT(*) FROM t",
        "SELECT SUM(1e299 * 1e299 * 1e299) FROM t",
        "SELECT SUM(v, contribution_bounds_per_group => (0, 1e299)) FROM t",
        "SELECT COUNT(*) FROM t WHERE " + " OR ".join(["v = 1"] * 150),
        "SELECT COUNT(*) FROM t WHERE " + " OR ".join(["v = 1"] * 5000),
        "SELECT SUM(" + " + ".join(["v"] * 250) + ") FROM t",
        "SELECT COUNT(*) FROM t WHERE " + "NOT " * 2000 + "v = 1",
        "SELECT COUNT(*) FROM t WHERE " + "(" * 2000 + "v = 1" + ")" * 2000,
        "SELECT COUNT(*) FROM t WHERE " + "(" * 40 + "(v = 1)" + " BETWEEN FALSE AND TRUE)" * 40,
        "SELECT COUNT(*) FROM t WHERE v IN (" + ", ".join(["1"] * 30_000) + ")",
        "SELECT COUNT(*) FROM t WHERE p = '" + "a" * 200_000 + "'",
    ],
    ids=lambda question: question[:50],
)
def test_what_is_too_long_too_deep_or_too_large_is_a_question_error(curator: Curator, question: str) -> None:
    """Before anything is spent. How many steps a text may take is held in tests/sql/test_limits.py."""
    before = curator.ledger.filter(TOTAL).spent
    with pytest.raises(QuestionError):
        curator.ask(question, epsilon=1)
    assert curator.ledger.filter(TOTAL).spent == before


def test_arithmetic_on_a_noisy_answer_cannot_fail(curator: Curator) -> None:
    """HAVING works on released numbers: what grows beyond floating point is infinite there."""
    huge = " * ".join(["n"] * 30) + " * 1e290 * 1e290"
    question = f"SELECT COUNT(v) AS n FROM t HAVING {huge} > 0 OR n / ({huge}) IS NULL OR n <= 2"
    assert len(curator.ask(question, epsilon=40).rows) == 1


@pytest.mark.parametrize(
    ("value", "pattern", "expected"),
    [
        ("abc", "a%c", True),
        ("abc", "%b%", True),
        ("abc", "_b_", True),
        ("abc", "b", False),
        ("", "%", True),
        ("a%c", "a\\%c", False),
        ("ab\ncb", "a%b", True),
        ("aab", "%ab%ab", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
    ],
)
def test_like_on_released_keys(value: str, pattern: str, expected: bool) -> None:
    assert _like(value, pattern) is expected


def test_like_on_released_keys_tries_each_place_once() -> None:
    """Who tried all ways to lay 300 pieces into 20,000 letters would never come to the end."""
    assert not _like("a" * 20_000, "%a" * 300 + "%b")


def test_persons_told_by_a_floating_point_number_are_refused() -> None:
    """A frame's integers are stated as numbers, since one missing value would turn them into such: two persons above
    2^53 would become one. The owner has to write the type."""
    frame = pandas.DataFrame({"p": [2**53, 2**53 + 1], "v": [1, 2]})
    columns: dict[str, Any] = {"p": None, "v": {"type": "integer", "min": 0, "max": 9}}
    with pytest.raises(DeclarationError, match="person"):
        Curator({"t": Table(frame, columns=columns, person="p", rows_per_person=1)}, epsilon=100)
    columns["p"] = {"type": "integer"}
    with Curator({"t": Table(frame, columns=columns, person="p", rows_per_person=1)}, epsilon=100) as curator:
        assert curator.ask("SELECT COUNT(DISTINCT p) AS n FROM t", epsilon=60).rows[0]["n"] == 2


@pytest.mark.parametrize(
    "values",
    [["0.1", "0.10000000000000000001"], ["1", "1.00000000000000000001"], ["9007199254740992", "9007199254740992.25"]],
)
def test_public_keys_that_are_one_floating_point_number_are_refused(values: list[str]) -> None:
    """A row would count in two groups."""
    column = {"type": "number", "values": [Fraction(value) for value in values]}
    table = {"source": "x.csv", "one_row_per_person": True, "columns": {"n": column}}
    with pytest.raises(DeclarationError, match="repeated"):
        declare({"budget": {"epsilon": 1}, "tables": {"t": table}})
