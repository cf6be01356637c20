"""A request id belongs to one question of one account: its retry gets what it got, and another question is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest

import discreet
from cell_tools import FIRST, table
from discreet.curator.lookup import Lookup
from discreet.curator.measuring import Measuring
from discreet.trusted.ledger.ledger import PIECE
from discreet.trusted.ring_a.loss import Pure


@pytest.fixture
def curator() -> Iterator[discreet.Curator]:
    with discreet.Curator({"t": table()}, epsilon=1e20, delta=1e-6) as one:
        yield one


def test_a_retry_gives_the_same_numbers(curator: discreet.Curator) -> None:
    text = "SELECT COUNT(*) AS n FROM t WHERE ward = 'a' AND sex = 'm'"
    curator.ask(FIRST, epsilon=5)
    first = curator.ask(text, epsilon=0.5, request="r")
    curator.ask(text, epsilon=50, reuse=False)
    again = curator.ask(text, epsilon=0.5, request="r")
    unseen = "SELECT COUNT(*) AS n FROM t WHERE ward = 'b' AND sex = 'f' AND pay > {}"
    curator.ask(unseen.format(1).replace("'b'", "'c'"), epsilon=0.5)
    looked = [curator.ask(unseen.format(1), epsilon=0.5, request="s") for _ in range(2)]
    assert looked[0].intervals == looked[1].intervals
    assert not looked[0].charged
    assert not first.charged
    assert (again.rows, again.intervals, bool(again.charged)) == (first.rows, first.intervals, False)
    with pytest.raises(discreet.QuestionError, match="another question"):
        curator.ask("SELECT COUNT(*) AS n FROM t WHERE pay > 3", epsilon=1, request="r")


@pytest.mark.parametrize("paid", [True, False])
def test_a_request_belongs_to_one_question_also_where_one_stored_answer_holds_several(
    curator: discreet.Curator, *, paid: bool
) -> None:
    text, by = "SELECT COUNT(*) AS n FROM t WHERE ward = '{}' AND sex = 'm'", "SELECT COUNT(*) AS n FROM t"
    if not paid:
        curator.ask(FIRST, epsilon=5)
    first = curator.ask(text.format("a"), epsilon=0.5, request="r")
    assert bool(first.charged) is paid
    curator.ask(text.format("b"), epsilon=0.5, request="s")
    before = curator.ledger.head
    others = [text.format("b"), FIRST, f"{by} WHERE sex = 'f' AND ward = 'a'", f"{by} WHERE pay > 3", by]
    for other in others:
        for epsilon in (0.5, 0.01, None):
            with pytest.raises(discreet.QuestionError) as refused:
                curator.ask(other, epsilon=epsilon, request="r")
            assert refused.value.code in ("request", "price")
            assert epsilon is None or "this request id belongs to another question" in refused.value.message
    with pytest.raises(discreet.QuestionError, match="another question"):
        curator.ask(text.format("a"), epsilon=0.5, request="s")
    assert curator.ledger.head == before
    same = (text.format("a"), f"{by} AS x WHERE 'm' = sex AND ward IN ('a')")
    for again in (curator.ask(one, epsilon=0.5, request="r") for one in same):
        assert (again.rows, again.intervals, bool(again.charged)) == (first.rows, first.intervals, False)


def test_a_request_is_of_a_question_with_an_outer_query_or_of_one_without(curator: discreet.Curator) -> None:
    """The tables of the former have names of their own, made of the request's."""
    plain = "SELECT COUNT(*) AS n FROM t"
    computed = f"SELECT n * 2 AS m FROM ({plain} WHERE age > 3) AS x"
    for first, other in ((plain, computed), (computed, plain)):
        name = f"of {first}"
        curator.ask(first, epsilon=1, request=name)
        head = curator.ledger.head
        with pytest.raises(discreet.QuestionError, match="belongs to another question"):
            curator.ask(other, epsilon=2, request=name)
        assert curator.ledger.head == head
        assert not curator.ask(first, epsilon=1, request=name).charged


INNER = "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward"
COMPUTED = f"SELECT MAX(n) AS m FROM ({INNER}) AS x"


