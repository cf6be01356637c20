"""`curator.publish`: whole runs over the real engine and ledger, and all that can go wrong with them."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import signal
import tomllib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet
import related_tables
from discreet.accounting import compose
from discreet.catalog import declare
from discreet.engines.duckdb.driver import DuckDB
from discreet.errors import BudgetError, EngineError, QuestionError
from discreet.markov import Domain
from discreet.synthesis import run
from discreet.synthesis.content import content
from discreet.synthesis.publication import PublishOptions, publication
from discreet.synthesis.schedule import held
from discreet.trusted.ring_a.curves import mu_of_budget
from discreet.trusted.ring_c import declared
from kinds import some

COLUMNS: dict[str, Any] = {
    "sex": {"type": "text", "values": ["F", "M"], "nulls": False},
    "age": {"type": "integer", "min": 0, "max": 99},
    "income": {"type": "number", "min": 0, "max": 100_000, "step": 0.01},
    "born": {"type": "date", "min": datetime.date(1920, 1, 1), "max": datetime.date(2020, 12, 31)},
    "seen": {
        "type": "timestamp",
        "min": datetime.datetime(2020, 1, 1),
        "max": datetime.datetime(2020, 12, 31),
    },
    "well": {"type": "boolean"},
    "town": {"type": "text"},
    "name": {"type": "text"},
    "score": {"type": "number"},
}
TOWNS = ["Ulm", "Köln", "Bonn", "O'Hara"]


def people(count: int, seed: int = 1) -> pd.DataFrame:
    """Made-up persons with dependent columns, NULLs, free texts."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], count)
    age = np.clip(rng.normal(np.where(sex == "F", 50, 35), 10), 0, 99).astype(int)
    income = np.where(rng.random(count) < 0.6, 0.0, np.round(rng.random(count) * age * 1000, 2))
    town = rng.choice(TOWNS, count, p=[0.6, 0.2, 0.15, 0.05]).astype(object)
    town[rng.random(count) < 0.1] = None
    day = pd.Timestamp("2020-01-01")
    return pd.DataFrame(
        {
            "sex": sex,
            "age": pd.array(np.where(rng.random(count) < 0.05, None, age.astype(object)), "Int64"),
            "income": income,
            "born": [day - pd.Timedelta(days=int(one) * 365) for one in age],
            "seen": [day + pd.Timedelta(seconds=int(one)) for one in rng.integers(0, 30_000_000, count)],
            "well": pd.array(rng.random(count) < 0.8, "boolean"),
            "town": town,
            "name": [f"person {one}" for one in range(count)],
            "score": rng.random(count),
        }
    )


def curator(frame: pd.DataFrame, *, epsilon: float = 10, columns: Any = None, **more: Any) -> discreet.Curator:
    known = {name: kind for name, kind in COLUMNS.items() if name in frame.columns} if columns is None else columns
    said = {"one_row_per_person": True, **more}
    return discreet.Curator(
        {"people": discreet.Table(frame, columns=known, **said)}, epsilon=epsilon, delta=1e-5, engine={"memory_gib": 4}
    )


@pytest.mark.power
def test_a_mixed_table_is_published_and_looks_like_the_real_one() -> None:
    frame = people(5000)
    with curator(frame) as holder:
        release = holder.publish("people", epsilon=4, rows=4000)
        assert len(release) == len(release.rows) == 4000
        assert release.columns == ["sex", "age", "income", "born", "seen", "well", "town"]
        assert set(release.columns_left_out) == {"name", "score"}
        made = release.to_pandas()
        assert abs(release.total - 5000) < 100
        assert abs((made.sex == "F").mean() - (frame.sex == "F").mean()) < 0.03
        assert abs(made.age.dropna().mean() - frame.age.dropna().mean()) < 3
        assert abs((made.income == 0).mean() - (frame.income == 0).mean()) < 0.08
        assert made.well.notna().all()  # no NULL was seen, so none is made
        assert made.town.isna().mean() == pytest.approx(0.1, abs=0.04)
        assert set(made.town.dropna()) <= {*TOWNS, "(other)"}
        women, men = made[made.sex == "F"].age.dropna().mean(), made[made.sex == "M"].age.dropna().mean()
        assert 9 < women - men < 21  # 15 in truth: the pair was kept
        assert made.born.min() >= datetime.date(1920, 1, 1)
        assert release.cost.epsilon == 4
        again = holder.publish("people", epsilon=4, rows=4000)
        assert again.rows == release.rows
        assert not again.charged
        assert "none is anybody" in type(release).__doc__ or release.bounds


