"""Choices through the door: which group holds the most, and which counts reach a threshold."""

from __future__ import annotations

import json
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas
import pytest

import discreet
from discreet.accounting import Batch, Pure
from discreet.ledger import TOTAL
from discreet.mechanisms import NoisyMax
from discreet.selection.choice import select
from discreet.selection.watch import mechanism
from discreet.sql import lower
from discreet.trusted.ring_a.gate import Grant
from discreet.trusted.ring_a.groups import combined, dense
from discreet.trusted.ring_a.table import Table
from discreet.trusted.ring_b.watching import Watching, WatchMeasurement

COUNT = "SELECT city, COUNT(DISTINCT p) FROM t GROUP BY city"
ROWS = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"


def curator_of(frame: pandas.DataFrame, ledger: Path | None = None, **more: Any) -> discreet.Curator:
    columns = {"p": int, "city": ["a", "b", "c", "d"], "x": (0, 9)}
    table = discreet.Table(frame, person="p", rows_per_person=4, groups_per_person=1, columns=columns)
    return discreet.Curator({"t": table}, epsilon=1000, delta="1e-6", ledger=ledger, **more)


def persons(counts: dict[str, int]) -> pandas.DataFrame:
    rows = [(index, city, 1.0) for city, count in counts.items() for index in range(count)]
    return pandas.DataFrame(rows, columns=["p", "city", "x"]).astype({"p": int, "city": str})


@pytest.fixture(scope="module")
def curator() -> Any:
    with curator_of(persons({"a": 300, "b": 200, "c": 100})) as curator:
        yield curator


def test_the_largest_groups(curator: discreet.Curator) -> None:
    """ε = 5, counts 100 apart: another order has probability below 1e-100."""
    assert curator.select(COUNT, epsilon=5).rows == [{"city": "a"}]
    assert [row["city"] for row in curator.select(COUNT, epsilon=15, k=3).rows] == ["a", "b", "c"]
    release = curator.select(COUNT, epsilon=5, gap=True)
    assert release.columns == ["city", "gap"]
    assert abs(release.rows[0]["gap"] - 100) < 20
    assert release.to_pandas()["city"].tolist() == ["a"]
    assert "city" in repr(release)
    assert release.intervals == [{}]


def test_a_person_in_every_group_counts_in_every_group(curator: discreet.Curator) -> None:
    """`groups_per_person` bounds sums; a choice among counts needs no such bound: everybody of b is in a too."""
    checked = lower(COUNT, curator.declaration)
    table = curator.declaration.tables["t"]
    call = select(checked, COUNT, table, k=1, epsilon=Pure(1).epsilon, gap=False)
    keys, totals = dense(curator._engine.run(call.plan.root, table), call.plan)
    assert dict(zip((key[0] for key in keys), combined(call.plan.parts[0].vectors[0], totals), strict=True)) == {
        "a": 300,
        "b": 200,
        "c": 100,
        "d": 0,
        None: 0,
    }


def counts_of(frame: pandas.DataFrame, question: str) -> tuple[list[int], NoisyMax]:
    with curator_of(frame) as curator:
        table: Table = curator.declaration.tables["t"]
        call = select(lower(question, curator.declaration), question, table, k=1, epsilon=Pure(1).epsilon, gap=False)
        curator._holdings.load()
        _, totals = dense(curator._engine.run(call.plan.root, table), call.plan)
        assert isinstance(call.mechanism, NoisyMax)
        return combined(call.plan.parts[0].vectors[0], totals), call.mechanism


@pytest.mark.parametrize("question", [COUNT, ROWS, "SELECT city, COUNT(x) FROM t GROUP BY city"])
def test_one_person_moves_all_counts_the_same_way_within_the_sensitivity(question: str) -> None:
    """Neighbours through the real engine: a person with far more rows and groups than allowed."""
    base = persons({"a": 3, "b": 2})
    rows = [(999, city, 5.0) for city in ("a", "b", "c", "d", "z", None) for _ in range(30)]
    more = pandas.concat([base, pandas.DataFrame(rows, columns=["p", "city", "x"])])
    before, mechanism = counts_of(base, question)
    moved = 0
    for _ in range(5):  # rows are limited at random, and with probability 1/81 to those of no group
        after, _ = counts_of(more, question)
        changes = [b - a for a, b in zip(before, after, strict=True)]
        assert all(0 <= change <= mechanism.sensitivity for change in changes)
        moved += sum(changes)
    assert moved > 0
    assert mechanism.sensitivity == (1 if question == COUNT else 4)
    assert mechanism.monotone


