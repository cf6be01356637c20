"""A profile: what it costs, whom it serves, which limits follow from it, and that what was free stays free."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow
import pytest

import related_tables
from discreet import BudgetError, Curator, QuestionError, Table
from discreet.plan.left_out import limits
from discreet.plan.measurement import Price
from discreet.plan.profile import Histogram, Profile, Wanted
from discreet.release.chosen_limits import at_best_limits
from limited_tools import clause

PERSONS = 400
COUNT = "SELECT COUNT(*) AS n FROM t"
WHERE = "SELECT COUNT(*) AS n FROM t WHERE v > 1"
NAMED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 5) COUNT(*) AS n FROM t"


def table(*, several: int = 6, heavy: int = 4) -> Table:
    """Most persons have a few rows, a few have 90; values are about 50, where 10^6 are declared."""
    rows = [(person, person % 3, 10 * (row % 9)) for person in range(PERSONS) for row in range(1 + person % several)]
    rows += [(PERSONS + person, row % 3, 80) for person in range(heavy) for row in range(90)]
    persons, groups, values = zip(*rows, strict=True)
    frame = pyarrow.table({"p": list(persons), "g": list(groups), "v": list(values), "f": [float(v) for v in values]})
    columns = {
        "p": int,
        "g": {"type": "integer", "min": 0, "max": 2},
        "v": {"type": "integer", "min": 0, "max": 10**6},
        "f": float,
    }
    return Table(frame, person="p", rows_per_person=90, groups_per_person=3, columns=columns)


@pytest.fixture
def curator() -> Iterator[Curator]:
    with Curator({"t": table()}, epsilon=1000) as one:
        yield one


def limit_of(curator: Curator, question: str, epsilon: str) -> int | None:
    """How many rows of a person count."""
    found = curator.explain(question, epsilon).left_out
    return next((one.limit for one in found if one.what == "rows"), None)


def test_the_price_is_shared_and_said_before(curator: Curator) -> None:
    said = curator.explain_profile(epsilon="0.3", keys=[["g"]], columns=["v"])
    assert said[0] == "3 histograms, each at ε 0.1: rows; groups by g; largest size of v"
    assert curator.budget.used == 0
    release = curator.profile(epsilon="0.3", keys=[["g"]], columns=["v"])
    assert release.charged.epsilon == 0.3
    assert {row["of"] for row in release.rows} == {"rows", "groups by g", "largest size of v"}
    sizes = [(row["from"], row["to"]) for row in release.rows if row["of"] == "largest size of v"]
    assert sizes[:3] == [(0, 1), (1, 2), (2, 4)]  # between 0 and 1 lies no whole number
    again = curator.profile("t", epsilon="0.3", keys=[["g"]], columns=["v"])
    assert not again.charged
    assert again.rows == release.rows


def test_each_question_gets_the_limit_for_its_own_price(curator: Curator) -> None:
    """At ε 100 all is kept; at .5 the noise of 90 rows is more than what the four heavy persons have."""
    assert limit_of(curator, COUNT, "0.5") == 90
    curator.profile(epsilon=100, columns=["v", "f"])
    few, many = limit_of(curator, COUNT, "0.5"), limit_of(curator, COUNT, "100")
    assert many == 90
    assert few is not None
    assert few < 90
    assert limit_of(curator, NAMED, "0.5") == 5
    assert "which the profile makes best at this price" in repr(curator.explain(COUNT, "0.5"))
    error = curator.explain("SELECT SUM(v) AS s FROM t", "0.5").expected_error["s"]
    assert error < 0.001 * 90 * 10**6 / 0.5 * 3
    found = curator.explain("SELECT SUM(f) AS s FROM t", "0.5")  # without declared bounds: no price is shared
    assert found.expected_error["s"] < 10_000
    total = sum(row["s"] for row in curator.ask("SELECT SUM(f) AS s FROM t", "20").rows)
    assert abs(total - 52_000) < 10_000  # bounds of 64 cut 5,760 off the rows of 80; the noise is ±900 at 95 %


def test_what_is_left_out_is_an_interval_without_where(curator: Curator) -> None:
    curator.profile(epsilon=100)
    release = curator.ask(COUNT, "0.5")
    (number,) = [one for one in release.left_out if one.what == "number"]
    kept = next(one.limit for one in release.left_out if one.what == "rows")
    assert kept is not None
    assert number.at_least is not None
    assert number.at_most is not None
    assert number.at_least <= 4 * (90 - kept) + sum(max(0, 1 + p % 6 - kept) for p in range(PERSONS)) <= number.at_most
    with_where = curator.ask(WHERE, "0.5")
    assert not [one for one in with_where.left_out if one.at_least is not None]


def test_what_was_free_stays_free(curator: Curator) -> None:
    """The same question at the same price, at less, without a price, and after another profile."""
    first = curator.ask(COUNT, "0.5")
    curator.profile(epsilon=100)
    again = curator.ask(COUNT, "0.5")
    assert not again.charged
    assert again.rows == first.rows
    assert not curator.ask(COUNT, "0.2").charged
    other = curator.ask(COUNT, "0.7")
    assert other.charged
    curator.profile(epsilon=50)
    for price in ("0.7", "0.6", None):
        later = curator.ask(COUNT, price)
        assert not later.charged
        assert later.rows == other.rows


BOTH = "SELECT g, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY g"
ONE = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"


def test_what_another_question_measured_stays_free(tmp_path: Path) -> None:
    """An answer made of what was measured for another question, before a profile and after it, and whoever opens the
    ledger later: then each stored measurement is planned anew, at the limits it was measured with."""

    def opened() -> Curator:
        return Curator({"t": table()}, epsilon=1000, ledger=tmp_path / "l")

    with opened() as curator:
        first = curator.ask(BOTH, "1", request="first")
        before = curator.ask(ONE, "0.2")
        assert first.charged
        assert not before.charged
        curator.profile(epsilon=100, columns=["v"])
        assert limit_of(curator, ONE, "0.2") != 90
        assert curator.ask(BOTH, "1").rows == first.rows
        assert curator.ask(BOTH, "1", request="first").rows == first.rows
        assert curator.ask(ONE, "0.2").rows == before.rows
        later = curator.ask(BOTH, "2")
        assert later.charged
        curator.profile(epsilon=50)
        used = curator.budget.used
    with opened() as curator:
        assert curator.explain(ONE, "0.2").earlier == 1
        assert curator.ask(BOTH, "1", request="first").rows == first.rows
        assert curator.ask(BOTH, "1").rows == first.rows
        assert curator.ask(BOTH, "2").rows == later.rows
        assert curator.ask(BOTH).rows == later.rows
        assert curator.ask(BOTH, "1.5").rows == later.rows
        assert curator.budget.used == used


def test_answers_from_cells_stay_free_beside_a_profile() -> None:
    """Where each person has one row there is no limit to choose, and cells are added up as ever."""
    frame = pyarrow.table({"w": ["a", "b", "c"] * 100, "pay": list(range(300))})
    columns = {"w": {"values": ["a", "b", "c"], "nulls": False}, "pay": {"type": "integer", "min": 0, "max": 1000}}
    people = Table(frame, one_row_per_person=True, columns=columns)
    cells = "SELECT COUNT(*) AS n, SUM(pay) AS s FROM people WHERE w IN ('a', 'c')"
    with Curator({"t": table(), "people": people}, epsilon=1000) as curator:
        curator.ask("SELECT w, COUNT(*) AS n, SUM(pay) AS s FROM people GROUP BY w", "10")
        before = curator.ask(cells, "1")
        assert not before.charged
        curator.profile("t", epsilon=100, columns=["v"])
        after = curator.ask(cells, "1")
        assert not after.charged
        assert after.rows == before.rows
        bought = curator.ask("SELECT AVG(pay) AS m FROM people WHERE w = 'a'", "20")
        assert bought.charged
        assert not curator.ask("SELECT AVG(pay) AS m FROM people WHERE w = 'b'", "20").charged
        with pytest.raises(QuestionError, match="there is no limit to choose"):
            curator.profile("people", epsilon=1)


def test_it_serves_whoever_paid(tmp_path: Path) -> None:
    """An analyst's account knows what was released to it; the total is charged once."""
    analysts = {"ana": 200, "bob": 200}
    with Curator({"t": table()}, epsilon=1000, analysts=analysts, ledger=tmp_path / "l", owner=True) as curator:
        curator.profile(epsilon=100, analyst="ana")

        def limit(analyst: str) -> int | None:
            found = curator.explain(COUNT, "0.5", analyst=analyst).left_out
            return next(one.limit for one in found if one.what == "rows")

        assert limit("bob") == 90
        assert limit("ana") != 90
        used = curator.budget.used
        curator.profile(epsilon=100, analyst="bob")
        assert curator.budget.used == used
        assert limit("bob") == limit("ana")
    with Curator({"t": table()}, epsilon=1000, analysts=analysts, ledger=tmp_path / "l", owner=True) as curator:
        assert limit("ana") != 90


