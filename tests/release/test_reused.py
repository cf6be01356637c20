"""What an answer's noisy numbers hold already is free, where they are as precise as the question's own price buys."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas
import pytest

import discreet
from kinds import some

COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 99, "nulls": False},
    "hours": {"type": "integer", "min": 0, "max": 80},
    "sex": {"values": ["f", "m"]},
}
COUNT = 600
FRAME = pandas.DataFrame(
    {
        "id": range(COUNT),
        "age": [n % 90 for n in range(COUNT)],
        "hours": [None if n % 7 == 0 else n % 50 for n in range(COUNT)],
        "sex": ["f", "m", None] * (COUNT // 3),
        "ward": [f"w{n % 4}" for n in range(COUNT)],
    }
)
EXACT = 1e20
SUMMARY = "SELECT sex, {} FROM t WHERE age > 30 GROUP BY sex"
HELD = {
    "COUNT(*), AVG(age)": ["COUNT(*)", "AVG(age)", "SUM(age)", "COUNT(age)", "AVG(age) + 1", "SUM(age) / COUNT(*)"],
    "AVG(hours)": ["SUM(hours)", "COUNT(hours)", "AVG(hours) AS h HAVING h > 0"],
    "COUNT(*), AVG(hours)": ["COUNT(hours)", "COUNT(*) - COUNT(hours)", "AVG(hours)"],
    "AVG(age), AVG(hours)": ["AVG(age)", "AVG(hours)", "COUNT(*)", "SUM(age)", "SUM(hours)", "COUNT(hours)"],
    "COUNT(*), SUM(age), SUM(hours)": ["COUNT(*)", "SUM(age)", "SUM(hours)"],
    "VAR_POP(age)": ["STDDEV_POP(age)", "VAR_SAMP(age)", "VAR_POP(age) AS v HAVING v > 0"],
    "MEDIAN(age), COUNT(*), AVG(hours)": ["MEDIAN(age)", "COUNT(*)", "AVG(hours), MEDIAN(age)"],
    "COUNT(*)": ["COUNT(age)"],
}
"""What is asked for first, and what its numbers hold. Where `hours` is summed without being averaged, rows without a
value count as 0, and nobody knows how many."""
NOT_HELD = {
    "COUNT(*), AVG(age)": ["AVG(hours)", "COUNT(hours)", "MEDIAN(age)", "SUM(age * 2)", "VAR_POP(age)"],
    "AVG(hours)": ["COUNT(*)"],
    "COUNT(*), SUM(hours)": ["COUNT(hours)", "AVG(hours)"],
    "MEDIAN(age)": ["COUNT(*)", "APPROX_QUANTILES(age, 4)"],
}
"""What they do not hold, at whatever price."""


def _people() -> discreet.Table:
    columns = {**COLUMNS, "id": int}
    return discreet.Table(FRAME, person="id", one_row_per_person=True, columns=columns)


@pytest.fixture
def curator() -> Iterator[discreet.Curator]:
    with discreet.Curator({"t": _people()}, epsilon=1e30, delta=1e-6) as one:
        yield one


def _text(wanted: str) -> str:
    what, having, rest = wanted.partition(" HAVING ")
    return SUMMARY.format(what) + having + rest


def _asked(curator: discreet.Curator, wanted: str, epsilon: float) -> discreet.Release:
    return curator.ask(_text(wanted), epsilon=epsilon)


@pytest.mark.parametrize("first", some(HELD, pytest.mark.power, quick=2))
def test_what_is_held_is_free_and_true(curator: discreet.Curator, first: str) -> None:
    assert _asked(curator, first, EXACT).charged
    for wanted in HELD[first]:
        held = _asked(curator, wanted, 1)
        assert not held.charged, wanted
        with discreet.Curator({"t": _people()}, epsilon=1e30) as other:
            own = _asked(other, wanted, EXACT)
        assert held.columns == own.columns
        for row, truth, ends in zip(held.rows, own.rows, held.intervals, strict=True):
            assert row["sex"] == truth["sex"]
            for name in held.columns[1:]:
                assert math.isclose(row[name], truth[name], rel_tol=1e-9), wanted
                low, high = ends.get(name, (-math.inf, math.inf))
                assert low - 1e-6 <= truth[name] <= high + 1e-6, wanted


@pytest.mark.power
def test_the_interval_is_that_of_the_noise_that_was_drawn(curator: discreet.Curator) -> None:
    """Of 200 counts made of a mean's sums, those that miss the truth are as many as the interval says: with 10 of 200
    expected, 30 or more have a probability below 1e-7."""
    missed = 0
    for number in range(200):
        where = f"hours < 60 + {number}" if number % 2 else f"age < 200 + {number}"
        curator.ask(f"SELECT COUNT(*) AS n, AVG(age) AS a FROM t WHERE {where}", epsilon=1)
        held = curator.ask(f"SELECT COUNT(*) AS n FROM t WHERE {where}", epsilon=0.2)
        assert not held.charged
        low, high = held.intervals[0]["n"]
        truth = int(FRAME["hours"].notna().sum()) if number % 2 else COUNT
        missed += not low <= truth <= high
    assert missed < 30


@pytest.mark.parametrize("first", NOT_HELD)
def test_what_is_not_held_is_charged(curator: discreet.Curator, first: str) -> None:
    _asked(curator, first, 1000)
    for wanted in NOT_HELD[first]:
        assert _asked(curator, wanted, 0.01).charged, wanted


def test_what_is_less_precise_is_measured_anew(curator: discreet.Curator) -> None:
    both = "COUNT(*), AVG(age)"
    _asked(curator, both, 0.1)
    assert _asked(curator, "COUNT(*)", 0.1).charged  # out of the mean's sums it has a larger error
    assert not _asked(curator, "COUNT(*)", 0.1).charged
    assert not _asked(curator, "COUNT(*)", 0.05).charged
    assert not _asked(curator, both, 0.09).charged
    assert _asked(curator, both, 0.11).charged


@pytest.mark.parametrize(
    "other",
    [
        "SELECT sex, COUNT(*) AS n FROM t WHERE age > 31 GROUP BY sex",
        "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex",
        "SELECT COUNT(*) AS n FROM t WHERE age > 30",
        "SELECT hours > 5 AS long, COUNT(*) AS n FROM t WHERE age > 30 GROUP BY long",
    ],
)
def test_other_rows_and_groups_are_others(curator: discreet.Curator, other: str) -> None:
    _asked(curator, "COUNT(*), AVG(age)", 100)
    assert curator.ask(other, epsilon=0.01).charged


def test_several_rows_a_person_and_private_groups() -> None:
    frame = FRAME.assign(id=[n % 150 for n in range(COUNT)])
    columns = {**COLUMNS, "ward": str, "id": int}
    table = discreet.Table(frame, person="id", rows_per_person=4, groups_per_person=4, columns=columns)
    with discreet.Curator({"t": table}, epsilon=1e9, delta=1e-6, keys_delta=1e-7) as one:
        groups = "SELECT ward, {} FROM t GROUP BY ward"
        first = one.ask(groups.format("COUNT(DISTINCT id) AS p, COUNT(*) AS n, AVG(hours) AS h"), epsilon=50)
        again = one.ask(groups.format("COUNT(DISTINCT id) AS p, COUNT(*) AS n") + " ORDER BY p", epsilon=10)
        assert not again.charged
        for row in again.rows:
            assert {**row, "h": None} in [{**other, "h": None} for other in first.rows]
        # each group would be found from fewer persons on
        assert one.ask(groups.format("COUNT(DISTINCT id) AS p, COUNT(*) AS n"), epsilon=49).charged
        # with no number of rows in the question, it is not rows of a person that are limited
        assert one.ask(groups.format("COUNT(DISTINCT id) AS p"), epsilon=1).charged


def test_an_analysts_own_account_is_charged_for_what_others_measured() -> None:
    with discreet.Curator({"t": _people()}, epsilon=100, analysts={"ana": 1, "bob": 10}) as one:
        one.ask(_text("COUNT(*), AVG(age)"), epsilon=5, analyst="bob")
        assert one.ask(_text("COUNT(*)"), epsilon=0.5, analyst="ana").charged
        assert not one.ask(_text("COUNT(*)"), epsilon=0.5, analyst="bob").charged


def test_a_retry_gives_the_same_bytes(curator: discreet.Curator) -> None:
    _asked(curator, "COUNT(*), AVG(age)", 5)
    first = curator.ask(_text("COUNT(*)"), epsilon=1, request="r")
    assert not first.charged
    _asked(curator, "COUNT(*)", 50)
    again = curator.ask(_text("COUNT(*)"), epsilon=1, request="r")
    assert again.rows == first.rows
    with pytest.raises(discreet.QuestionError, match="another question"):
        curator.ask(_text("COUNT(hours)"), epsilon=1, request="r")