@pytest.mark.power
def test_a_choice_is_as_random_as_its_mechanism() -> None:
    """Two groups a person apart at ε = 1: the larger one wins with 1 − e^(−1)/2 = .816 (two empty groups matter by less
    than 1e-20). 1,000 draws through the engine: 756 to 876 but for p < 1e-6; with noise at half, 932 ± 8."""
    with curator_of(persons({"a": 51, "b": 50})) as pair:
        table = pair.declaration.tables["t"]
        call = select(lower(COUNT, pair.declaration), COUNT, table, k=1, epsilon=Pure(1).epsilon, gap=False)
        wins = sum(call.measurement.draw(pair._engine).keys == (("a",),) for _ in range(1000))
        assert 756 <= wins <= 876


def test_the_same_choice_again_is_free(curator: discreet.Curator) -> None:
    first = curator.select(COUNT, epsilon="0.25")
    spent = curator.ledger.filter(TOTAL).spent
    again = curator.select(COUNT, epsilon="0.25")
    assert (again.rows, bool(again.charged)) == (first.rows, False)
    assert curator.ledger.filter(TOTAL).spent == spent
    assert first.charged.epsilon == 0.25
    assert curator.select(COUNT, epsilon="0.25", k=2).charged
    losses = [entry.loss for entry in curator.ledger.entries() if entry.kind == "reserve"]
    assert losses[-1] == Batch((Pure("0.125"), Pure("0.125")))


@pytest.mark.parametrize(
    ("question", "more", "where"),
    [
        ("SELECT COUNT(*) FROM t", {}, "GROUP BY"),
        ("SELECT p, COUNT(*) FROM t GROUP BY p", {}, "GROUP BY"),
        ("SELECT city, SUM(x) FROM t GROUP BY city", {}, "SELECT"),
        ("SELECT city, COUNT(*), COUNT(x) FROM t GROUP BY city", {}, "SELECT"),
        ("SELECT city, COUNT(*) AS n FROM t GROUP BY city ORDER BY n DESC", {}, "HAVING"),
        ("SELECT city, COUNT(*) AS n FROM t GROUP BY city HAVING n > 4", {}, "HAVING"),
        (COUNT, {"k": 0}, "k"),
        (COUNT, {"k": 6}, "k"),
        (COUNT, {"k": True}, "k"),
        (COUNT, {"k": 2, "gap": True}, "gap"),
    ],
)
def test_choices_that_are_none(question: str, more: dict[str, Any], where: str, curator: discreet.Curator) -> None:
    head = curator.ledger.head
    with pytest.raises(discreet.QuestionError) as refused:
        curator.select(question, epsilon=1, **more)
    assert refused.value.where == where
    assert curator.ledger.head == head


# above threshold


def ask(city: str) -> str:
    return f"SELECT COUNT(DISTINCT p) FROM t WHERE city = '{city}'"


def test_a_run_says_which_counts_reach_the_threshold(tmp_path: Path) -> None:
    """ε = 20: the half width is far below 40."""
    with curator_of(persons({"a": 300, "b": 200, "c": 100}), tmp_path / "t.ledger") as curator:
        with curator.above_threshold(150, epsilon=20, limit=2) as run:
            assert run.half_width(6) < 40
            spent = curator.ledger.filter(TOTAL).spent
            assert spent.pure == 20
            assert [run.ask(ask(city)) for city in ("c", "d", "c", "a", "d")] == [False, False, False, True, False]
            assert curator.ask("SELECT COUNT(*) FROM t", epsilon=1).rows  # beside it
            assert run.ask(ask("b"))
            assert run.halted
            with pytest.raises(discreet.QuestionError, match="ended"):
                run.ask(ask("a"))
        assert curator.ledger.filter(TOTAL).spent.pure == 21
        entries = [entry for entry in curator.ledger.entries() if entry.question.startswith("above threshold")]
        assert [entry.status for entry in entries] == ["committed"]
        assert curator.ledger.verify().unanswered == 0
        second = curator.above_threshold(150, epsilon=20, limit=2)  # never a repeat
        assert curator.ledger.filter(TOTAL).spent.pure == 41
        second.close()
        second.close()
        with pytest.raises(discreet.QuestionError, match="ended"):
            second.ask(ask("a"))


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM t",  # a person may have four rows
        "SELECT SUM(x) FROM t",
        "SELECT city, COUNT(DISTINCT p) FROM t GROUP BY city",
        "SELECT COUNT(DISTINCT p) AS a, COUNT(*) AS b FROM t",
        "SELECT COUNT(DISTINCT p) AS n FROM t HAVING n > 3",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(DISTINCT p) FROM t",
        "SELECT 1",
        "no SQL",
    ],
)
def test_questions_that_a_run_refuses(question: str, curator: discreet.Curator) -> None:
    with curator.above_threshold(10, epsilon=1) as run:
        with pytest.raises(discreet.QuestionError):
            run.ask(question)
        assert not run.halted
        assert run.replies == []