def test_a_price_for_a_wanted_error_falls(curator: Curator) -> None:
    before = curator.explain(WHERE, within={"n": 1000})
    curator.profile(epsilon=100)
    after = curator.explain(WHERE, within={"n": 1000})
    assert after.price.epsilon < before.price.epsilon
    assert after.expected_error["n"] <= 1000


def test_refusals(curator: Curator) -> None:
    for said, where in (
        ({"keys": [["p"]]}, "keys"),
        ({"keys": "g"}, "keys"),
        ({"keys": [["g"], ["g"]]}, "keys"),
        ({"keys": [["zz"]]}, "keys"),
        ({"columns": ["p"]}, "columns"),
        ({"table": "u"}, "table"),
    ):
        with pytest.raises(QuestionError) as caught:
            curator.profile(**{"epsilon": 1, **said})
        assert caught.value.where == where
    with pytest.raises(BudgetError):
        curator.profile(epsilon=2000)
    assert curator.budget.used == 0


def test_the_choice_follows_from_what_was_released_alone(curator: Curator) -> None:
    """The same histogram, whatever the rows: the same plan, never above what is declared."""
    counts = (300, 60, 20, 4, 0, 0, 4)
    rows = Histogram(Wanted("rows"), tuple(range(65, 72)), counts, Fraction(1), Fraction(90))
    question = curator._planner.one_table(COUNT)
    with Curator({"t": table(several=2, heavy=9)}, epsilon=1000) as neighbour:
        other = neighbour._planner.one_table(COUNT)
        for epsilon in (Fraction(1, 100), Fraction(1), Fraction(50)):
            made = [
                at_best_limits(one.plan, one.request, [Profile((rows,))], Price(epsilon)) for one in (question, other)
            ]
            assert made[0].root == made[1].root
            assert made[0].chosen == made[1].chosen
            assert all(one.limit <= 90 for one in limits(made[0], question.table))
    alone = at_best_limits(question.plan, question.request, [], Price(Fraction(1)))
    assert alone is question.plan


