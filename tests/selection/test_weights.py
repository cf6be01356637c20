"""Private multiplicative weights through the door: what is counted, what it costs, and what is refused."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import discreet
from discreet.accounting import Pure
from discreet.ledger import TOTAL
from discreet.selection.weights import WeightsRun, weighted
from discreet.sql import lower
from discreet.textbook import Database
from discreet.trusted.ring_a.table import Type
from discreet.trusted.ring_c.coding import rows_of_person
from discreet.trusted.ring_c.weighing import Weighing

CITIES = ["a", "b", "ü 'x'"]


def frame_of(rows: int = 600) -> pandas.DataFrame:
    drawn = np.random.default_rng(5)
    return pandas.DataFrame(
        {
            "city": drawn.choice([*CITIES, "elsewhere", None], rows, p=[0.5, 0.2, 0.1, 0.1, 0.1]),
            "age": drawn.integers(0, 6, rows),
            "well": drawn.choice([True, False], rows),
            "weight": drawn.choice([0.5, 1.0, 2.25], rows),
        }
    )


COLUMNS: dict[str, Any] = {
    "city": CITIES,
    "age": {"type": "integer", "min": 0, "max": 5},
    "well": bool,
    "weight": {"type": "number", "values": [0.5, 1.0, 2.25]},
    "free": str,
}


def curator_of(frame: pandas.DataFrame, ledger: Path | None = None, **more: Any) -> discreet.Curator:
    frame = frame.assign(free="x")
    columns = COLUMNS | ({"p": int} if more else {})
    table = discreet.Table(frame, **(more or {"one_row_per_person": True}), columns=columns)
    return discreet.Curator({"t": table}, epsilon=10**6, delta="1e-6", ledger=ledger)


@pytest.fixture(scope="module")
def curator() -> Iterator[discreet.Curator]:
    with curator_of(frame_of()) as curator:
        yield curator


def open_run(curator: discreet.Curator, *columns: str, **more: Any) -> WeightsRun:
    settings = {"epsilon": 10_000, "questions": 50, "alpha": "0.5", "beta": "1e-9"} | more
    return curator.multiplicative_weights("t", columns or ["city", "age", "well", "weight"], **settings)


PREDICATES: list[tuple[str, Callable[[pandas.DataFrame], Any]]] = [
    ("city = 'a'", lambda f: f.city == "a"),
    ("city = 'ü ''x'''", lambda f: f.city == CITIES[2]),
    ("city IS NULL", lambda f: ~f.city.isin(CITIES)),  # what is not declared counts as NULL
    ("age BETWEEN 2 AND 3 AND NOT well", lambda f: f.age.between(2, 3) & ~f.well),
    ("weight / 2 > 0.4 OR age * age = 16", lambda f: (f.weight > 0.8) | (f.age == 4)),
    ("city IN ('a', 'b') AND age + weight >= 3", lambda f: f.city.isin(["a", "b"]) & (f.age + f.weight >= 3)),
    (
        "CASE WHEN well THEN age > 2 ELSE LENGTH(city) = 1 END",
        lambda f: f.age.gt(2).where(f.well, f.city.isin(["a", "b"])),
    ),
    ("FALSE", lambda f: f.age < 0),
]


@pytest.mark.parametrize(("predicate", "truth"), PREDICATES, ids=[text for text, _ in PREDICATES])
def test_the_cells_of_a_question_hold_the_rows_it_counts(
    curator: discreet.Curator, predicate: str, truth: Callable[[pandas.DataFrame], Any]
) -> None:
    """Exactly: the histogram in the door times the cells of the question, against pandas."""
    call = weighted(
        curator.declaration, "t", ["well", "weight", "age", "city"], epsilon=1, questions=5, alpha="0.5", beta="0.1"
    )
    engine, table = curator._engine, call.table
    rows = engine.code(call.coding, table)
    (exact,) = engine.marginals(rows, [call.coding.names])
    engine.uncode(rows)
    with open_run(curator) as run:
        wanted = run._predicate(lower(f"SELECT COUNT(*) FROM t WHERE {predicate}", curator.declaration))
    assert wanted is not None
    cells = engine.cells(call.coding, wanted, table)
    assert set(np.unique(cells)) <= {0, 1}
    assert cells.shape == exact.shape == call.coding.sizes
    assert int((cells * exact).sum()) == int(np.asarray(truth(frame_of()), bool).sum())
    assert int(exact.sum()) == 600  # every row is in a cell


def test_answers_stay_within_what_the_run_says(curator: discreet.Curator) -> None:
    """At ε = 100,000 noise is next to nothing: each count is answered within α·n and a few persons."""
    frame = frame_of()
    with open_run(curator, alpha="0.1", epsilon=10**5) as run:
        assert run.half_width < 100
        for predicate, truth in PREDICATES:
            true = int(np.asarray(truth(frame), bool).sum())
            assert abs(run.ask(f"SELECT COUNT(*) FROM t WHERE {predicate}") - true) <= run.half_width
        assert abs(run.ask("SELECT COUNT(*) AS n FROM t") - 600) <= run.half_width
        assert len(run.answers) == len(PREDICATES) + 1
    assert run.ended
    with pytest.raises(discreet.QuestionError, match="has ended"):
        run.ask("SELECT COUNT(*) FROM t")


def test_a_run_costs_its_price_once_and_is_stored(tmp_path: Path) -> None:
    with curator_of(frame_of(), tmp_path / "ledger.db") as curator:
        with open_run(curator, "city", epsilon=3, questions=4) as run:
            for _ in range(4):
                run.ask("SELECT COUNT(*) FROM t WHERE city = 'a'")
            assert run.ended  # all questions were asked
        assert curator.ledger.filter(TOTAL).spent.pure == 3
        (entry,) = [entry for entry in curator.ledger.entries() if entry.kind == "reserve"]
        assert entry.status == "committed"
        assert entry.question == "multiplicative weights over city of t, 4 questions"
        run.close()
        assert curator.ledger.filter(TOTAL).spent.pure == 3
        with open_run(curator, "city", epsilon=3):
            pass
        assert curator.ledger.filter(TOTAL).spent.pure == 6  # another run is another price


REFUSED: list[tuple[str, str]] = [
    ("SELECT SUM(age) FROM t", "one count"),
    ("SELECT COUNT(*), COUNT(*) FROM t", "one count"),
    ("SELECT COUNT(age) FROM t", "one count"),
    ("SELECT city, COUNT(*) FROM t GROUP BY city", "one count"),
    ("SELECT 2 * COUNT(*) FROM t", "one count"),
    ("SELECT COUNT(*) FROM t HAVING COUNT(*) > 3", "one count|not"),
    ("SELECT COUNT(*) FROM (SELECT age FROM t)", "alone"),
    ("SELECT COUNT(*) FROM t WHERE free = 'x'", "free is not a column of the run"),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*) FROM t", "price was paid"),
    ("SELECT COUNT(*) FROM nowhere", "nowhere"),
]


@pytest.mark.parametrize(("question", "words"), REFUSED, ids=range(len(REFUSED)))
def test_other_questions_are_refused_and_the_run_goes_on(curator: discreet.Curator, question: str, words: str) -> None:
    with open_run(curator, questions=1) as run:
        with pytest.raises(discreet.QuestionError, match=words):
            run.ask(question)
        assert not run.ended
        run.ask("SELECT COUNT(*) FROM t WHERE well")
        assert run.ended


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"columns": ["free"]}, "columns"),
        ({"columns": []}, "columns"),
        ({"columns": ["city", "city"]}, "columns"),
        ({"columns": "city"}, "columns"),
        ({"table": "nowhere"}, "table"),
        ({"questions": 0}, "questions"),
        ({"questions": "many"}, "questions"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": "0.00001"}, "alpha"),
        ({"alpha": None}, "alpha"),
        ({"beta": 1}, "beta"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 10**8}, "epsilon"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_spent(settings: dict[str, Any], where: str) -> None:
    with curator_of(frame_of(10)) as curator:
        given: dict[str, Any] = {"table": "t", "columns": ["city"], "epsilon": 1} | settings
        with pytest.raises(discreet.QuestionError) as refusal:
            curator.multiplicative_weights(given.pop("table"), given.pop("columns"), **given)
        assert refusal.value.where == where
        assert curator.ledger.filter(TOTAL).spent.pure == 0


def test_too_many_cells_and_too_small_a_budget_are_refused() -> None:
    columns = {f"c{place}": {"type": "integer", "min": 0, "max": 99} for place in range(3)}
    frame = pandas.DataFrame({name: [1, 2] for name in columns})
    table = discreet.Table(frame, one_row_per_person=True, columns=columns)
    with discreet.Curator({"t": table}, epsilon=1) as curator:
        with pytest.raises(discreet.QuestionError, match=r"1,030,301 combinations"):
            curator.multiplicative_weights("t", ["c0", "c1", "c2"], epsilon=1)
        with pytest.raises(discreet.BudgetError):
            curator.multiplicative_weights("t", ["c0"], epsilon=2)
        assert curator.ledger.filter(TOTAL).spent.pure == 0


def exact_of(frame: pandas.DataFrame) -> Database:
    """What a run would keep."""
    with curator_of(frame, person="p", rows_per_person=4, groups_per_person=2) as curator:
        call = weighted(curator.declaration, "t", ["city", "well"], epsilon=1, questions=5, alpha="0.5", beta="0.1")
        assert call.construction.rows_per_person == rows_of_person(call.table) == 4
        assert call.construction.rows_loss.sensitivity == 4
        assert call.construction.watch(0).sensitivity == 4
        assert call.construction.loss() == Pure(1)
        rows = curator._engine.code(call.coding, call.table)
        (cells,) = curator._engine.marginals(rows, [call.coding.names])
        return Database(call.construction.universe, cells.reshape(-1).tolist())


def test_one_person_moves_the_histogram_by_its_declared_rows() -> None:
    """Through the real engine: a person with a hundred rows against a limit of four."""
    base = frame_of(20).assign(p=range(20))
    person = pandas.concat([frame_of(100)]).assign(p=99)
    before, after = exact_of(base), exact_of(pandas.concat([base, person]))
    moved = [b - a for a, b in zip(before.counts, after.counts, strict=True)]
    assert all(step >= 0 for step in moved)
    assert sum(moved) == 4


def test_a_failure_ends_the_run_and_stays_charged(curator: discreet.Curator) -> None:
    spent = curator.ledger.filter(TOTAL).spent.pure
    run = open_run(curator, "city", epsilon=7)
    weighing: Weighing = run._weighing
    weighing._run._database = None  # what reads it fails
    with pytest.raises(discreet.EngineError) as failure:
        run.ask("SELECT COUNT(*) FROM t")
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    assert run.ended
    assert spent is not None
    assert curator.ledger.filter(TOTAL).spent.pure == spent + 7
    assert curator.lift() == ("t",)


def test_nothing_private_is_shown(curator: discreet.Curator) -> None:
    with open_run(curator, "city") as run:
        run.ask("SELECT COUNT(*) FROM t")
        assert repr(run) == "<multiplicative weights, 1 answers, open>"
        shown = repr(run._weighing) + repr(run._weighing._run)
        assert "600" not in re.sub(r"0x[0-9a-f]+", "", shown)  # an address may hold any digits


def test_an_empty_table_and_a_run_beside_other_questions() -> None:
    with curator_of(frame_of(0).astype({"city": str})) as curator, open_run(curator, "city", "well") as run:
        assert abs(run.ask("SELECT COUNT(*) FROM t WHERE well")) <= run.half_width
        curator.ask("SELECT COUNT(*) FROM t", epsilon=1)
        assert abs(run.ask("SELECT COUNT(*) FROM t WHERE NOT well")) <= run.half_width


def test_dates_are_counted_by_their_declared_values() -> None:
    days = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    frame = pandas.DataFrame({"day": pandas.to_datetime([days[0], days[1], days[1], None])})
    columns = {"day": {"type": "date", "values": days}}
    table = discreet.Table(frame, one_row_per_person=True, columns=columns)
    with discreet.Curator({"t": table}, epsilon=10**6) as curator:
        assert curator.declaration.tables["t"].columns[0].type is Type.DATE
        with curator.multiplicative_weights("t", ["day"], epsilon=10**5, alpha="0.1", beta="1e-9") as run:
            found = [run.ask(f"SELECT COUNT(*) FROM t WHERE day {one}") for one in ("= DATE '2024-01-02'", "IS NULL")]
    assert [abs(a - b) <= run.half_width for a, b in itertools.zip_longest(found, [2, 1])] == [True, True]