def test_the_price_is_what_the_ledger_is_charged_and_nearly_a_whole_budget_fits() -> None:
    """A fifth of δ is kept for filters that take questions beside a table, so a table cannot have the last of it."""
    with curator(people(300), epsilon=1) as holder:
        holder.publish("people", epsilon="0.97", delta="9.7e-6", columns=["sex", "age", "town"])
        assert holder.budget.used <= 100
        with pytest.raises(BudgetError):
            holder.publish("people", epsilon=1, columns=["sex", "well"])


def declaration(**more: Any) -> Any:
    table = {"source": "t.csv", "columns": COLUMNS, "one_row_per_person": True, **more}
    return declare({"budget": {"epsilon": 10, "delta": Fraction(1, 10**6)}, "tables": {"people": table}})


@pytest.mark.parametrize("method", ["adaptive", "mst", "workload", "independent"])
def test_the_declared_batch_costs_the_price_and_no_more(method: str) -> None:
    call = publication(
        declaration(),
        PublishOptions(
            table="people",
            epsilon="0.7",
            delta="1e-7",
            method=method,
            workload=[["sex", "age"], ["well"]] if method == "workload" else None,
        ),
    )
    loss = call.declared.loss
    assert loss.mu_squared is not None
    assert compose([loss]).delta("0.7") <= 1e-7
    assert loss.mu_squared <= mu_of_budget(Fraction(7, 10), Fraction(1, 10**7)) ** 2
    assert loss.mu_squared >= Fraction(9, 10) * mu_of_budget(Fraction(7, 10), Fraction(1, 10**7)) ** 2


@pytest.mark.parametrize("epsilon", ["0.01", "1", "20"])
def test_a_target_costs_what_the_same_call_costs_without(epsilon: str) -> None:
    """What is charged differs in the sixth digit, as noise is rounded to as many, and is never more than the price."""
    asked: dict[str, Any] = {"table": "people", "epsilon": epsilon, "delta": "1e-7"}
    known = declaration(one_row_per_person=False, person="name", rows_per_person=3)
    without, with_one = (publication(known, PublishOptions(**asked, target=name)) for name in (None, "TOWN"))
    assert with_one.target == "town"
    assert without.cost == with_one.cost
    assert without.event_delta == with_one.event_delta
    price = mu_of_budget(Fraction(epsilon), Fraction("1e-7")) ** 2
    charged = [call.declared.loss.mu_squared for call in (without, with_one)]
    assert all(one is not None and one <= price for one in charged)
    assert float(charged[0] or 0) == pytest.approx(float(charged[1] or 0), rel=1e-5)
    assert without.parts != with_one.parts
    assert with_one.steps == without.steps


def test_the_batch_follows_from_the_declaration_alone() -> None:
    asked = PublishOptions(table="people", epsilon=1)
    first, second = (publication(declaration(), asked) for _ in range(2))
    assert first.parts == second.parts
    person = publication(declaration(one_row_per_person=False, person="name", rows_per_person=5), asked)
    assert person.look_sigma >= 4 * first.look_sigma


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"table": "nobody"}, "not declared"),
    ({"method": "magic"}, "method is one of"),
    ({"rows": 0}, "rows must be"),
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"columns": ["nothing"]}, "no declared column"),
    ({"columns": ["score"]}, "bounds are not declared"),
    ({"columns": []}, "no column"),
    ({"bins": {"sex": 3}}, "declared values"),
    ({"bins": {"age": [30, 20]}}, "not in ascending order"),
    ({"bins": {"age": 0}}, "bins"),
    ({"bins": {"age": [20, 6000]}}, "a bin of age begins above its max"),
    ({"bins": {"born": ["1950-01-01"]}}, "datetime.date(1970, 7, 2)"),
    ({"bins": {"age": "20"}}, "neither a number nor a list"),
    ({"bins": {"age": [20.5]}}, "not of its type"),
    ({"bins": {"town": 3}}, "town is a text, and bins are for numbers, dates and times → leave it out of bins"),
    ({"bins": {"score": 3}}, "score has no declared bounds → declare min and max of score"),
    ({"bins": {"other": 3}}, "no declared column"),
    ({"method": "workload"}, "marginals that you name"),
    ({"workload": [["sex", "sex"]]}, "not a valid list of sets"),
    ({"workload": ["sex"]}, "not a valid list of sets"),
    ({"workload": [["sex", "score"]]}, "not a valid list of sets"),
    ({"target": "nothing"}, "target is not a column of the synthetic table"),
    ({"target": ""}, "target is not a column of the synthetic table"),
    ({"target": "age", "columns": ["sex", "well"]}, "target is not a column of the synthetic table"),
    ({"target": "SCORE"}, "score cannot be published: its bounds are not declared"),
    ({"target": "wel"}, "'wel' is none → name one of sex, age, income, born, seen, well"),
    ({"target": "age", "columns": ["sex", "well"]}, "'age' is none → name one of sex, well"),
    ({"workload": [["sex", "wel"]], "columns": ["sex", "well"]}, "'wel' is none → name one of sex, well"),
    ({"workload": [["sex", "score"]]}, "'score' is none → name one of sex, age"),
    ({"table": {"people"}}, 'a set of names has no order → give a list: write publish(["patients", '),
    ({"table": ["people"]}, 'name one table, publish("people"); or at least two'),
    ({"table": []}, 'a list of at least two tables → name one table, publish("patients"); or at least two'),
    ({"target": 5}, "target is not the name of a column"),
    ({"target": ["sex"]}, "target is not the name of a column"),
    ({"target": "sex", "method": "mst"}, "method says otherwise"),
    ({"target": "sex", "workload": [["sex", "age"]]}, "workload says otherwise"),
    ({"tell": 5}, "must be callable"),
    ({"request": 5}, "not a string"),
    ({"request": 0}, "not a string"),
]


