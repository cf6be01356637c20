"""Public totals: published tables have them exactly, nothing that they say is paid for, and nothing depends on whether
they are true but how right the rows are."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.accounting import BoundedRange, Declared, compose
from discreet.catalog import declare
from discreet.errors import DeclarationError, QuestionError
from discreet.markov import Domain
from discreet.markov.margins import Margins
from discreet.synthesis.adaptive import EndedEarly, synthesise
from discreet.synthesis.publication import PublishOptions, publication
from discreet.synthesis.schedule import METHODS
from discreet.synthesis.totals import FixedTotals
from discreet.trusted.ring_a.curves import mu_of_budget
from kinds import examples, some
from memory_measurer import Memory, counts, planned
from totals_tools import met

DELTA = Fraction(1, 10**9)
DOMAIN = Domain.of({"a": 3, "b": 2, "c": 4, "d": 2})
COLUMNS: dict[str, Any] = {
    "sex": {"type": "text", "values": ["F", "M", "ß\U0001f600"]},
    "job": {"type": "text", "values": ["NULL", "(none)", "none"], "nulls": False},
    "well": {"type": "boolean"},
    "age": {"type": "integer", "min": 0, "max": 99, "nulls": False},
    "town": {"type": "text"},
}
SEX = {"by": ["sex"], "counts": {"F": 150, "M": 140, "ß\U0001f600": 5, None: 5}}
JOB = {
    "by": ["sex", "job"],
    "counts": {
        "F": {"NULL": 150, "(none)": 0, "none": 0},
        "M": {"NULL": 40, "(none)": 100, "none": 0},
        "ß\U0001f600": {"NULL": 5, "(none)": 0, "none": 0},
        None: {"NULL": 0, "(none)": 5, "none": 0},
    },
}
WELL = {"by": ["well"], "counts": {True: 290, False: 10}}


def people(count: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], count),
            "job": rng.choice(["NULL", "(none)"], count),
            "well": pd.array(rng.random(count) < 0.8, "boolean"),
            "age": rng.integers(0, 100, count),
            "town": rng.choice(["Ulm", "Köln"], count),
        }
    )


def curator(frame: pd.DataFrame, totals: Any, **more: Any) -> discreet.Curator:
    known = {name: kind for name, kind in COLUMNS.items() if name in frame.columns}
    table = discreet.Table(frame, columns=known, one_row_per_person=True, totals=totals, **more)
    return discreet.Curator({"people": table}, epsilon=10, delta=1e-5, engine={"memory_gib": 4})


@settings(max_examples=examples(150, 10), deadline=None)
@given(st.data())
def test_totals_are_met_whatever_is_measured(data: Any) -> None:
    """Small tables beside totals of other tables, rules that those keep, every method, every price: counts are exact,
    no row is impossible, and what is drawn from the batch is in it."""
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    real, other = (
        generator.integers(0, DOMAIN.sizes, (data.draw(st.sampled_from(rows)), 4))
        for rows in ([0, 1, 5, 200], [1, 2, 40, 300])
    )
    every = [(name,) for name in DOMAIN.names] + list(itertools.combinations(DOMAIN.names, 2))
    chosen = data.draw(st.lists(st.sampled_from(every), max_size=3, unique=True))
    known = {one: counts(other, DOMAIN, one) for one in chosen if not any(set(one) < set(two) for two in chosen)}
    zeros = {}
    for clique in data.draw(st.lists(st.sampled_from(every), max_size=2, unique=True)):
        zeros[clique] = (counts(other, DOMAIN, clique) == 0) & (generator.random(DOMAIN.shape(clique)) < 0.5)
    totals = FixedTotals(len(other), known).hold_possible(DOMAIN, zeros)
    method = data.draw(st.sampled_from(METHODS))
    schedule = planned(method, DOMAIN, data.draw(st.sampled_from(["0.01", 1, 50])), DELTA, known=tuple(known))
    measurer = Memory(real, DOMAIN)
    result = synthesise(schedule, DOMAIN, measurer, zeros=zeros, totals=totals)
    assert len(result.rows) == len(other) == result.model.total
    for clique, wanted in known.items():
        assert (counts(result.rows, DOMAIN, clique) == wanted).all()
    for clique, empty in zeros.items():
        assert not counts(result.rows, DOMAIN, clique)[empty].any()
    assert not Counter(measurer.spent) - Counter(schedule.parts)
    for one in result.measurements:
        assert not any(set(one.clique) <= set(clique) for clique in known)


@pytest.mark.parametrize("known", [[("a",)], [("a", "b"), ("c",)], [("a", "b"), ("c", "d")]])
@pytest.mark.parametrize("method", METHODS)
def test_the_batch_is_what_is_run_and_costs_the_price(method: str, known: list[Any]) -> None:
    """What totals say is not in it, and the rest has less noise for it; all that was declared is measured."""
    schedule, without = planned(method, DOMAIN, 1, DELTA, known=known), planned(method, DOMAIN, 1, DELTA)
    price = mu_of_budget(Fraction(1), DELTA * Fraction(9, 10)) ** 2
    charged = Declared(schedule.parts, DELTA / 10).loss.mu_squared
    assert charged is not None
    assert Fraction(99, 100) * price <= charged <= price
    assert compose(schedule.parts).epsilon(DELTA) <= 1
    assert set(schedule.singles) == set(DOMAIN.names) - {name for clique in known for name in clique}
    table = np.random.default_rng(2).integers(0, DOMAIN.sizes, (3000, 4))
    totals = FixedTotals(3000, {clique: counts(table, DOMAIN, clique) for clique in known}).hold_possible(DOMAIN, {})
    measurer = Memory(table, DOMAIN)
    synthesise(schedule, DOMAIN, measurer, totals=totals)
    left = Counter(schedule.parts) - Counter(measurer.spent)
    assert not Counter(measurer.spent) - Counter(schedule.parts)
    assert all(isinstance(one, BoundedRange) for one in left)  # a round is of a column again, and nothing is chosen
    assert not schedule.singles or schedule.single_sigma < without.single_sigma


RULES = [{"sex": "M", "age": {"min": 50}}, {"job": "(none)", "well": False}, {"sex": ["F"], "job": "(none)"}]


@pytest.mark.parametrize("totals", some([[SEX, WELL], [JOB, WELL], [JOB], [SEX]], pytest.mark.power, quick=2))
@pytest.mark.parametrize("rules", [[], RULES])
def test_a_published_table_has_its_totals(totals: list[Any], rules: list[Any]) -> None:
    """Of a table of other people: a value that none of them has, values that nobody shall have, NULL, and texts that
    only look like it."""
    with curator(people(500), totals, impossible=rules) as holder:
        release = holder.publish("people", epsilon=2)
        assert len(release) == release.total == 300
        for total in totals:
            met(release, total)
        for row in release.rows if rules else ():
            assert not (row["sex"] == "M" and row["age"] >= 50)
            assert not (row["job"] == "(none)" and row["well"] is False)
            assert not (row["sex"] == "F" and row["job"] == "(none)")
        assert not any(len(one["columns"]) == 1 and one["columns"][0] in totals[0]["by"] for one in release.measured)
        assert "declared as public" in release.bounds[-1]
        assert release.ask("SELECT COUNT(*) AS n FROM people").rows == [{"n": 300}]
        assert not holder.publish("people", epsilon=2).charged


def test_one_row() -> None:
    only = {
        "by": ["sex", "job"],
        "counts": {
            "F": {"NULL": 0, "(none)": 0, "none": 0},
            "M": {"NULL": 0, "(none)": 0, "none": 0},
            "ß\U0001f600": {"NULL": 0, "(none)": 0, "none": 1},
        },
    }
    with curator(people(1), [only]) as holder:
        release = holder.publish("people", epsilon=1)
    assert [(row["sex"], row["job"]) for row in release.rows] == [("ß\U0001f600", "none")]


def test_of_columns_that_are_left_out_the_number_of_rows_stays() -> None:
    with curator(people(500), [JOB, WELL]) as holder:
        assert len(holder.publish("people", epsilon=1, columns=["age"])) == 300
        part = holder.publish("people", epsilon=1, columns=["age", "job"])
    met(part, {"by": ["job"], "counts": {"NULL": 195, "(none)": 105, "none": 0}})


def test_where_totals_say_all_nothing_is_measured_but_how_far_they_are_off() -> None:
    """At a high price nearly exactly so: of 500 real rows, 300 were declared."""
    with curator(people(500), [JOB]) as holder:
        release = holder.publish("people", epsilon=9, columns=["job", "sex"], method="independent")
        met(release, JOB)
        assert release.measured == []
        (pair,) = [one for one in release.marginals if len(one["columns"]) == 2]
        assert release.plot() is not None
    real = Counter((sex, job) for sex, job in zip(people(500).sex, people(500).job, strict=True))
    made = Counter((row["sex"], row["job"]) for row in release.rows)
    off = sum(abs(real[line] - made[line]) for line in real.keys() | made.keys())
    assert off - 6 < pair["rows"] < off + 12


def test_bounds_are_of_the_rows_as_they_are_held_against_the_real_ones() -> None:
    """Totals of another time: the bound says by how much they are off, and no less. Of so few marginals the distances
    have noise of about one row at ε 9, and a bound adds 2.2 rows: 5 deviations beside these."""
    frame = people(500)
    with curator(frame, [SEX, WELL]) as holder:
        release = holder.publish("people", epsilon=9, columns=["sex", "well"], method="independent")
    real = Counter(frame.sex.tolist())
    off = sum(abs(real[value] - count) for value, count in SEX["counts"].items())
    (bound,) = [one for one in release.marginals if one["columns"] == ["sex"]]
    assert off - 3 < bound["rows"] < off + 8
    answer = release.ask("SELECT sex, COUNT(*) AS n FROM people WHERE sex IN ('F', 'M') GROUP BY sex")
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        assert ends["n"][0] <= real[row["sex"]] + 3
        assert real[row["sex"]] - 3 <= ends["n"][1]


def call(totals: Any = (), **more: Any) -> Any:
    table = {"source": "t.csv", "columns": COLUMNS, "one_row_per_person": True, "totals": totals}
    budget = {"epsilon": 10, "delta": Fraction(1, 10**6)}
    declared = declare({"budget": budget, "tables": {"people": table}}, python=True)
    return publication(declared, PublishOptions(table="people", epsilon=1, **more))


def test_what_is_declared_follows_from_totals_and_no_row() -> None:
    """Other totals are another release; the same are the same batch. Without totals the key is what it was."""
    assert call([SEX]).parts == call([SEX]).parts
    assert call([SEX]).parts != call([{**SEX, "counts": {"F": 151, "M": 139, "ß\U0001f600": 5, None: 5}}]).parts
    assert (
        call([SEX]).declared.loss == call([{"by": ["sex"], "counts": {"F": 1, "M": 1, "ß\U0001f600": 1}}]).declared.loss
    )
    assert len(call().parts) == 6


def test_neighbours_have_the_same_totals_at_the_same_price() -> None:
    """A person more or less, the only one with a value: the batch, the charge and the counts are the same."""
    frame = people(300)
    frame.loc[0, "sex"] = "ß\U0001f600"
    told = []
    for rows in (frame, frame.iloc[1:]):
        with curator(rows, [SEX, WELL]) as holder:
            release = holder.publish("people", epsilon=1)
            met(release, SEX)
            met(release, WELL)
            told.append(
                (release.used, release.cost, release.bounds[-1], release.domain["sex"], len(release), release.total)
            )
    assert told[0] == told[1]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"rows": 299}, "say how many rows there are → leave rows out: there will be 300"),
    ({"rows": 0}, "rows must be"),
]


@pytest.mark.parametrize(("asked", "words"), REFUSED)
def test_what_cannot_be_is_refused_and_costs_nothing(asked: dict[str, Any], words: str) -> None:
    with curator(people(20), [SEX]) as holder:
        with pytest.raises(QuestionError) as error:
            holder.publish("people", epsilon=1, **asked)
        assert words in str(error.value)
        assert holder.budget.used == 0
        assert len(holder.publish("people", epsilon=1, rows=300)) == 300


def test_totals_that_contradict_what_is_impossible_open_no_curator() -> None:
    with pytest.raises(DeclarationError, match="140 rows are M, which is impossible"):
        curator(people(20), [SEX], impossible=[{"sex": "M"}])


def test_a_run_that_ends_early_has_its_totals_too() -> None:
    def tell(_: Any) -> None:
        raise KeyboardInterrupt

    with curator(people(500), [JOB, WELL], impossible=RULES) as holder:
        release = holder.publish("people", epsilon=2, tell=tell)
    assert release.content["ended_early"]
    assert len(release.measured) == 1
    met(release, JOB)
    met(release, WELL)


def test_a_total_in_a_file_is_met_at_a_terminal_and_read_again(tmp_path: Any) -> None:
    people(60).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.toml").write_text(
        """
        [budget]
        epsilon = 5
        delta = 1e-5
        [tables.people]
        source = "people.csv"
        one_row_per_person = true
        [[tables.people.totals]]
        by = ["job", "sex"]
        counts = { NULL = { F = 7, M = 0 }, "(none)" = { F = 0, M = 4, "(none)" = 1 } }
        [tables.people.columns]
        sex = { type = "text", values = ["F", "M"] }
        job = { type = "text", values = ["NULL", "(none)"], nulls = false }
        age = { type = "integer", min = 0, max = 99 }
        """,
        "utf-8",
    )
    with discreet.open(tmp_path / "people.toml") as holder:
        holder.publish("people", epsilon=1).save(tmp_path / "made.json")
    again = discreet.published(tmp_path / "made.json")
    assert Counter((row["job"], row["sex"]) for row in again.rows) == {
        ("NULL", "F"): 7,
        ("(none)", "M"): 4,
        ("(none)", None): 1,
    }
    assert "holds, by declared public totals, 12 rows" in again.plot(tmp_path / "made.html").read_text("utf-8")


def test_where_totals_say_all_an_interrupt_leaves_the_table_of_the_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object) -> list[int]:
        raise EndedEarly

    monkeypatch.setattr("discreet.synthesis.run.InTurns.distances", ended)
    columns = {name: {"type": "text", "values": ["a", "b"], "nulls": False} for name in "xy"}
    totals = [{"by": [name], "counts": {"a": 30, "b": 50}} for name in "xy"]
    frame = pd.DataFrame({name: ["a", "b"] * 40 for name in "xy"})
    for some_of in (totals, totals[:1]):
        table = discreet.Table(frame, one_row_per_person=True, columns=columns, totals=some_of)
        with discreet.Curator({"t": table}, epsilon=5, delta=1e-4) as holder:
            made = holder.publish("t", epsilon=1)
        assert made.to_pandas().x.value_counts().to_dict() == {"a": 30, "b": 50}
        assert "ended early" in repr(made)


def test_beyond_the_limit_of_steps_a_paid_table_has_its_totals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that meets them was found before the price, so none near the drawn rows is needed."""
    asked: list[bool] = []
    tables = Margins.tables

    def none_near(margins: Margins, near: Any = None) -> Any:
        asked.append(near is None)
        return tables(margins) if near is None else None

    monkeypatch.setattr(Margins, "tables", none_near)
    with curator(people(500), [JOB, WELL], impossible=RULES) as holder:
        release = holder.publish("people", epsilon=2)
    assert asked[-1] is False
    met(release, JOB)
    met(release, WELL)


def test_beyond_the_limit_of_steps_a_call_is_refused_before_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    with curator(people(50), [JOB, WELL], impossible=RULES) as holder:
        monkeypatch.setattr(Margins, "tables", lambda *_: None)
        with pytest.raises(QuestionError, match="no table can be found that has all totals"):
            holder.publish("people", epsilon=2)
        assert holder.budget.used == 0