def test_persons_who_are_found_along_a_key() -> None:
    """What is proposed is of persons, not of orders: each has at most 15 items, of at most 5 orders."""
    with related_tables.curator(related_tables.shop(1500), orders=10, items=60) as shop:
        assert shop.explain_profile("items", epsilon=1)[0] == "1 histogram: rows"
        release = shop.profile("items", epsilon=1, keys=[["kind"]])
        assert release.content["proposed"] == ["rows_per_person = 16", "groups_per_person = 4"]
        assert release.bounds[:3] == [
            "of items, rows with one value of order beyond 60 are left out where it is read",
            "of orders, rows of a person beyond 10 are left out where it is read",
            "rows without a person are left out",
        ]
        assert release.charged.epsilon == 1
        assert not shop.profile("items", epsilon=1, keys=[["kind"]]).charged
        for said in ({"keys": [["zz"]]}, {"columns": ["kind"]}, {"table": "customers"}):
            with pytest.raises(QuestionError):
                shop.profile(**{"table": "items", "epsilon": 1, **said})


def test_questions_along_a_key_have_the_limits_that_a_profile_makes_best() -> None:
    count = "SELECT kind, COUNT(*) AS n FROM items GROUP BY kind"
    with related_tables.curator(related_tables.shop(1500), orders=10, items=60, epsilon=1000) as shop:
        before = shop.explain(count, epsilon=1)
        shop.profile("items", epsilon=50, keys=[["kind"]])
        after, release = shop.explain(count, epsilon=1), shop.ask(count, epsilon=1)
        (rows,) = [one.limit for one in release.left_out if one.what == "rows"]
        assert rows < 20  # a customer has at most 15
        assert after.expected_error["n"] < before.expected_error["n"] / 3
        assert (
            release.loss
            == shop.ask(clause(f"max_rows_contributed = {rows}", count.removeprefix("SELECT ")), epsilon=1).loss
        )


def test_a_profile_says_nothing_of_what_a_subquery_leaves(curator: Curator) -> None:
    """The limit on rows may be the number that is best for groups: what one leaves out is not what the other does."""
    curator.profile(epsilon=100, keys=[["g"]])
    for text in (
        "SELECT g, COUNT(*) AS n FROM (SELECT g FROM t) GROUP BY g",
        "SELECT COUNT(*) AS n FROM (SELECT g FROM t)",
    ):
        assert not any(one.at_least is not None for one in curator.ask(text, "0.5").left_out)
    assert any(one.at_least is not None for one in curator.ask("SELECT COUNT(*) AS n FROM t", "0.5").left_out)


def test_rows_of_several_persons_have_no_profile() -> None:
    rows = pyarrow.table({"p": ["a", "b"], "k": [1, 1]})
    notes = pyarrow.table({"k": [1, 2], "v": [1, 2]})
    tables = {
        "t": Table(rows, person="p", rows_per_person=2, columns={"p": str, "k": int}),
        "notes": Table(notes, person="k -> t.k", rows_per_person=9, shared=True, columns={"k": int, "v": int}),
    }
    with Curator(tables, epsilon=5) as one:
        for ask in (lambda: one.profile("notes", epsilon=1), lambda: one.publish("notes", epsilon=1)):
            with pytest.raises(QuestionError, match="several persons"):
                ask()