@pytest.mark.parametrize(("said", "words"), REFUSED)
def test_bad_calls_are_refused_and_cost_nothing(said: dict[str, Any], words: str) -> None:
    asked = {"table": "people", "epsilon": 1, **said}
    with curator(people(20)) as holder:
        with pytest.raises(QuestionError) as error:
            holder.publish(**asked)
        assert words in str(error.value)
        assert holder.budget.used == 0


@pytest.mark.parametrize("said", [{}, {"delta": "1e-9"}])
def test_a_price_below_the_least_says_which_epsilon_is_taken(said: dict[str, Any]) -> None:
    """Of a large budget the least price of noise is large, too: what is named is taken, and little less is not."""
    with curator(people(20), epsilon=100) as holder:
        asked = {"table": "people", "columns": ["sex", "age", "town"], **said}
        with pytest.raises(QuestionError, match="less than the least price of a measurement → write epsilon = ") as no:
            holder.publish(**asked, epsilon="0.01")
        told = Fraction(no.value.fix.split()[3].rstrip(","))
        assert (no.value.code, no.value.where) == ("price", "epsilon")
        assert Fraction(1, 50) < told < 2
        with pytest.raises(QuestionError, match="least price"):
            holder.publish(**asked, epsilon=told * Fraction(98, 100))
        assert holder.budget.used == 0
        holder.publish(**asked, epsilon=told)
        assert holder.budget.used > 0


def test_a_key_is_no_target() -> None:
    frame = people(20)
    columns = {"sex": {"type": "text", "values": ["F", "M"]}, "name": {"type": "text"}}
    with curator(frame, columns=columns, one_row_per_person=False, person="name", rows_per_person=1) as holder:
        with pytest.raises(QuestionError, match="name cannot be published: it names the person"):
            holder.publish("people", epsilon=1, target="name")
        with pytest.raises(QuestionError, match="target is said of a single table"):
            holder.publish(["people"], epsilon=1, target="sex")  # type: ignore[call-overload]
        assert holder.budget.used == 0


def test_a_budget_without_delta_is_refused() -> None:
    table = discreet.Table(people(10), columns={"sex": ["F", "M"]}, one_row_per_person=True)
    with discreet.Curator({"people": table}, epsilon=1) as holder, pytest.raises(QuestionError, match="delta"):
        holder.publish("people", epsilon=1)


ODD: list[tuple[str, Callable[[], pd.DataFrame], dict[str, Any]]] = [
    ("empty", lambda: people(5).head(0), {}),
    ("all NULL", lambda: people(200).assign(town=None, age=pd.array([None] * 200, "Int64")), {}),
    ("one row", lambda: people(1), {}),
    ("constant", lambda: people(200).assign(sex="F", age=30, town="Ulm"), {}),
    ("tiny price", lambda: people(50), {"epsilon": "0.1"}),
]


@pytest.mark.parametrize(
    ("frame", "said"),
    some([(make, said) for _, make, said in ODD], pytest.mark.power, quick=2),
    ids=[name for name, _, _ in ODD],
)
def test_odd_tables_are_published_too(frame: Callable[[], pd.DataFrame], said: dict[str, Any]) -> None:
    with curator(frame()) as holder:
        release = holder.publish(
            "people", **{"epsilon": 1, "columns": ["sex", "age", "town", "well"], "rows": 50, **said}
        )
        assert len(release) == 50
        assert repr(release)
        for row in release.rows:
            assert row["sex"] in ("F", "M")
            assert row["age"] is None or 0 <= row["age"] <= 99


def test_a_column_with_as_many_values_as_rows_is_left_out() -> None:
    with curator(people(2000)) as holder:
        release = holder.publish("people", epsilon=2, columns=["sex", "name"], rows=10)
    assert release.columns == ["sex"]
    assert "shared by enough persons" in release.columns_left_out["name"]