def test_a_larger_sensitivity_allows_more(curator: discreet.Curator) -> None:
    with curator.above_threshold(10**6, epsilon=5, sensitivity=4) as run:
        assert run.ask("SELECT COUNT(*) FROM t") is False


@pytest.mark.parametrize(
    "wrong",
    [{"threshold": 1.5}, {"limit": 0}, {"sensitivity": 0}, {"threshold": True}, {"epsilon": 0}, {"epsilon": None}],
)
def test_runs_that_are_none(wrong: dict[str, Any], curator: discreet.Curator) -> None:
    head = curator.ledger.head
    with pytest.raises(discreet.QuestionError):
        curator.above_threshold(**{"threshold": 5, "epsilon": 1, **wrong})
    assert curator.ledger.head == head
    with pytest.raises(discreet.BudgetError):
        curator.above_threshold(5, epsilon=10**6)


def test_a_failure_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with curator_of(persons({"a": 30})) as curator:
        run = curator.above_threshold(10, epsilon=5)
        curator._holdings.load()
        with monkeypatch.context() as patch:
            patch.setattr(type(curator._engine), "run", lambda *_: 1 / 0)
            with pytest.raises(discreet.EngineError) as failed:
                run.ask(ask("a"))
        assert failed.value.__context__ is None
        assert run.halted
        with pytest.raises(discreet.QuestionError, match="ended"):
            run.ask(ask("a"))
        assert curator.ledger.verify().unanswered == 0


def test_threads_share_one_limit() -> None:
    with curator_of(persons({"a": 500})) as curator:
        run = curator.above_threshold(10, epsilon=50, limit=3)
        replies: list[bool] = []

        def work() -> None:
            for _ in range(5):
                try:
                    replies.append(run.ask(ask("a")))
                except discreet.QuestionError:
                    return

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert replies == [True] * 3


def test_a_closed_run_has_its_replies_in_the_ledger() -> None:
    with curator_of(persons({"a": 500})) as curator:
        with curator.above_threshold(10, epsilon=50) as run:
            run.ask(ask("d"))
        with curator.ledger._file.read() as transaction:
            (data,) = [
                row[0]
                for row in transaction.connection.execute("SELECT answer FROM entries WHERE kind = 'commit'").fetchall()
            ]
        assert json.loads(data) == {"replies": [[ask("d"), False]]}


def test_the_door_asks_no_count_that_a_person_moves_by_more() -> None:
    """Beneath the checks of the text: a plan that moves by 4 is refused where 3 are allowed, and nothing is asked."""
    with curator_of(persons({"a": 300})) as curator:
        curator._holdings.load()
        table = curator.declaration.tables["t"]
        plan = lower("SELECT COUNT(*) FROM t", curator.declaration).plan
        groups = lower(COUNT, curator.declaration).plan
        for allowed in (3, 4):
            kind = mechanism(10**6, Fraction(5), 1, allowed)
            grant = curator._door.open(
                WatchMeasurement(kind), analyst=TOTAL, question="q", key=str(allowed), request=None
            )
            assert isinstance(grant, Grant)
            run = Watching(grant)
            with pytest.raises(ValueError, match="grant"):
                Watching(grant)
            with pytest.raises(ValueError, match="only one monotone count"):
                run.ask(groups, table)
            if allowed == 3:
                with pytest.raises(ValueError, match="by more"):
                    run.ask(plan, table)
            else:
                assert run.ask(plan, table) is False


def test_a_run_is_reserved_at_the_price_of_its_mechanism() -> None:
    with curator_of(persons({"a": 3})) as curator:
        grant = curator._door.open(
            WatchMeasurement(mechanism(5, Fraction(2), 1, 1)), analyst=TOTAL, question="q", key="k", request=None
        )
        assert isinstance(grant, Grant)
        (entry,) = [entry for entry in curator.ledger.entries() if entry.loss is not None]
        assert entry.loss is not None
        assert entry.loss.pure == 2