@pytest.mark.parametrize("paid", [True, False])
def test_a_request_belongs_to_one_outer_query_of_the_same_tables(curator: discreet.Curator, *, paid: bool) -> None:
    if not paid:
        curator.ask(INNER, epsilon=1)
    first = curator.ask(COMPUTED, epsilon=1, request="r")
    assert bool(first.charged) is paid
    head = curator.ledger.head
    others = (
        f"SELECT MIN(n) AS m FROM ({INNER}) AS x",
        f"SELECT MAX(n) AS k FROM ({INNER}) AS x",
        f"SELECT MAX(n) AS m FROM ({INNER}) AS x, (SELECT COUNT(*) AS k FROM t) AS y",
        f"SELECT MAX(n) AS m FROM ({INNER} HAVING COUNT(*) > 3) AS x",
        "SELECT 1 AS one",
    )
    for other in others:
        for epsilon in (1, 0.5, None):
            with pytest.raises(discreet.QuestionError) as refused:
                curator.ask(other, epsilon=epsilon, request="r")
            assert refused.value.code in ("request", "price", "no-table", "syntax")
            assert epsilon is None or other == others[-1] or refused.value.code == "request"
    with pytest.raises(discreet.QuestionError, match="another question"):
        curator.select(INNER, epsilon=1, request="r")
    assert curator.ledger.head == head
    assert [one.question for one in curator.ledger.entries() if one.status == "computed"] == [COMPUTED]
    for text in (COMPUTED, COMPUTED.lower().replace("select", " SELECT\n"), f"/* again */ {COMPUTED}"):
        again = curator.ask(text, epsilon=1, request="r")
        assert (again.rows, again.intervals, bool(again.charged)) == (first.rows, first.intervals, False)
    curator.ledger.verify()


def test_of_two_processes_with_one_request_one_outer_query_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both measure the same table under this name; what is computed of it is another number."""
    with (
        discreet.Curator({"t": table()}, epsilon=100, ledger=tmp_path / "l") as one,
        discreet.Curator({"t": table()}, epsilon=100, ledger=tmp_path / "l") as other,
    ):
        real, got = Measuring.measured, []

        def then_asked(measuring: Measuring, *said: Any, **more: Any) -> Any:
            found = real(measuring, *said, **more)
            if measuring is one._answering.measuring:
                got.append(other.ask(f"SELECT MIN(n) AS m FROM ({INNER}) AS x", epsilon=1, request="r"))
            return found

        monkeypatch.setattr(Measuring, "measured", then_asked)
        with pytest.raises(discreet.QuestionError, match="another question"):
            one.ask(COMPUTED, epsilon=1, request="r")
        assert [bool(release.charged) for release in got] == [False]
        assert one.balance().total.spent.pure == 1


def test_a_request_of_an_older_version_keeps_its_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its ledgers the tables alone have names: the question is given again for nothing, and remembered."""
    with discreet.Curator({"t": table()}, epsilon=100) as curator:
        with monkeypatch.context() as older:
            older.setattr(curator.ledger, "name_again", lambda *_: None)
            first = curator.ask(COMPUTED, epsilon=1, request="r")
        with pytest.raises(discreet.QuestionError, match="another question"):
            curator.ask(INNER, epsilon=1, request="r")
        again = curator.ask(COMPUTED, epsilon=1, request="r")
        assert (again.rows, bool(again.charged)) == (first.rows, False)
        with pytest.raises(discreet.QuestionError, match="another question"):
            curator.ask(f"SELECT MIN(n) AS m FROM ({INNER}) AS x", epsilon=1, request="r")