def test_a_person_with_many_rows_counts_with_those_that_are_declared() -> None:
    frame = people(400).assign(name=["greedy"] * 300 + [f"p{one}" for one in range(100)])
    with curator(frame, one_row_per_person=False, person="name", rows_per_person=3) as holder:
        release = holder.publish("people", epsilon=8, columns=["sex", "well"], rows=20)
        assert release.total < 200  # 100 persons with one row, one with 3, and noise
        assert any("at most 3 rows" in bound for bound in release.bounds)


def test_rows_that_cannot_be_are_never_made() -> None:
    rules = [{"sex": "M", "age": {"min": 50}}, {"well": False, "sex": "F"}]
    with curator(people(3000), impossible=rules) as holder:
        release = holder.publish("people", epsilon=4, columns=["sex", "age", "well"], rows=3000)
    for row in release.rows:
        assert not (row["sex"] == "M" and row["age"] is not None and row["age"] >= 50)
        assert not (row["well"] is False and row["sex"] == "F")


def test_rows_without_a_value_that_cannot_be_are_never_made() -> None:
    """NULL in a column with values, a boolean one and one with bounds; elsewhere it stays."""
    rng, count = np.random.default_rng(2), 3000
    known = [True, False, None]
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], count),
            "kind": rng.choice(np.array(["a", "b", None], object), count),
            "well": [known[int(one)] for one in rng.integers(0, 3, count)],
            "age": pd.array([None if one > 70 else int(one) for one in rng.integers(0, 100, count)], "Int64"),
        }
    )
    columns = {"sex": ["F", "M"], "kind": {"type": "text", "values": ["a", "b"]}, "well": bool}
    columns["age"] = {"type": "integer", "min": 0, "max": 99}
    rules = [{"sex": "F", "kind": None}, {"sex": "M", "well": None, "kind": "a"}, {"sex": "F", "age": [None, 3]}]
    table = discreet.Table(frame, one_row_per_person=True, columns=columns, impossible=rules)
    with discreet.Curator({"t": table}, epsilon=9, delta=1e-4) as holder:
        rows = holder.publish("t", epsilon=4, rows=3000).rows
    for row in rows:
        assert not (row["sex"] == "F" and (row["kind"] is None or row["age"] is None or row["age"] == 3))
        assert not (row["sex"] == "M" and row["kind"] == "a" and row["well"] is None)
    for name in ("kind", "well", "age"):
        assert sum(row["sex"] == "M" and row[name] is None for row in rows) > 100


def test_rules_that_leave_nothing_are_refused_before_anything_is_spent() -> None:
    with curator(people(30), impossible=[{"sex": ["F", "M"]}]) as holder:
        with pytest.raises(QuestionError, match="what is declared impossible leaves no row possible → take a rule out"):
            holder.publish("people", epsilon=1, columns=["sex", "well"])
        assert holder.budget.used == 0


def test_a_table_is_published_for_a_target(tmp_path: Any) -> None:
    frame = people(2000)
    columns = ["sex", "age", "well", "town"]
    with curator(frame) as holder:
        release = holder.publish("people", epsilon=2, columns=columns, target="Sex")
        assert release.target == "sex"
        assert release.charged
        assert {tuple(one["columns"]) for one in release.marginals if len(one["columns"]) == 3} == {
            ("sex", "age", "well"),
            ("sex", "age", "town"),
            ("sex", "well", "town"),
        }
        again = holder.publish("people", epsilon=2, columns=columns, target="sex")
        assert again.rows == release.rows
        assert not again.charged
        release.save(tmp_path / "made.json")
        assert discreet.published(tmp_path / "made.json").target == "sex"
        release.plot(tmp_path / "page.html")
        assert "Models that predict sex from the other columns" in (tmp_path / "page.html").read_text("utf-8")
        plain = holder.publish("people", epsilon=2, columns=columns)
        assert plain.charged
        assert plain.target is None
        assert "predict sex" in "".join(one.question for one in holder.ledger.entries())


def test_a_target_of_which_no_value_is_found_steers_nothing() -> None:
    """Each value of it is one person's, which nobody may know beforehand."""
    with curator(people(300)) as holder:
        release = holder.publish("people", epsilon=2, columns=["sex", "well", "name"], target="name")
        assert release.columns == ["sex", "well"]
        assert release.target == "name"
        assert "name" in release.columns_left_out


def test_an_interrupt_keeps_what_was_measured() -> None:
    heard: list[Any] = []

    def tell(progress: Any) -> None:
        heard.append(progress)
        if len(heard) == 4:
            raise KeyboardInterrupt

    with curator(people(2000)) as holder:
        release = holder.publish("people", epsilon=4, columns=["sex", "age", "well", "town"], rows=100, tell=tell)
        assert release.content["ended_early"]
        assert len(release) == 100
        assert holder.budget.used > 10
        assert "ended early" in repr(release)


