"""What an answer says may be missing, against what is."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from kinds import some

pytest.importorskip("pandas")

import discreet
import limited_tools as tools
from limited_tools import NOTHING, clause, number


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    with tools.curator(tools.rows()) as curator:
        yield curator


def test_the_bound_is_met_where_everybody_has_as_many_as_declared() -> None:
    """Ten persons of 8 rows, of whom 2 count: 20 rows count and 60 are missing, of 10 persons."""
    full = [{"uid": i, "x": 1, "y": 1, "cat": tools.CATEGORIES[n % 4]} for i in range(10) for n in range(8)]
    with tools.curator(full) as curator:
        said = number(curator.ask(clause("max_rows_contributed = 2", "COUNT(*) AS n FROM t"), epsilon=NOTHING), "n")
        assert (said.share, said.at_most, said.persons) == (0.25, 60, 10)
        words = "n: the limits keep at least 25 % of what the declared limits count; at most 60 is missing"
        assert said.words == f"{words}, at 95 % confidence, from at most 10 persons"
        question = clause("max_groups_contributed = 3", "cat, COUNT(DISTINCT uid) AS n FROM t GROUP BY cat")
        said = number(curator.ask(question, epsilon=NOTHING), "n")
        assert (said.share, said.at_most, said.persons) == (0.75, 10, 10)
        bounded = "COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM t"
        said = number(curator.ask(clause("max_groups_contributed = 1", bounded), epsilon=NOTHING), "n")
        assert (said.share, said.at_most, said.persons) == (0.25, 60, None)


@pytest.mark.power
def test_a_bound_fails_as_seldom_as_it_says() -> None:
    """Where the bound is met, it holds if the upper end of the interval does: in 97.5 % of the answers or a bit more.
    13 failures of 60 have a probability below 1e-6; a bound from the estimate itself fails in half of them."""
    full = [{"uid": i, "x": 1, "y": 1, "cat": "a"} for i in range(10) for _ in range(8)]
    failures = 0
    with tools.curator(full) as curator:
        for turn in range(60):
            release = curator.ask(clause("max_rows_contributed = 2", "COUNT(*) AS n FROM t"), epsilon=1 + turn / 1000)
            failures += number(release, "n").at_most < 60
    assert failures < 13


def test_a_bound_over_the_draw_fails_as_seldom_as_it_says() -> None:
    """Everybody has 8 rows, WHERE keeps 4 of them, and the window is 2: the share is met. Without the term for the draw
    40 draws fail 20 times; with it 1 time at most, and 11 times with a probability below 1e-6."""
    full = [{"uid": i, "x": 1, "y": 1 if n % 2 else -1, "cat": "a"} for i in range(30) for n in range(8)]
    failures, kept = 0, []
    with tools.curator(full) as curator:
        question = clause("max_rows_contributed = 2", "COUNT(*) AS n FROM t WHERE y > 0")
        for turn in range(40):
            release = curator.ask(question, epsilon=NOTHING + turn)
            said = number(release, "n")
            kept.append(release.rows[0]["n"])
            assert (said.share, said.persons) == (0.25, None)
            failures += said.at_most < 120 - kept[-1]
    assert failures < 11
    assert sum(count < 30 for count in kept) > 3  # each of these would fail without that term


DRAWN = [
    ("max_rows_contributed = 3", "COUNT(*) AS n FROM t WHERE y > -3"),
    ("max_rows_contributed = 3", "COUNT(x) AS n FROM t"),
    ("max_rows_contributed = 3", "cat, COUNT(*) AS n FROM t GROUP BY cat"),
    ("max_rows_contributed = 3", "cat, COUNT(DISTINCT uid) AS n FROM t WHERE x > 2 GROUP BY cat"),
    ("max_rows_contributed = 3", "cat, COUNT(*) AS m, SUM(x) AS n, COUNT(x) AS k FROM t GROUP BY cat"),
    ("max_rows_contributed = 3", "SUM(x) AS n FROM t WHERE y < 2"),
    ("max_groups_contributed = 2", "cat, COUNT(DISTINCT uid) AS n FROM t WHERE x > 2 GROUP BY cat"),
    ("max_groups_contributed = 2", "cat, COUNT(*) AS n, COUNT(DISTINCT uid) AS m FROM t GROUP BY cat"),
    (
        "max_groups_contributed = 2",
        "cat, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, SUM(y, contribution_bounds_per_group => (0, 2)) "
        "AS m FROM t GROUP BY cat",
    ),
]
"""Limits after which a person may count for less than the limit: the bound is one over the draw."""


@pytest.mark.parametrize(
    ("options", "rest"), some(DRAWN, pytest.mark.power, quick=6), ids=[rest[:60] for _, rest in DRAWN]
)
def test_less_is_missing_than_is_said(curator: discreet.Curator, options: str, rest: str) -> None:
    """At 15 fresh draws; one fails with at most 2.5 %, and 7 of them with a probability below 1e-7."""
    whole = total(curator.ask(f"SELECT {unbounded(rest)}", epsilon=NOTHING), "n")
    failures, missing = 0, []
    for turn in range(15):
        release = curator.ask(clause(options, rest), epsilon=NOTHING + turn)
        said = number(release, "n")
        missing.append(whole - total(release, "n"))
        failures += missing[-1] > said.at_most
        assert 0 < said.share < 1
        assert missing[-1] <= whole
    assert failures < 7
    assert max(missing) > 0.05 * whole  # something is missing, so the bound could fail
    assert sum(missing) / len(missing) <= (1 - said.share) * whole * 1.2


def unbounded(rest: str) -> str:
    """The same aggregates without clamps."""
    return rest.replace(", contribution_bounds_per_group => (0, 2)", "")


def total(release: discreet.Release, column: str) -> float:
    return float(sum(row[column] for row in release.rows))


@pytest.mark.parametrize("function", ["SUM(y)", "SUM(x, contribution_bounds_per_group => (0, 3))"])
def test_nothing_is_claimed_of_sums_that_limits_may_raise(curator: discreet.Curator, function: str) -> None:
    release = curator.ask(clause("max_rows_contributed = 3", f"{function} AS s FROM t"), epsilon=NOTHING)
    said = number(release, "s")
    assert (said.share, said.at_most, said.words) == (None, None, "s: how much is missing is not known")


def test_means_and_what_is_made_of_them_have_the_number_of_their_values(curator: discreet.Curator) -> None:
    whole = curator.ask("SELECT COUNT(x) AS n FROM t", epsilon=NOTHING).rows[0]["n"]
    question = clause("max_rows_contributed = 3", "VAR_POP(x) AS v, AVG(x) AS a, COUNT(x) AS n FROM t")
    release = curator.ask(question, epsilon=NOTHING)
    kept = release.rows[0]["n"]
    for column in ("number of values of v", "n"):
        said = number(release, column)
        assert said.share == 3 / 8
        assert said.at_most > whole - kept - 60
    assert number(release, "number of values of a").share == 1 / 3  # persons, of each of whom one mean counts


def test_private_groups_claim_no_total_but_for_clamps() -> None:
    """What is in the groups that are not shown is missing, and nothing tells it."""
    found = [{"uid": i, "x": 1, "y": 1, "cat": "abcd"[n % 4]} for i in range(40) for n in range(8)]
    found += [{"uid": 100, "x": 1, "y": 1, "cat": "alone"}]
    with tools.curator(found, private=True) as curator:
        question = clause(
            "max_groups_contributed = 3, delta = 1e-6", "cat, COUNT(DISTINCT uid) AS n FROM t GROUP BY cat"
        )
        release = curator.ask(question, epsilon=10)
        assert len(release.rows) == 4
        said = number(release, "n")
        assert (said.share, said.at_most, said.persons) == (0.75, None, None)
        small = next(one for one in release.left_out if one.what == "small groups")
        assert "groups of too few persons are left out: a group of " in small.words
        assert curator.ask(small.question or "", epsilon=NOTHING).rows == [{"groups": 5}]
        bounded = "cat, COUNT(*, contribution_bounds_per_group => (0, 1)) AS n FROM t GROUP BY cat"
        release = curator.ask(clause("max_groups_contributed = 4, delta = 1e-6", bounded), epsilon=NOTHING)
        said = number(release, "n")
        assert (said.share, said.at_most) == (0.125, 160 * 7)
        assert "in the groups shown" in said.words


@pytest.mark.power
def test_a_small_group_is_shown_as_often_as_is_said() -> None:
    """A group of as many persons as are named: of 60 answers 57 show it, and less than 44 with probability 1e-7."""
    with tools.curator([{"uid": 0, "x": 1, "y": 1, "cat": "a"}], private=True) as curator:
        question = clause("delta = 1e-6", "cat, COUNT(DISTINCT uid) AS n FROM t GROUP BY cat")
        said = next(one for one in curator.explain(question, epsilon=1).left_out if one.what == "small groups")
        least = int(said.words.partition(": a group of ")[2].split()[0])
    shown = 0
    with tools.curator([{"uid": i, "x": 1, "y": 1, "cat": "a"} for i in range(least)], private=True) as curator:
        for turn in range(60):
            shown += len(curator.ask(question, epsilon=1 + turn * 1e-6).rows)
    assert shown > 43
    assert least < 100


def test_the_answer_depends_on_noisy_numbers_alone() -> None:
    """The same released numbers, whatever the rows: the same words. So they cost nothing."""
    from discreet.plan.measurement import Price
    from discreet.plan.split import measurement
    from discreet.release.estimate import answer
    from discreet.sql import lower
    from discreet.trusted.ring_b.questions import Noisy

    with tools.curator(tools.rows()) as curator:
        table = curator.declaration.tables["t"]
        checked = lower(clause("max_rows_contributed = 2", "COUNT(*) AS n FROM t"), curator.declaration)
        priced = measurement(checked.plan, Price(Fraction(1)))
        said: list[Any] = [
            answer(priced, Noisy(((),), (((value,),),)), table).to_dict()["left_out"][-1] for value in (-50, 100)
        ]
        wide = said[1]["at_most"] // 3 - 100
        assert 0 < wide < 20
        assert said[0]["at_most"] == 0  # nobody is there, as far as the interval tells
        assert said[1]["persons"] == (100 + wide) // 2