def test_of_two_processes_with_one_request_one_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each asks something else that the same stored answer holds, and looks before the other has written."""
    text = "SELECT COUNT(*) AS n FROM t WHERE ward = '{}' AND sex = 'm'"
    with (
        discreet.Curator({"t": table()}, epsilon=100, ledger=tmp_path / "l") as one,
        discreet.Curator({"t": table()}, epsilon=100, ledger=tmp_path / "l") as other,
    ):
        one.ask(FIRST, epsilon=5)
        real = Lookup.found

        def then_asked(*said: Any, **more: Any) -> Any:
            found = real(*said, **more)
            monkeypatch.setattr(Lookup, "found", real)
            other.ask(text.format("b"), epsilon=0.5, request="r")
            return found

        monkeypatch.setattr(Lookup, "found", then_asked)
        with pytest.raises(discreet.QuestionError, match="another question"):
            one.ask(text.format("a"), epsilon=0.5, request="r")


def test_a_retry_of_what_a_dearer_answer_gave_is_free_again() -> None:
    """Also of a question that is no sum of cells, as of rows of which a person may have several."""
    rows = pandas.DataFrame({"id": [f"p{number}" for number in range(50)], "ward": ["a", "b"] * 25})
    table = discreet.Table(rows, person="id", rows_per_person=2, columns={"id": str, "ward": ["a", "b"]})
    with discreet.Curator({"t": table}, epsilon=100) as curator:
        for number, text in enumerate(("SELECT COUNT(*) AS n FROM t", "SELECT COUNT(*) AS n FROM t WHERE id <> 'x'")):
            curator.ask(text, epsilon=1)
            first, again = (curator.ask(text, epsilon=0.4, request=f"r{number}") for _ in range(2))
            assert not first.charged
            assert (again.rows, again.intervals, bool(again.charged)) == (first.rows, first.intervals, False)
            with pytest.raises(discreet.QuestionError, match="another question"):
                curator.ask("SELECT COUNT(DISTINCT id) AS n FROM t", epsilon=0.4, request=f"r{number}")


@pytest.mark.parametrize(
    "other",
    [
        "SELECT COUNT(1) AS n FROM t WHERE t.age < 5",
        "select count( * ) as n from t where 5 > age",
        "SELECT COUNT(*) AS n FROM t WHERE age < 5 HAVING 3 < COUNT(*)",
    ],
)
def test_a_request_is_of_one_measurement_however_it_is_written(curator: discreet.Curator, other: str) -> None:
    one = curator.ask("SELECT COUNT(*) AS n FROM t WHERE age < 5", epsilon=1, request="r")
    again = curator.ask(other, epsilon=1, request="r")
    assert again.rows == one.rows
    assert not again.charged
    head = curator.ledger.head
    with pytest.raises(discreet.QuestionError, match="belongs to another question"):
        curator.ask("SELECT COUNT(*) AS n FROM t WHERE age < 6", epsilon=1, request="r")
    assert curator.ledger.head == head


def test_a_request_without_a_name_takes_no_others(curator: discreet.Curator) -> None:
    """Names of looks begin as if they were pieces of it."""
    curator.ask("SELECT COUNT(*) AS n FROM t WHERE age = 3", epsilon=1, request="")
    for _ in range(2):
        assert not curator.ask("SELECT COUNT(*) AS n FROM t WHERE age = 4", epsilon=1).charged


def test_of_a_plain_question_and_one_of_pieces_at_once_one_has_the_request(curator: discreet.Curator) -> None:
    """Whichever of them is reserved first: the other is refused there, however early both had looked."""
    ledger, loss = curator.ledger, Pure(1)
    for first, second in (("r", f"r{PIECE}1"), (f"s{PIECE}1", "s"), (f"t{PIECE}1", "t")):
        ledger.reserve(loss, question="one", key=f"one {first}", request=first)
        head = ledger.head
        with pytest.raises(discreet.QuestionError, match="belongs to another question"):
            ledger.reserve(loss, question="other", key=f"other {first}", request=second)
        assert ledger.head == head


def test_a_question_that_cannot_be_paid_binds_no_request_and_sees_nothing() -> None:
    """Where its first table is stored and free, and the second too dear; and where what is bought is put together with
    what is stored, whose noise stays unseen."""
    price = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={})"
    two = f"SELECT a.n + b.n AS m FROM (SELECT {price.format(0.5)} COUNT(*) AS n FROM t WHERE sex = 'm') AS a, "
    two += f"(SELECT {price.format(1)} COUNT(*) AS n FROM t WHERE pay < 40) AS b"
    waiting = "SELECT a.n + b.n AS m FROM (SELECT {} COUNT(*) AS n FROM t WHERE age < (SELECT MAX(n) - 1e6 FROM "
    waiting += "(SELECT {} COUNT(*) AS n FROM t WHERE sex = 'm') AS c)) AS a, (SELECT {} COUNT(*) AS n FROM t) AS b"
    with discreet.Curator({"t": table()}, epsilon=3, delta=1e-6) as one:
        one.ask("SELECT COUNT(*) AS n FROM t WHERE sex = 'm'", epsilon=0.5)
        used = one.budget.used
        with pytest.raises(discreet.BudgetError):  # one table waits for a released value: both are too dear together
            one.ask(waiting.format(*(price.format(each) for each in (1.5, 0.5, 1.5))))
        assert one.budget.used == used
        one.ask("SELECT COUNT(*) AS n FROM t WHERE pay > 50", epsilon=2.2)
        head = one.ledger.head
        with pytest.raises(discreet.BudgetError):
            one.ask(two, request="r")
        with pytest.raises(discreet.BudgetError):
            one.ask("SELECT COUNT(*) AS n FROM t WHERE sex = 'f'", epsilon=1, request="r")
        assert one.ledger.head == head
        seldom = one.ask("SELECT COUNT(*) AS n FROM t WHERE sex = 'f'", epsilon=0.6, request="r")
        assert 0 < seldom.charged.epsilon < 0.31


@pytest.mark.parametrize("request_name", ["\x1flook 0 0", "a\x1f1", "\n"])
def test_nobody_names_a_request_as_the_curator_does(curator: discreet.Curator, request_name: str) -> None:
    with pytest.raises(discreet.QuestionError, match="control character"):
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1, request=request_name)
    assert curator.budget.used == 0