@pytest.mark.parametrize(("step", "stored"), [("marginals", False), ("uncode", True)])
def test_an_interrupt_inside_the_engine_stores_a_whole_table_or_none(
    monkeypatch: pytest.MonkeyPatch, step: str, *, stored: bool
) -> None:
    """The first time the engine counts, or when it lets go of the rows after all is done."""
    carried_out = getattr(DuckDB, step)

    def interrupted(*said: Any, **more: Any) -> None:
        carried_out(*said, **more)
        raise KeyboardInterrupt

    with curator(people(500)) as holder:
        with monkeypatch.context() as context:
            context.setattr(DuckDB, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                holder.publish("people", epsilon=2, columns=["sex", "well"], rows=30)
        used = holder.budget.used
        assert used > 0
        holder.lift()  # what ended without an answer suspends
        assert len(holder.publish("people", epsilon=2, columns=["sex", "well"], rows=30)) == 30
        assert (holder.budget.used == used) is stored


def test_a_dead_engine_ends_the_run_and_the_price_stays_charged() -> None:
    def tell(_: Any) -> None:
        holder._engine.close()

    with curator(people(500)) as holder:
        with pytest.raises(EngineError):
            holder.publish("people", epsilon=1, columns=["sex", "age", "well"], tell=tell)
        assert holder.budget.used > 1


def test_sql_on_the_synthetic_table_is_scaled_and_says_its_error() -> None:
    with curator(people(4000)) as holder:
        release = holder.publish("people", epsilon=6, columns=["sex", "age", "well"], rows=500)
    answer = release.ask("SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex ORDER BY sex")
    assert abs(sum(row["n"] for row in answer.rows) - release.total) <= 2
    assert answer.within is not None
    assert answer.within > 0
    assert "scaled" in answer.words
    assert release.ask("SELECT COUNT(*) FROM people").rows[0]["COUNT(*)"] == round(release.total)
    for bad in (
        "SELECT * FROM other",
        "DROP TABLE people",
        "SELECT 1; SELECT 2",
        "SELEC",
        "SELECT nothing FROM people",
    ):
        with pytest.raises(QuestionError):
            release.ask(bad)
    with pytest.raises(QuestionError):
        release.ask("SELECT * FROM read_csv('/etc/passwd')")


def test_the_declaration_of_the_synthetic_table_opens(tmp_path: Any) -> None:
    with curator(people(500)) as holder:
        release = holder.publish("people", epsilon=4, rows=50)
    release.save(tmp_path / "people_synthetic.csv")
    assert (tmp_path / "people_synthetic.csv").read_text("utf-8").count("\n") == 51
    (tmp_path / "made.toml").write_text("[budget]\nepsilon = 1\n\n" + release.declaration, "utf-8")
    with discreet.open(tmp_path / "made.toml") as opened:
        opened.check()
    with pytest.raises(QuestionError, match="end it in"):
        release.save(tmp_path / "people.xls")
    (tmp_path / "taken.csv").mkdir()
    with pytest.raises(QuestionError, match="cannot be written"):
        release.save(tmp_path / "taken.csv")


def test_odd_names_and_values_are_written_as_toml_reads_them() -> None:
    values = ["\U0001f600", "\x7f", "\x00", 'a"b', "a\\b", "\n", "ß"]
    frame = pd.DataFrame({'so "odd" \U0001f600': values * 20, "t": ["x"] * 140})
    known = {'so "odd" \U0001f600': values, "t": {"type": "text"}}
    table = discreet.Table(frame, columns=known, one_row_per_person=True)
    with discreet.Curator({'a "b"': table}, epsilon=10, delta=1e-5) as holder:
        release = holder.publish('a "b"', epsilon=8, rows=10)
    (made,) = tomllib.loads(release.declaration)["tables"].values()
    assert made["source"] == 'a "b"_synthetic.csv'
    assert made["columns"]['so "odd" \U0001f600']["values"] == values


@pytest.mark.parametrize("ending", some(["html", "png"], pytest.mark.power))
def test_a_page_is_drawn_from_the_release(tmp_path: Any, ending: str) -> None:
    with curator(people(500)) as holder:
        release = holder.publish("people", epsilon=4, rows=50)
    path = release.plot(tmp_path / f"page.{ending}")
    assert path.stat().st_size > 10_000


def test_a_page_shows_no_bound_as_less_than_it_is(tmp_path: Any) -> None:
    with curator(people(50)) as holder:
        holder.publish("people", epsilon=4, rows=5).save(tmp_path / "made.json")
    plain = json.loads((tmp_path / "made.json").read_text("utf-8"))
    for one in plain["marginals"]:
        one["share"] = 0.004
    (tmp_path / "made.json").write_text(json.dumps(plain), "utf-8")
    page = discreet.published(tmp_path / "made.json").plot(tmp_path / "page.html").read_text("utf-8")
    assert "at most 1% of the rows are off" in page
    assert "of the best pair, 1% (" in page


WIDE = [f"v{one}" for one in range(300)]


def wide(**more: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Six columns of which any three have 27 million combinations."""
    frame = pd.DataFrame(dict.fromkeys("abcdef", WIDE))
    return frame, {"columns": dict.fromkeys("abcdef", WIDE), **more}


@pytest.mark.parametrize("method", ["independent", "adaptive"])
def test_marginals_that_nobody_could_hold_are_not_looked_at(method: str) -> None:
    frame, said = wide()
    with curator(frame, **said) as holder:
        release = holder.publish("people", epsilon=2, rows=20, method=method, columns=["a", "b", "c"])
        assert len(release) == 20
        assert max(len(one["columns"]) for one in release.marginals) == 2


def test_of_a_marginal_too_large_its_parts_are_looked_at() -> None:
    domain = Domain.of({"a": 4, "b": 5, "c": 600, "d": 600})
    assert held(domain, [("a", "b", "c")]) == (("a", "b", "c"),)
    assert held(domain, [("a", "c", "d")]) == (("a", "c"), ("a", "d"), ("c", "d"))
    many = Domain.of({f"c{place}": 257 for place in range(10)})
    assert set(held(many, [many.names])) == set(itertools.combinations(many.names, 2))
    wide = Domain.of({f"c{place}": 900 for place in range(100)})
    assert set(held(wide, list(itertools.combinations(wide.names, 2)))) == {(name,) for name in wide.names}
    assert held(domain, []) == ()


TOO_LARGE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"method": "workload", "workload": [["a", "b", "c"]]}, {}),
    ({"method": "adaptive", "workload": [["a", "b", "c"]]}, {}),
    ({"method": "workload", "workload": [[one, two] for one in "abcdef" for two in "abcdef" if one < two]}, {}),
    ({"method": "workload", "workload": 5}, {}),
    ({"method": "workload", "workload": [5]}, {}),
    ({"columns": 5}, {}),
    ({}, {"impossible": [{"a": "v1", "b": "v2", "c": "v3"}]}),
]


@pytest.mark.parametrize(("asked", "said"), TOO_LARGE)
def test_what_would_be_too_large_is_refused_before_anything_is_spent(
    asked: dict[str, Any], said: dict[str, Any]
) -> None:
    frame, known = wide(**said)
    with curator(frame, **known) as holder:
        with pytest.raises(QuestionError):
            holder.publish("people", epsilon=2, rows=20, **asked)
        assert holder.budget.used == 0


def test_where_no_value_is_shared_by_enough_the_table_says_only_which_rows_have_one() -> None:
    with curator(people(300)) as holder:
        release = holder.publish("people", epsilon=8, rows=20, columns=["name"])
        assert {row["name"] for row in release.rows} <= {"(other)", None}


@pytest.mark.parametrize("epsilon", ["0.1", 1e6])
def test_no_price_that_can_be_named_is_paid_for_nothing(epsilon: Any) -> None:
    with curator(people(300), epsilon=max(10, float(epsilon))) as holder:
        assert len(holder.publish("people", epsilon=epsilon, rows=20, columns=["sex", "age", "town", "born"])) == 20


def test_a_price_that_no_schedule_fits_is_refused() -> None:
    with curator(people(300), epsilon=1e30) as holder:
        with pytest.raises(QuestionError) as refused:
            holder.publish("people", epsilon=1e30, rows=20, columns=["sex", "age", "town", "born"])
        assert (refused.value.where, holder.budget.used) == ("epsilon", 0)


def test_a_name_that_no_utf8_can_hold_is_refused() -> None:
    with pytest.raises(discreet.DeclarationError):
        curator(people(3), columns={"sex": ["F", "\ud800"]})


def test_the_price_is_on_disk_before_a_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with curator(people(50)) as holder:
        real, used = holder._engine.code, []

        def code(*arguments: Any, **more: Any) -> Any:
            used.append(holder.budget.used)
            return real(*arguments, **more)

        monkeypatch.setattr(holder._engine, "code", code)
        release = holder.publish("people", epsilon=1, columns=["sex", "age"], rows=10)
        assert used
        assert min(used) == release.used > 0


@pytest.mark.parametrize("rule", [{"max": 0}, {"min": 20, "max": 50}, [50]])
def test_what_is_impossible_of_a_number_without_a_step_is_not_made(rule: object) -> None:
    """Half of the rows hold the very end of the rule, so many that it is drawn as it stands."""
    high = 50 if isinstance(rule, list) or "min" in rule else 0  # type: ignore[operator]
    frame = pd.DataFrame({"emp": ["n"] * 500 + ["y"] * 500, "pay": [float(high)] * 500 + [70.5, 80.25] * 250})
    columns = {
        "emp": {"type": "text", "values": ["y", "n"], "nulls": False},
        "pay": {"type": "number", "min": 0, "max": 100, "nulls": False},
    }
    said = {"max": 0} if rule == {"max": 0} else rule
    table = discreet.Table(frame, one_row_per_person=True, columns=columns, impossible=[{"emp": "y", "pay": said}])
    with discreet.Curator({"t": table}, epsilon=50, delta=1e-4) as holder:
        made = holder.publish("t", epsilon=20).to_pandas()
    low = 20 if isinstance(rule, dict) and "min" in rule else high
    assert not ((made.emp == "y") & (made.pay >= low) & (made.pay <= high)).any()


def test_cells_between_ends_of_rules_count_before_the_price() -> None:
    columns = {name: {"type": "integer", "min": 0, "max": 9_999} for name in "abc"}
    rules = [{name: {"min": 300 * place, "max": 300 * place + 10} for name in "abc"} for place in range(1, 25)]
    frame = pd.DataFrame({name: [1, 2] for name in "abc"})
    table = discreet.Table(frame, one_row_per_person=True, columns=columns, impossible=rules)
    with discreet.Curator({"t": table}, epsilon=5, delta=1e-4) as holder:
        with pytest.raises(QuestionError, match="a model of these columns would have"):
            holder.publish("t", epsilon=1, bins=dict.fromkeys("abc", 99))
        assert holder.budget.used == 0


def test_more_rows_than_fit_into_the_memory_are_refused_before_the_price() -> None:
    with curator(people(50)) as holder:
        declaration = replace(holder.declaration, limits=replace(holder.declaration.limits, memory_gib=1))
        with pytest.raises(QuestionError, match="4,194,304 rows of 8 columns fit into"):
            publication(declaration, PublishOptions(table="people", epsilon=1, rows=4_194_305))
        call = publication(declaration, PublishOptions(table="people", epsilon=1, rows=4_194_304))
    assert call.most_rows == 4_194_304


def test_a_table_below_others_is_published_alone() -> None:
    """Its persons are found along two keys: their rows count, at the price of a table with as many rows a person."""
    known = related_tables.shop(800)
    with related_tables.curator(known, items=15) as shop:
        release = shop.publish("items", epsilon=5)
        assert release.columns_left_out == {"order": "it refers to orders, by which the person is found"}
        assert abs(len(release) - len(known["items"])) < 300
        made, real = (frame.kind.value_counts(normalize=True) for frame in (release.to_pandas(), known["items"]))
        assert all(abs(made[kind] - real[kind]) < 0.1 for kind in ("book", "toy", "food"))
        assert "of each person at most 15 rows count; others are left out" in release.bounds
        used = shop.budget.used
        assert shop.publish("items", epsilon=5).rows == release.rows
        assert shop.budget.used == used
        with pytest.raises(QuestionError, match="by which the person is found"):
            shop.publish("items", epsilon=5, columns=["order"])
        found = shop.publish("items", epsilon=5, target="kind", like=release)
        assert found.charged
    with related_tables.curator(known, items=30) as wider:
        assert f"{wider.publish('items', epsilon=5).holds.mechanisms}".count("30 rows")


def test_a_table_below_others_is_another_where_that_above_it_is_declared_otherwise(tmp_path: Any) -> None:
    known, ledger = related_tables.shop(300), tmp_path / "shop.ledger"

    def published(orders: int) -> discreet.Release:
        declared = related_tables.said(orders, 15)
        tables = {name: discreet.Table(frame, **declared[name]) for name, frame in known.items()}
        with discreet.Curator(tables, epsilon=50, delta=1e-5, ledger=ledger) as shop:
            return shop.publish("items", epsilon=5)

    assert published(6).charged
    assert not published(6).charged
    assert published(5).charged


def test_ctrl_c_while_the_engine_works_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes inside a step: that one is finished, and the table made, stored and given."""
    counted = DuckDB.marginals
    steps = itertools.count()

    def pressed(*said: Any, **more: Any) -> Any:
        if next(steps) == 2:
            signal.raise_signal(signal.SIGINT)
        return counted(*said, **more)

    with curator(people(500)) as holder, monkeypatch.context() as context:
        context.setattr(DuckDB, "marginals", pressed)
        release = holder.publish("people", epsilon=2, columns=["sex", "well", "town"], rows=30)
        assert release.content["ended_early"]
        assert len(release) == 30
        assert next(steps) <= 5
        used = holder.budget.used
        assert holder.publish("people", epsilon=2, columns=["sex", "well", "town"], rows=30).rows == release.rows
        assert holder.budget.used == used


def test_ctrl_c_while_rows_are_made_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*said: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return content(*said)

    with curator(people(500)) as holder, monkeypatch.context() as context:
        context.setattr(run, "content", pressed)
        assert len(holder.publish("people", epsilon=2, columns=["sex", "well"], rows=30)) == 30


def test_a_second_ctrl_c_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first while the engine works, the second while rows are made of what was measured: they are made once."""
    counted, tries = DuckDB.marginals, itertools.count()

    def pressed(*said: Any, **more: Any) -> Any:
        if next(tries) == 2:
            signal.raise_signal(signal.SIGINT)
        return counted(*said, **more)

    def again(*_: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError

    with curator(people(500)) as holder, monkeypatch.context() as context:
        context.setattr(DuckDB, "marginals", pressed)
        context.setattr(run, "content", again)
        with pytest.raises(KeyboardInterrupt):
            holder.publish("people", epsilon=2, columns=["sex", "well", "town"], rows=30)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_program_s_own_hears_of_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the table is there."""
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))

    def pressed(*said: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        assert not heard
        return content(*said)

    try:
        with curator(people(500)) as holder, monkeypatch.context() as context:
            context.setattr(run, "content", pressed)
            assert len(holder.publish("people", epsilon=2, columns=["sex", "well"], rows=30)) == 30
            assert heard == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_process_that_is_forked_while_a_table_is_published_ends_when_it_is_told_to() -> None:
    codes: list[int] = []

    def tell(_: object) -> None:
        if codes:
            return
        there, ready = os.pipe()
        forked = os.fork()
        if forked == 0:
            try:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(60)
                os.write(ready, b".")  # before that, Python itself may lose a signal
                while True:
                    signal.pause()
            finally:
                os._exit(0)
        assert os.read(there, 1)
        os.kill(forked, signal.SIGTERM)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]))

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whoever runs the tests may have set another
    try:
        with curator(people(500)) as holder:
            holder.publish("people", epsilon=2, columns=["sex", "well"], rows=30, tell=tell)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert codes == [-signal.SIGTERM]


def test_a_declaration_of_made_rows_never_names_the_real_file() -> None:
    """Also of a release that an earlier version stored."""
    with curator(people(500)) as holder:
        release = holder.publish("people", epsilon=4, rows=50)
    assert tomllib.loads(release.declaration)["tables"]["people"]["source"] == "people_synthetic.csv"
    older = release.declaration.replace("people_synthetic.csv", "people.csv")
    before = replace(release, holds=replace(release.holds, more={**release.holds.more, "declaration": older}))
    assert before.declaration == release.declaration
    named = discreet.Table(people(50), one_row_per_person=True, columns={"sex": ["F", "M"]})
    with discreet.Curator({"t_synthetic": named}, epsilon=9, delta=1e-6) as holder:
        release = holder.publish("t_synthetic", epsilon=4)
    older = release.declaration.replace("_synthetic_synthetic.csv", "_synthetic.csv")
    before = replace(release, holds=replace(release.holds, more={**release.holds.more, "declaration": older}))
    assert '"t_synthetic_synthetic.csv"' in before.declaration == release.declaration


def test_a_bound_that_says_nothing_is_not_told_as_a_number() -> None:
    """Twenty persons with one row, where a hundred rows a person are declared."""
    frame = pd.DataFrame({"p": range(20), "sex": ["F", "M"] * 10, "well": [True] * 20})
    table = discreet.Table(frame, person="p", rows_per_person=100, columns={"p": int, "sex": ["F", "M"], "well": bool})
    with discreet.Curator({"t": table}, epsilon=5, delta=1e-5) as holder:
        told = repr(holder.publish("t", epsilon=0.5))
    assert "nothing is known → fewer rows_per_person (a profile tells how many), or a larger epsilon" in told
    assert "off by at most" not in told


def test_an_interrupt_while_the_price_is_computed_is_charged_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the moment that it is reserved the first one waits; what is computed before takes a part of a second."""
    found, calls, last = declared.gaussian_equivalent, [0], 0

    def interrupted(*given: Any) -> Any:
        calls[0] += 1
        if last and calls[0] > last:
            signal.raise_signal(signal.SIGINT)
        return found(*given)

    monkeypatch.setattr(declared, "gaussian_equivalent", interrupted)
    with curator(people(50)) as holder:
        asked: dict[str, Any] = {"epsilon": 2, "columns": ["sex", "well"]}
        publication(holder.declaration, PublishOptions(table="people", **asked))
        last, calls[0] = calls[0], 0  # its steps are found with losses too: the one after these is the price
        with pytest.raises(KeyboardInterrupt):
            holder.publish("people", **asked)
        assert calls == [last + 1]
        assert [one.kind for one in holder.ledger.entries() if one.loss is not None] == []
